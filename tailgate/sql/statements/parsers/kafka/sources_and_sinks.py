"""Parses CREATE SOURCE and CREATE SINK, and statements about dead letters, pauses and topics.

Source: Materialize 0.8 to 0.25, "CREATE SOURCE: Kafka", "CREATE SINK".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tailgate.lake.errors import DuplicateColumn, FeatureNotSupported, InvalidParameterValue, UndefinedColumn
from tailgate.lake.names import Name
from tailgate.lake.types import Type
from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.grammar.type_resolution import resolve
from tailgate.sql.grammar.types import type_name
from tailgate.sql.statements.kafka_statements import (
    Avro,
    ColumnDefinition,
    CreateSink,
    CreateSource,
    DeleteDeadLetters,
    Envelope,
    Format,
    Include,
    Pause,
    Print,
    Protobuf,
    RetryDeadLetters,
    TransactionMetadata,
)
from tailgate.sql.statements.parsers.clauses import column_names, if_not_exists, options, query, relation_name, with_options
from tailgate.sql.statements.parsers.kafka.connections import spelled
from tailgate.sql.statements.parsers.kafka.formats import formats, unsupported
from tailgate.sql.statements.parsers.writes import where
from tailgate.sql.statements.values import Options, OptionValue, QueryText, option

OnError: TypeAlias = Literal["dead letter", "fail", "null"]

DEFAULT_PORT = 9092
MICROSECONDS = 6  # fractional digits of seconds

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
class Place:
    """A topic and its brokers or connection. `options` have the names of WITH options."""

    topic: str
    brokers: str = ""
    connection: Name | None = None
    options: Options = ()


def create_source(cursor: Parser, *, materialized: bool) -> CreateSource:
    """Parses the rest of CREATE [MATERIALIZED] SOURCE."""
    absent = if_not_exists(cursor)
    this = relation_name(cursor)
    columns, primary_key = _columns(cursor) if cursor.at("(") else (None, ())
    if cursor.at_word("in", "cluster"):
        raise unsupported("IN CLUSTER", cursor.position)
    cursor.expect_word("from")
    place = _kafka(cursor, SOURCE_OPTIONS)
    found = place.options
    if cursor.word("with"):
        found += options(cursor)
    key_format, value_format = formats(cursor)
    include = _include(cursor)
    envelope: Envelope = _envelope(cursor) or "none"
    transactions = _transactions(cursor) if envelope == "debezium" and cursor.at("(") else None
    on_error: OnError = _on_error(cursor) if cursor.word("on", "error") else "dead letter"
    if cursor.at_word("expose"):
        raise unsupported("EXPOSE PROGRESS", cursor.position)
    last, clause = with_options(cursor)
    found += last
    what = value_format, key_format, envelope, columns, primary_key, include, on_error, found
    return CreateSource(this, place.brokers, place.topic, *what, absent, materialized, place.connection, transactions, clause)


def create_sink(cursor: Parser) -> CreateSink:
    """Parses the rest of CREATE SINK."""
    absent = if_not_exists(cursor)
    this = relation_name(cursor)
    if cursor.at_word("in", "cluster"):
        raise unsupported("IN CLUSTER", cursor.position)
    cursor.expect_word("from")
    item = _relation_or_query(cursor)
    cursor.expect_word("into")
    place = _kafka(cursor, SINK_OPTIONS)
    key: tuple[str, ...] = ()
    not_enforced = False
    if cursor.word("key"):
        key = column_names(cursor)
        not_enforced = cursor.word("not", "enforced")
        for i, column in enumerate(key):
            if column in key[:i]:
                raise InvalidParameterValue(f"repeated column name in sink key: {column}")
    headers = _headers(cursor) if cursor.word("headers") else ""
    found = place.options + _consistency(cursor)
    snapshot = True
    if cursor.at_word("with") and cursor.at("(", 1):
        cursor.advance()
        found += options(cursor)
    key_format, value_format = formats(cursor)
    envelope = _envelope(cursor)
    while cursor.at_word("with") or cursor.at_word("without"):
        if cursor.word("without", "snapshot"):
            snapshot = False
        elif not cursor.word("with", "snapshot"):
            cursor.expect_word("with")
            found += options(cursor)
    snapshot = bool(option(found, "snapshot", snapshot))
    found = tuple(o for o in found if o[0] != "snapshot")
    if cursor.at_word("as", "of"):
        raise unsupported("AS OF of a sink", cursor.position)
    found = _of_registry(value_format) + (() if key_format is None else _of_registry(key_format)) + found
    what = value_format, key_format, envelope, key, not_enforced, snapshot, found
    return CreateSink(this, item, place.brokers, place.topic, *what, absent, place.connection, headers)


def _relation_or_query(cursor: Parser) -> Name | QueryText:
    if not cursor.sign("("):
        return relation_name(cursor)
    found = query(cursor)
    cursor.expect(")")
    return found


def _consistency(cursor: Parser) -> Options:
    """Parses [CONSISTENCY (TOPIC 'name' [FORMAT JSON])] to the option consistency_topic of WITH."""
    if not cursor.word("consistency"):
        return ()
    cursor.expect("(")
    cursor.expect_word("topic")
    topic = cursor.string()
    at = cursor.position
    if cursor.word("format") and not cursor.word("json"):
        raise unsupported("a consistency topic in another format than JSON", at)
    cursor.expect(")")
    return (("consistency_topic", topic),)


def _headers(cursor: Parser) -> str | tuple[tuple[str, str], ...]:
    """Parses {column | ('name' = 'value', …)}."""
    if not cursor.sign("("):
        return name(cursor).name
    found = cursor.listed(_header)
    cursor.expect(")")
    return tuple(found)


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
            cursor.word("primary", "key")
            key = column_names(cursor)
            cursor.word("not", "enforced")
        else:
            at = cursor.position
            column = name(cursor).name
            if any(c.name == column for c in columns):
                raise DuplicateColumn(f'column "{column}" specified more than once', position=at)
            if cursor.at(",") or cursor.at(")"):
                raise unsupported("a column of a source without a type", at, "Write its type, or rename columns in a view.")
            type, precision = _type(cursor)
            nullable = True
            while (word := cursor.any_word("not", "null", "primary")) is not None:
                if word == "not":
                    cursor.expect_word("null")
                    nullable = False
                elif word == "primary":
                    cursor.expect_word("key")
                    key, nullable = (column,), False
            columns.append(ColumnDefinition(column, type, nullable, at, precision))
        if not cursor.sign(","):
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
        return resolve(node), precision
    return resolve(node), None


def _kafka(cursor: Parser, known: dict[str, str]) -> Place:
    """Parses KAFKA {BROKER 'host:port, …' TOPIC 'name' | CONNECTION name (TOPIC 'name', …)}.

    `known`: the options that the connection accepts, with their names in WITH.
    """
    at = cursor.position
    other = cursor.any_word("kinesis", "file", "s3", "pubnub", "postgres", "mysql", "load", "avro", "webhook", "iceberg", "sql")
    if other is not None:
        raise unsupported(other.upper(), at, "Sources and sinks are of Kafka: KAFKA BROKER '…' TOPIC '…'.")
    cursor.expect_word("kafka")
    if cursor.word("connection"):
        connection = relation_name(cursor)
        at = cursor.position
        found = spelled(options(cursor))
        topic = option(found, "topic")
        if topic is None:
            raise InvalidParameterValue("KAFKA CONNECTION needs a TOPIC", hint="Write KAFKA CONNECTION c (TOPIC '…').", position=at)
        further = tuple(o for said in found if said[0] != "topic" for o in _of_connection(*said, known, at))
        return Place(_topic(topic, at), connection=connection, options=further)
    if not cursor.word("broker"):
        cursor.expect_word("brokers")
    brokers = brokers_of(cursor)
    cursor.expect_word("topic")
    at = cursor.position
    return Place(_topic(cursor.string(), at), brokers)


def _of_connection(said: str, value: OptionValue, known: dict[str, str], position: int) -> Options:
    """Returns the WITH options that are equivalent to an option of KAFKA CONNECTION."""
    if said == TOPIC_CONFIG and known is SINK_OPTIONS and isinstance(value, tuple):
        return tuple((f"topic.{pair[0]}", pair[1]) for pair in value if isinstance(pair, tuple))
    if said not in known:
        raise unsupported(f"{said.replace('_', ' ').upper()} of a KAFKA CONNECTION", position)
    return ((known[said], value),)


def _of_registry(format: Format) -> Options:
    """Returns the options of a sink that are written after its registry connection."""
    if not isinstance(format, Avro | Protobuf) or format.connection is None:
        return ()
    for said, _ in format.options:
        if said not in REGISTRY_OPTIONS:
            raise FeatureNotSupported(f"{said.replace('_', ' ').upper()} of a SCHEMA REGISTRY CONNECTION is not supported")
    return format.options


def _topic(topic: OptionValue, position: int) -> str:
    """Returns the name of a topic. Raises 22023 if it is empty or not a string."""
    if not isinstance(topic, str) or not topic:
        raise InvalidParameterValue("the name of a topic must not be empty", position=position)
    return topic


def _address(address: str, position: int | None) -> str:
    """Returns an address with its port, by default 9092. An IPv6 address must be in brackets."""
    if not address:
        raise InvalidParameterValue("the address of a broker must not be empty", position=position)
    host, colon, port = address.rpartition(":")
    if not colon or (address.startswith("[") and address.endswith("]")):
        return f"{address}:{DEFAULT_PORT}"
    if not port.isdigit() or not 0 < int(port) < 65536 or not host:
        raise InvalidParameterValue(f'"{address}" is not the address of a broker', hint="Write host:port.", position=position)
    return address


def _on_error(cursor: Parser) -> OnError:
    """Parses DEAD LETTER, FAIL or NULL, after ON ERROR."""
    if cursor.word("dead", "letter"):
        return "dead letter"
    match cursor.any_word("fail", "null"):
        case "fail":
            return "fail"
        case "null":
            return "null"
    raise cursor.error()


def pause(cursor: Parser) -> Pause:
    """Parses {PAUSE | RESUME} SOURCE name, …"""
    resume = cursor.any_word("pause", "resume") == "resume"
    cursor.expect_word("source")
    found = cursor.listed(relation_name)
    return Pause(tuple(found), resume)


def retry(cursor: Parser) -> RetryDeadLetters:
    """Parses RETRY DEAD LETTERS OF source."""
    cursor.expect_word("retry", "dead", "letters", "of")
    return RetryDeadLetters(relation_name(cursor))


def delete_dead_letters(cursor: Parser) -> DeleteDeadLetters:
    """Parses DELETE DEAD LETTERS OF source [WHERE condition]."""
    cursor.expect_word("delete", "dead", "letters", "of")
    return DeleteDeadLetters(relation_name(cursor), where(cursor))


def print_(cursor: Parser) -> Print:
    """Parses PRINT 'topic' [FROM …] [FROM BEGINNING] [LIMIT n]."""
    cursor.expect_word("print")
    topic = cursor.string() if cursor.token.kind == "string" else name(cursor).name
    brokers = ""
    connection: Name | None = None
    if cursor.word("from", "broker"):
        brokers = brokers_of(cursor)
    elif cursor.word("from", "connection"):
        connection = relation_name(cursor)
    beginning = cursor.word("from", "beginning")
    return Print(topic, brokers, beginning, cursor.integer() if cursor.word("limit") else None, connection)


def brokers_of(cursor: Parser) -> str:
    """Parses 'host:port, …'. Returns the addresses, each with a port."""
    at = cursor.position
    return addresses(",".join(cursor.listed(Parser.string)), at)


def addresses(listed: str, position: int | None = None) -> str:
    """Returns a comma-separated list of brokers with the default port added where it is missing."""
    return ",".join(_address(a.strip(), position) for a in listed.split(","))


def _include(cursor: Parser) -> tuple[Include, ...]:
    """Parses [INCLUDE …, …]."""
    found: list[Include] = []
    if not cursor.word("include"):
        return ()
    while True:
        at = cursor.position
        kind = cursor.any_word("key", "partition", "offset", "timestamp", "headers", "header", "topic")
        if kind == "topic":
            raise unsupported("INCLUDE TOPIC", at, "A source reads one topic.")
        if kind is None:
            raise cursor.error()
        if kind == "header":
            header = cursor.string()
            cursor.expect_word("as")
            found.append(Include("header", name(cursor).name, header, cursor.word("bytes")))
            if not cursor.sign(","):
                return tuple(found)
            continue
        found.append(Include(kind, name(cursor).name if cursor.word("as") else None))  # type: ignore[arg-type]
        if not cursor.sign(","):
            return tuple(found)


def _envelope(cursor: Parser) -> Envelope | None:
    """Parses [ENVELOPE …]. Returns None if it is absent."""
    if not cursor.word("envelope"):
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
