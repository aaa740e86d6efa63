"""CREATE SOURCE … (TRANSACTION METADATA (SOURCE name, COLLECTION 'collection')).

`Source.transactions` has the information with which the reader of the topic keeps database
transactions whole (`engine.runtime.kafka.transactions`, tailgate/engine/java's `Transactions`).
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.engine.plan.sources import avro
from tailgate.lake.catalog import Catalog, Source, formats
from tailgate.lake.errors import FeatureNotSupported, InvalidObjectDefinition, InvalidParameterValue
from tailgate.sql.new_items import find_item
from tailgate.sql.statements import TransactionMetadata

MARK = frozenset({"status", "id", "data_collections"})  # fields of messages in the transaction topic
BLOCK = "transaction"  # field of a change event


def transaction_metadata(
    metadata: TransactionMetadata, source: Source, envelope: avro.Schema | None, catalog: Catalog
) -> formats.TransactionMetadata:
    """Returns the transaction metadata of a source.

    `source`: the source without it. `envelope`: the complete Avro schema of its changes.
    """
    topic_source = find_item(Source, metadata.source, catalog)
    _check(topic_source, metadata, source, catalog)
    block: formats.MessageFormat = formats.Json()
    if envelope is not None:
        assert isinstance(source.value_format, formats.Avro)
        if BLOCK not in avro.fields(envelope):
            raise InvalidObjectDefinition(
                f'the schema of "{source.topic}-value" has no field {BLOCK}', hint="Set provide.transaction.metadata of the connector."
            )
        fields = [f for f in envelope["fields"] if f["name"] == BLOCK]
        block_schema = {**envelope, "fields": fields} if source.value_format.registry else envelope
        block = replace(source.value_format, schema=avro.written(block_schema))
    return formats.TransactionMetadata(
        source=topic_source.id,
        topic=topic_source.topic,
        topic_id=topic_source.topic_id,
        collection=metadata.collection,
        marks=topic_source.value_format,
        block=block,
    )


def _check(topic_source: Source, metadata: TransactionMetadata, source: Source, catalog: Catalog) -> None:
    """Raises an error if a source cannot be the transaction topic of another source."""
    format = topic_source.value_format
    if topic_source.envelope != "none" or not isinstance(format, formats.Avro | formats.Json):
        raise FeatureNotSupported(
            f'source "{topic_source.name}" as the transaction topic is not supported', hint="It has FORMAT AVRO or JSON, and no envelope."
        )
    if isinstance(format, formats.Avro):
        schema = avro.parse(format.schema)
        if not avro.is_record(schema) or not set(avro.fields(schema)) >= MARK:
            raise InvalidObjectDefinition(
                f'source "{topic_source.name}" is not of a transaction topic',
                detail=f"A record with the fields {', '.join(sorted(MARK))} is expected.",
            )
    if (topic_source.brokers, topic_source.kafka) != (source.brokers, source.kafka):
        raise InvalidParameterValue(
            f'source "{topic_source.name}" reaches Kafka in another way',
            hint="A topic and its transaction topic are read from one Kafka by one connection.",
        )
    if source.max_records_per_second is not None:
        raise FeatureNotSupported("max_records_per_second with TRANSACTION METADATA is not supported")
    for other in catalog.each(Source):
        transactions = other.transactions
        if transactions is None or transactions.source != topic_source.id:
            continue
        if other.topic == source.topic:
            raise FeatureNotSupported(
                f'a second source of topic "{source.topic}" with the transactions of "{topic_source.name}" is not supported',
                hint=f'Create a view of "{other.name}".',
            )
        if transactions.collection == metadata.collection:
            raise InvalidParameterValue(f'collection "{metadata.collection}" is that of source "{other.name}"')
