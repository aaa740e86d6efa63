"""CREATE SOURCE: the items of the source and of its dead letters. `source_item` derives the source."""

from __future__ import annotations

import re
from dataclasses import replace

from tailgate.engine.ddl.history import split_retention
from tailgate.engine.ddl.kafka import access, dead_letters
from tailgate.engine.ddl.kafka.registry import SchemaLookup
from tailgate.engine.ddl.kafka.source_item import LIMITS, SourceDerivation
from tailgate.engine.ddl.kafka.start import start_of
from tailgate.engine.plan.sources.envelopes import source_layout
from tailgate.lake.catalog import DEAD_LETTERS, DEAD_LETTERS_KEY, Catalog, DeadLetters, Source
from tailgate.lake.catalog.formats import KsqldbItem
from tailgate.lake.errors import FeatureNotSupported, InvalidObjectDefinition, InvalidParameterValue
from tailgate.sql.new_items import check_built_in, check_columns, normalized, schema_for
from tailgate.sql.statements import Avro, CreateSource, Csv, Json, Ksqldb, Regex

TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")  # names of topics that Kafka accepts
# options without effect: settings of Materialize's reader, or behaviour that cannot be changed
IGNORED = frozenset(
    {
        "client_id",
        "group_id_prefix",
        "statistics_interval_ms",
        "timestamp_frequency_ms",
        "topic_metadata_refresh_interval_ms",
        "enable_auto_commit",
        "fetch_message_max_bytes",
        "ignore_source_keys",
    }
)
# decimal handling modes of Debezium's JSON without schemas; "double" needs no option
DECIMALS = ("precise", "double", "string")


def create_source(
    statement: CreateSource, text: str, catalog: Catalog, registry: SchemaLookup, ksqldb: KsqldbItem | None = None
) -> tuple[Source, DeadLetters]:
    """Returns the items of a source and of its dead letters, `<name>_dead_letters`.

    `text` is the statement as typed. `ksqldb`: the properties of a stream or table of ksqlDB.
    """
    schema = schema_for(statement.name, catalog)
    name = f"{statement.name.name}_dead_letters"
    catalog.check_new(name, schema)
    _check_supported(statement)
    for column in statement.columns or ():
        check_built_in(column.type, catalog, "a column", column.type_position)
    source = replace(SourceDerivation(statement, catalog, registry).source(), ksqldb=ksqldb)
    start_of(statement)  # raises its errors
    layout = source_layout(source)
    check_columns(layout.columns)
    source = replace(source, columns=layout.columns, key=layout.key, stored=layout.stored, sql=text, schema=schema.id)
    source = normalized(source, statement, catalog)
    depends = (source.id,)
    return source, DeadLetters(
        source.id + 1, name, DEAD_LETTERS, DEAD_LETTERS_KEY, stored=True, depends=depends, sql=source.sql, schema=schema.id
    )


def _check_supported(statement: CreateSource) -> None:
    """Raises an error for combinations of options that are not valid or not supported."""
    if not TOPIC.fullmatch(statement.topic):
        raise InvalidParameterValue(f'"{statement.topic}" is not the name of a topic')
    for include in statement.include:
        if include.kind == "key" and statement.envelope == "debezium":
            raise FeatureNotSupported(
                "INCLUDE KEY with ENVELOPE DEBEZIUM is not supported", hint="The columns of the key are columns of the row."
            )
    if statement.columns is not None and not isinstance(statement.value_format, Json | Csv | Regex | Ksqldb):
        raise FeatureNotSupported(
            "columns can only be declared for FORMAT JSON, CSV and REGEX", hint="Create a view to give columns other names and types."
        )
    if statement.columns is not None and not statement.columns:
        raise InvalidObjectDefinition("a source needs a column at least")
    if statement.primary_key and statement.envelope == "none":
        raise FeatureNotSupported("PRIMARY KEY of a source without an envelope is not supported", hint="Add ENVELOPE UPSERT.")
    if statement.envelope == "debezium" and not isinstance(statement.value_format, Json | Avro):
        raise FeatureNotSupported(
            f"ENVELOPE DEBEZIUM with FORMAT {type(statement.value_format).__name__.upper()} is not supported",
            hint="Use FORMAT AVRO or JSON.",
        )
    if statement.on_error == "null" and statement.envelope != "none":
        raise FeatureNotSupported(
            f"ON ERROR NULL with ENVELOPE {statement.envelope.upper()} is not supported", hint="A value that is NULL deletes a row there."
        )
    history, others = split_retention(statement.options)
    if history and statement.envelope == "none" and not statement.materialized:
        raise FeatureNotSupported(
            "RETAIN HISTORY FOR of a source that is not stored is not supported", hint="Use CREATE MATERIALIZED SOURCE."
        )
    for name, value in others:
        if name == "decimal_handling_mode" and statement.envelope == "debezium" and value in DECIMALS:
            continue
        if name in ("start_offset", "kafka_time_offset"):
            continue
        if name == "timestamp":
            if not isinstance(value, str) or not value:
                raise InvalidParameterValue('option "timestamp" is the name of a column')
            continue
        if dead_letters.retention_option(name) is not None:
            dead_letters.retention_options(name, value)
            continue
        if name in LIMITS:
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LIMITS[name]:
                raise InvalidParameterValue(f'option "{name}" is a number from 1 to {LIMITS[name]}')
            continue
        if (name == "isolation_level" and str(value).lower() == "read_committed") or name in IGNORED or access.is_access(name):
            continue
        raise FeatureNotSupported(f'option "{name}" of a source is not supported')
