"""CREATE SOURCE … (TRANSACTION METADATA (SOURCE name, COLLECTION 'collection')).

The source's option has the information with which the reader of the topic keeps database
transactions whole (`engine.runtime.transactions`, tailgate/engine/java's `Transactions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailgate.engine.ddl.names import find_item
from tailgate.engine.plan.sources import avro
from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.errors import FeatureNotSupported, InvalidObjectDefinition, InvalidParameterValue
from tailgate.sql.statements import TransactionMetadata

OPTION = "transactions"  # option of a source: {"source", "topic", "topic_id", "collection", "marks", "block"}
MARK = frozenset({"status", "id", "data_collections"})  # fields of messages in the transaction topic
BLOCK = "transaction"  # field of a change event


def transaction_options(
    metadata: TransactionMetadata, source: Mapping[str, Any], envelope: avro.Schema | None, catalog: Catalog
) -> dict[str, Any]:
    """Returns the option of a source with TRANSACTION METADATA.

    `source`: the source's other options. `envelope`: the complete Avro schema of its changes.
    "marks" and "block" of the option have the formats of the transaction topic's messages and of
    the changes, like `value_format`.
    """
    topic_source = find_item("source", metadata.source, catalog)
    _check(topic_source, metadata, source, catalog)
    block = {"type": "json"}
    if envelope is not None:
        if BLOCK not in avro.fields(envelope):
            raise InvalidObjectDefinition(
                f'the schema of "{source["topic"]}-value" has no field {BLOCK}', hint="Set provide.transaction.metadata of the connector."
            )
        block = {name: value for name, value in source["value_format"].items() if name != "schema"}
        block_schema = {**envelope, "fields": [f for f in envelope["fields"] if f["name"] == BLOCK]} if "registry" in block else envelope
        block["schema"] = avro.written(block_schema)
    return {
        "source": topic_source.id,
        "topic": topic_source.options["topic"],
        "topic_id": topic_source.options.get("topic_id"),
        "collection": metadata.collection,
        "marks": topic_source.options["value_format"],
        "block": block,
    }


def _check(topic_source: Item, metadata: TransactionMetadata, source: Mapping[str, Any], catalog: Catalog) -> None:
    """Raises an error if a source cannot be the transaction topic of another source."""
    format = topic_source.options["value_format"]
    if topic_source.options["envelope"] != "none" or format["type"] not in ("avro", "json"):
        raise FeatureNotSupported(
            f'source "{topic_source.name}" as the transaction topic is not supported', hint="It has FORMAT AVRO or JSON, and no envelope."
        )
    if format["type"] == "avro":
        schema = avro.parse(format["schema"])
        if not avro.is_record(schema) or not set(avro.fields(schema)) >= MARK:
            raise InvalidObjectDefinition(
                f'source "{topic_source.name}" is not of a transaction topic',
                detail=f"A record with the fields {', '.join(sorted(MARK))} is expected.",
            )
    if (topic_source.options["brokers"], topic_source.options["kafka"]) != (source["brokers"], source["kafka"]):
        raise InvalidParameterValue(
            f'source "{topic_source.name}" reaches Kafka in another way',
            hint="A topic and its transaction topic are read from one Kafka by one connection.",
        )
    if "max_records_per_second" in source:
        raise FeatureNotSupported("max_records_per_second with TRANSACTION METADATA is not supported")
    for other in catalog.items.values():
        transactions = other.options.get(OPTION, {}) if other.kind == "source" else {}
        if transactions.get("source") != topic_source.id:
            continue
        if other.options["topic"] == source["topic"]:
            raise FeatureNotSupported(
                f'a second source of topic "{source["topic"]}" with the transactions of "{topic_source.name}" is not supported',
                hint=f'Create a view of "{other.name}".',
            )
        if transactions["collection"] == metadata.collection:
            raise InvalidParameterValue(f'collection "{metadata.collection}" is that of source "{other.name}"')
