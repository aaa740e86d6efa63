"""Parses CREATE SOURCE and CREATE SINK.

Source: Materialize 0.8 to 0.25, "CREATE SOURCE: Kafka", "CREATE SINK".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import DuplicateColumn, FeatureNotSupported, InvalidParameterValue, UndefinedColumn
from tailgate.lake.types import Type
from tailgate.sql.grammar.names import name, position
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.grammar.type_resolution import DECIMALS, named_type
from tailgate.sql.grammar.types import type_name
from tailgate.sql.statements.kafka_statements import (
    Avro,
    ColumnDefinition,
    CreateSink,
    CreateSource,
    Envelope,
    Format,
    Include,
    Protobuf,
    TransactionMetadata,
)
from tailgate.sql.statements.parsers.clauses import column_names, if_not_exists, options, query, relation_name, with_options
from tailgate.sql.statements.parsers.kafka.brokers import brokers_of
from tailgate.sql.statements.parsers.kafka.connections import with_underscores
from tailgate.sql.statements.parsers.kafka.formats import formats
from tailgate.sql.statements.parsers.unsupported import refuse_create, unsupported
from tailgate.sql.statements.values import Options, OptionValue, QueryText, option

OnError: TypeAlias = Literal["dead letter", "fail", "null"]

MICROSECONDS = 6  # fractional digits of seconds
# types of a source's columns that cannot have modifiers, and what to use instead
WITHOUT_MODIFIERS = {"interval": "interval", "bit": "bit varying", "varbit": "bit varying"}

# options of KAFKA CONNECTION c (TOPIC …) → the equivalent options of WITH
SOURCE_OPTIONS = {"start_offset": "start_offset", "start_timestamp": "kafka_time_offset", "group_id_prefix": "group_id_prefix"}
SINK_OPTIONS = {
    "compression_type": "compression_type",
    "topic_partition_count": "partition_count",
    "topic_replication_factor": "replication_factor",
}
TOPIC_CONFIG = "topic_config"  # of a sink: MAP['name' => 'value', …]; the equivalent in WITH is "topic.name" = 'value'
# options of a sink's SCHEMA REGISTRY CONNECTION r (…), which are also options of WITH
REGISTRY_OPTIONS = ("avro_key_fullname", "avro_value_fullname", "key_compatibility_level", "value_compatibility_level")


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """A topic and its brokers or connection. `options` have the names of WITH options."""

    topic: str
    brokers: str = ""
    connection: Name | None = None
    options: Options = ()


def create_source(cursor: Parser) -> CreateSource:
    """Parses [MATERIALIZED] SOURCE …, after CREATE."""
    start = cursor.tokens[cursor.index - 1].position
    materialized = cursor.accept_word("materialized")
    cursor.expect_word("source")
    if cursor.at_word("connector"):
        raise refuse_create(cursor, start)
    absent = if_not_exists(cursor)
    this = relation_name(cursor)
    columns, primary_key = _columns(cursor) if cursor.at("(") else (None, ())
    if cursor.at_word("in", "cluster"):
        raise unsupported("IN CLUSTER", cursor.position)
    cursor.expect_word("from")
    place = kafka_topic(cursor, SOURCE_OPTIONS)
    settings = place.options
    if cursor.accept_word("with"):
        settings += options(cursor)
    key_format, value_format = formats(cursor)
    include = _include(cursor)
    envelope: Envelope = _envelope(cursor) or "none"
    transactions = _transactions(cursor) if envelope == "debezium" and cursor.at("(") else None
    on_error: OnError = _on_error(cursor) if cursor.accept_word("on", "error") else "dead letter"
    if cursor.at_word("expose"):
        raise unsupported("EXPOSE PROGRESS", cursor.position)
    last, clause = with_options(cursor)
    settings += last
    what = value_format, key_format, envelope, columns, primary_key, include, on_error, settings
    return CreateSource(this, place.brokers, place.topic, *what, absent, materialized, place.connection, transactions, clause)


def create_sink(cursor: Parser) -> CreateSink:
    """Parses the rest of CREATE SINK."""
    if cursor.at_word("connector"):
        raise refuse_create(cursor, cursor.tokens[cursor.index - 2].position)
    absent = if_not_exists(cursor)
    this = relation_name(cursor)
    if cursor.at_word("in", "cluster"):
        raise unsupported("IN CLUSTER", cursor.position)
    cursor.expect_word("from")
    item = _relation_or_query(cursor)
    cursor.expect_word("into")
    place = kafka_topic(cursor, SINK_OPTIONS)
    key: tuple[str, ...] = ()
    not_enforced = False
    if cursor.accept_word("key"):
        key = column_names(cursor)
        not_enforced = cursor.accept_word("not", "enforced")
        for i, column in enumerate(key):
            if column in key[:i]:
                raise InvalidParameterValue(f"repeated column name in sink key: {column}")
    headers = _headers(cursor) if cursor.accept_word("headers") else ""
    settings = place.options + _consistency(cursor)
    snapshot = True
    if cursor.at_word("with") and cursor.at("(", 1):
        cursor.advance()
        settings += options(cursor)
    key_format, value_format = formats(cursor)
    envelope = _envelope(cursor)
    while cursor.at_word("with") or cursor.at_word("without"):
        if cursor.accept_word("without", "snapshot"):
            snapshot = False
        elif not cursor.accept_word("with", "snapshot"):
            cursor.expect_word("with")
            settings += options(cursor)
    snapshot = bool(option(settings, "snapshot", snapshot))
    settings = tuple(o for o in settings if o[0] != "snapshot")
    if cursor.at_word("as", "of"):
        raise unsupported("AS OF of a sink", cursor.position)
    settings = _of_registry(value_format) + (() if key_format is None else _of_registry(key_format)) + settings
    what = value_format, key_format, envelope, key, not_enforced, snapshot, settings
    return CreateSink(this, item, place.brokers, place.topic, *what, absent, place.connection, headers)


def _relation_or_query(cursor: Parser) -> Name | QueryText:
    if not cursor.accept("("):
        return relation_name(cursor)
    text = query(cursor)
    cursor.expect(")")
    return text


def _consistency(cursor: Parser) -> Options:
    """Parses [CONSISTENCY (TOPIC 'name' [FORMAT JSON])] to the option consistency_topic of WITH."""
    if not cursor.accept_word("consistency"):
        return ()
    cursor.expect("(")
    cursor.expect_word("topic")
    topic = cursor.string()
    at = cursor.position
    if cursor.accept_word("format") and not cursor.accept_word("json"):
        raise unsupported("a consistency topic in another format than JSON", at)
    cursor.expect(")")
    return (("consistency_topic", topic),)


def _headers(cursor: Parser) -> str | tuple[tuple[str, str], ...]:
    """Parses {column | ('name' = 'value', …)}."""
    if not cursor.accept("("):
        return name(cursor).name
    pairs = cursor.listed(_header)
    cursor.expect(")")
    return tuple(pairs)


def _header(cursor: Parser) -> tuple[str, str]:
    """Parses 'name' = 'value'."""
    header = cursor.string()
    cursor.expect("=")
    return header, cursor.string()


def _columns(cursor: Parser) -> tuple[tuple[ColumnDefinition, ...], tuple[str, ...]]:
    """Parses ( name type [NOT NULL] [PRIMARY KEY], … [, PRIMARY KEY (name, …) [NOT ENFORCED]] ).

    Returns the columns and the names of the primary key.
    """
    cursor.expect("(")
    columns: list[ColumnDefinition] = []
    key: tuple[str, ...] = ()
    key_at = 0
    while True:
        if cursor.at_word("primary", "key"):
            key_at = cursor.position
            cursor.accept_word("primary", "key")
            key = column_names(cursor)
            cursor.accept_word("not", "enforced")
        else:
            at = cursor.position
            column = name(cursor).name
            if any(c.name == column for c in columns):
                raise DuplicateColumn(f'column "{column}" specified more than once', position=at)
            if cursor.at(",") or cursor.at(")"):
                raise unsupported("a column of a source without a type", at, "Write its type, or rename columns in a view.")
            type_at = cursor.position
            type, precision = _type(cursor)
            nullable = True
            while (word := cursor.any_word("not", "null", "primary")) is not None:
                if word == "not":
                    cursor.expect_word("null")
                    nullable = False
                elif word == "primary":
                    cursor.expect_word("key")
                    key, nullable = (column,), False
            columns.append(ColumnDefinition(column, type, nullable, at, precision, type_at))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    for column in key:
        if not any(c.name == column for c in columns):
            raise UndefinedColumn(f'column "{column}" named in key does not exist', position=key_at)
    return tuple(columns), key


def _type(cursor: Parser) -> tuple[Type, int | None]:
    """Parses the type of a column. Returns it with the declared precision of a time, or None."""
    node = type_name(cursor)
    if str(node.args["kind"]) in ("timestamp", "timestamptz", "time") and len(node.expressions) == 1:
        precision = min(int(node.expressions[0].name), MICROSECONDS)
        node.set("expressions", [])
        return named_type(node), precision
    type = named_type(node)
    if type.name in WITHOUT_MODIFIERS and type.modifiers:
        hint = f"Use {WITHOUT_MODIFIERS[type.name]}."
        raise FeatureNotSupported(f"type {type} of a source's column is not supported", hint=hint, position=position(node))
    if type.general:
        raise FeatureNotSupported(f"type {type} of a source's column is not supported", hint=DECIMALS, position=position(node))
    return type, None


def kafka_topic(cursor: Parser, supported: dict[str, str]) -> KafkaTopic:
    """Parses KAFKA {BROKER 'host:port, …' TOPIC 'name' | CONNECTION name (TOPIC 'name', …)}.

    `supported`: the options that the connection accepts, with their names in WITH.
    """
    at = cursor.position
    other = cursor.any_word("kinesis", "file", "s3", "pubnub", "postgres", "mysql", "load", "avro", "webhook", "iceberg", "sql")
    if other is not None:
        raise unsupported(other.upper(), at, "Sources and sinks are of Kafka: KAFKA BROKER '…' TOPIC '…'.")
    cursor.expect_word("kafka")
    if cursor.accept_word("connection"):
        connection = relation_name(cursor)
        at = cursor.position
        settings = with_underscores(options(cursor))
        topic = option(settings, "topic")
        if topic is None:
            raise InvalidParameterValue("KAFKA CONNECTION needs a TOPIC", hint="Write KAFKA CONNECTION c (TOPIC '…').", position=at)
        further = tuple(o for pair in settings if pair[0] != "topic" for o in _of_connection(*pair, supported, at))
        return KafkaTopic(_topic(topic, at), connection=connection, options=further)
    if not cursor.accept_word("broker"):
        cursor.expect_word("brokers")
    brokers = brokers_of(cursor)
    cursor.expect_word("topic")
    at = cursor.position
    return KafkaTopic(_topic(cursor.string(), at), brokers)


def _of_connection(key: str, value: OptionValue, supported: dict[str, str], position: int) -> Options:
    """Returns the WITH options that are equivalent to an option of KAFKA CONNECTION."""
    if key == TOPIC_CONFIG and supported is SINK_OPTIONS and isinstance(value, tuple):
        return tuple((f"topic.{pair[0]}", pair[1]) for pair in value if isinstance(pair, tuple))
    if key not in supported:
        raise unsupported(f"{key.replace('_', ' ').upper()} of a KAFKA CONNECTION", position)
    return ((supported[key], value),)


def _of_registry(format: Format) -> Options:
    """Returns the options of a sink that are written after its registry connection."""
    if not isinstance(format, Avro | Protobuf) or format.connection is None:
        return ()
    for key, _ in format.options:
        if key not in REGISTRY_OPTIONS:
            raise FeatureNotSupported(f"{key.replace('_', ' ').upper()} of a SCHEMA REGISTRY CONNECTION is not supported")
    return format.options


def _topic(topic: OptionValue, position: int) -> str:
    """Returns the name of a topic. Raises 22023 if it is empty or not a string."""
    if not isinstance(topic, str) or not topic:
        raise InvalidParameterValue("the name of a topic must not be empty", position=position)
    return topic


def _on_error(cursor: Parser) -> OnError:
    """Parses DEAD LETTER, FAIL or NULL, after ON ERROR."""
    if cursor.accept_word("dead", "letter"):
        return "dead letter"
    match cursor.any_word("fail", "null"):
        case "fail":
            return "fail"
        case "null":
            return "null"
    raise cursor.error()


_INCLUDED: dict[str, Literal["key", "partition", "offset", "arrival", "timestamp", "headers"]] = {
    "key": "key",
    "partition": "partition",
    "offset": "offset",
    "arrival": "arrival",
    "timestamp": "timestamp",
    "headers": "headers",
}


def _include(cursor: Parser) -> tuple[Include, ...]:
    """Parses [INCLUDE …, …]."""
    columns: list[Include] = []
    if not cursor.accept_word("include"):
        return ()
    while True:
        at = cursor.position
        kind = cursor.any_word(*_INCLUDED, "header", "topic")
        if kind == "topic":
            raise unsupported("INCLUDE TOPIC", at, "A source reads one topic.")
        if kind is None:
            raise cursor.error()
        if kind == "header":
            header = cursor.string()
            cursor.expect_word("as")
            columns.append(Include("header", name(cursor).name, header, cursor.accept_word("bytes")))
            if not cursor.accept(","):
                return tuple(columns)
            continue
        column = name(cursor).name if kind == "timestamp" and cursor.accept_word("from") else ""
        format = cursor.string() if column and cursor.accept_word("format") else ""
        alias = name(cursor).name if cursor.accept_word("as") else None
        bytes = kind == "headers" and alias is not None and cursor.accept_word("bytes")
        columns.append(Include(_INCLUDED[kind], alias, bytes=bytes, column=column, format=format))
        if not cursor.accept(","):
            return tuple(columns)


def _envelope(cursor: Parser) -> Envelope | None:
    """Parses [ENVELOPE …]. Returns None if it is absent."""
    if not cursor.accept_word("envelope"):
        return None
    at = cursor.position
    match cursor.any_word("none", "debezium", "upsert", "materialize"):
        case "none":
            return "none"
        case "debezium":
            if cursor.at_word("upsert"):
                raise unsupported("ENVELOPE DEBEZIUM UPSERT", at, "ENVELOPE DEBEZIUM copes with compacted topics.")
            return "debezium"
        case "upsert":
            if cursor.at("("):
                raise unsupported(
                    "VALUE DECODING ERRORS", cursor.position, "Records that cannot be decoded go to the source's dead letters."
                )
            if cursor.at_word("format"):
                raise unsupported("ENVELOPE UPSERT FORMAT", cursor.position, "Write KEY FORMAT … VALUE FORMAT …")
            return "upsert"
        case "materialize":
            raise unsupported("ENVELOPE MATERIALIZE", at)
    raise cursor.error()


def _transactions(cursor: Parser) -> TransactionMetadata:
    """Parses (TRANSACTION METADATA (SOURCE name, COLLECTION 'collection'))."""
    cursor.expect("(")
    cursor.expect_word("transaction", "metadata")
    cursor.expect("(")
    cursor.expect_word("source")
    source = relation_name(cursor)
    cursor.expect(",")
    cursor.expect_word("collection")
    collection = cursor.string()
    cursor.expect(")")
    cursor.expect(")")
    return TransactionMetadata(source, collection)
