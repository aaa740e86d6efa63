"""The items of CREATE STREAM and CREATE TABLE, and the message of INSERT INTO … VALUES.

    CREATE STREAM | TABLE (columns)  ──► text of CREATE SOURCE ──► Source, DeadLetters
    CREATE … AS SELECT               ──► text of CREATE MATERIALIZED VIEW ──► MaterializedView, ViewErrors
                                     └─► text of CREATE SINK ──► Sink, dropped with the view

The texts are in PostgreSQL's dialect: they are the definitions of the items. `KsqldbItem` has the statement as typed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from tailgate.engine.ddl.kafka.registry import SchemaLookup
from tailgate.engine.ddl.kafka.sink import create_sink
from tailgate.engine.ddl.kafka.source import create_source
from tailgate.engine.ddl.view import create_view
from tailgate.lake.catalog import Catalog, DeadLetters, MaterializedView, Sink, Source, ksqldb_of
from tailgate.lake.catalog.formats import KsqldbItem, SinkFormat
from tailgate.lake.catalog.names import Name, quoted
from tailgate.lake.errors import FeatureNotSupported, ObjectNotInPrerequisiteState, TailgateError, WrongObjectType
from tailgate.sql.ksqldb import declarations, types
from tailgate.sql.ksqldb.declarations import Message, TopicProperties, topic_properties
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.queries import Translation, aggregation, derivation, from_clause
from tailgate.sql.ksqldb.statements import CreateAs, CreateItem, InsertValues
from tailgate.sql.ksqldb.translation import PSEUDO_COLUMNS
from tailgate.sql.statements import CreateSink, CreateSource, CreateView, parse
from tailgate.sql.statements.statement import Statement

StatementType = TypeVar("StatementType", bound=Statement)
# formats of a sink's values and keys by ksqlDB's names
SINK_FORMATS: dict[str, Literal["ksqldb_json", "ksqldb_delimited", "ksqldb_kafka"]] = {
    "JSON": "ksqldb_json",
    "DELIMITED": "ksqldb_delimited",
    "KAFKA": "ksqldb_kafka",
}
KAFKA_KEYS = ("varchar", "int", "bigint", "double", "bytes")  # types of keys in the format KAFKA


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The Kafka and the schema registry of ksqlDB's statements: the options --kafka and --schema-registry of the engine."""

    kafka: str = ""
    registry: str = ""

    def brokers(self) -> str:
        """Returns the addresses of the brokers. Raises 55000 if there are none."""
        if not self.kafka:
            raise ObjectNotInPrerequisiteState("there is no Kafka for statements of ksqlDB", hint="Start Tailgate with --kafka HOST:PORT.")
        return self.kafka


def topic_of(statement: CreateItem) -> TopicProperties:
    """Returns the properties of the topic of a declared stream or table. Raises 22023 or 0A000."""
    return topic_properties(statement, topic=ksqldb_name(statement.name))


def declared_source(
    statement: CreateItem, text: str, catalog: Catalog, registry: SchemaLookup, endpoints: Endpoints
) -> tuple[Source, DeadLetters]:
    """Returns the items of a declared stream or table; `text` is the statement as typed."""
    topic = topic_of(statement)
    keys = declarations.message_key(statement)
    sql = declarations.source_text(statement, topic, endpoints.brokers(), endpoints.registry)
    ksqldb = KsqldbItem(
        type=statement.type,
        statement=text,
        topic=topic.topic,
        key_format=topic.key_format,
        value_format=topic.value_format,
        message_key=keys,
    )
    with _without_position():
        return create_source(_parsed(sql, CreateSource), sql, catalog, registry, ksqldb)


def derived_view(
    statement: CreateAs, text: str, catalog: Catalog, reset: Literal["earliest", "latest"], endpoints: Endpoints
) -> MaterializedView:
    """Returns the view of CREATE {STREAM | TABLE} … AS; `text` is the statement as typed."""
    endpoints.brokers()
    source = catalog.relation(Name(statement.query.source.name, position=statement.query.source.position))
    origin = ksqldb_of(source)
    formats = ("KAFKA", "JSON") if origin is None else (origin.key_format, origin.value_format)
    topic = topic_properties(statement, topic=ksqldb_name(statement.name), formats=formats)
    if topic.value_format == "AVRO":
        raise FeatureNotSupported(
            f"VALUE_FORMAT AVRO of a derived {statement.type} is not supported",
            hint="Write WITH (value_format = 'json').",
            position=statement.position,
        )
    translation = _translation(statement, catalog)
    if len(statement.query.group_by) > 1:
        raise FeatureNotSupported("a key of several columns is not supported", hint="GROUP BY one expression.", position=statement.position)
    column_types = dict(translation.columns)
    for key in translation.message_key:
        if column_types[key].name not in KAFKA_KEYS:
            raise FeatureNotSupported(f"a key of type {types.shown(column_types[key])} is not supported", position=statement.position)
    number = _next_number(catalog)
    ksqldb = KsqldbItem(
        type=statement.type,
        statement=text,
        topic=topic.topic,
        key_format=topic.key_format,
        value_format=topic.value_format,
        message_key=translation.message_key,
        query=f"{'CSAS' if statement.type == 'stream' else 'CTAS'}_{ksqldb_name(statement.name)}_{number}",
        number=number,
        reset=reset,
    )
    sql = f"CREATE MATERIALIZED VIEW {quoted(statement.name)} WITH (on_error = 'skip') AS {translation.text}"
    with _without_position():
        view = create_view(_parsed(sql, CreateView), sql, catalog)
    assert isinstance(view, MaterializedView)
    return replace(view, ksqldb=ksqldb)


def _translation(statement: CreateAs, catalog: Catalog) -> Translation:
    """Returns the query of CREATE {STREAM | TABLE} … AS in PostgreSQL's dialect. Raises 42809 for a query of the other type."""
    query = statement.query
    source = from_clause(query, catalog)
    result = "table" if query.group_by else source.type
    if statement.type != result:
        raise WrongObjectType(
            f"the query produces a {result}, not a {statement.type}", hint=f"Use CREATE {result.upper()} … AS.", position=query.position
        )
    translation = aggregation(query, source) if query.group_by else derivation(query, source)
    if query.limit is not None:
        raise FeatureNotSupported("LIMIT of a persistent query is not supported", position=query.position)
    return translation


def derived_sink(statement: CreateAs, view: MaterializedView, catalog: Catalog, partitions: int, endpoints: Endpoints) -> Sink:
    """Returns the sink of a derived stream or table. `catalog` contains the view. `partitions`: those of its source's topic.

    A table writes the newest row of each key to a compacted topic. A stream writes each row once.
    """
    ksqldb = view.ksqldb
    assert ksqldb is not None
    topic = topic_properties(statement, topic=ksqldb.topic, formats=(ksqldb.key_format, ksqldb.value_format))
    options = [f"partition_count = {topic.partitions or partitions}"]
    if ksqldb.type == "table":
        options.append("\"topic.cleanup.policy\" = 'compact'")
    if topic.replicas is not None:
        options.append(f"replication_factor = {topic.replicas}")
    # the key of a table is unique, although that of a full join cannot be derived
    enforced = " NOT ENFORCED" if ksqldb.type == "table" else ""
    key = f" KEY ({', '.join(map(quoted, ksqldb.message_key))}){enforced}" if ksqldb.message_key else ""
    envelope = "UPSERT" if ksqldb.type == "table" else "NONE"
    home = catalog.schema_of(view).name
    sql = (
        f"CREATE SINK {Name(f'{view.name}_topic', home).sql} FROM {Name(view.name, home).sql}"
        f" INTO KAFKA BROKER '{endpoints.brokers()}' TOPIC '{ksqldb.topic}'{key}"
        f" WITH ({', '.join(options)}) FORMAT JSON ENVELOPE {envelope}"
    )
    with _without_position():
        sink = create_sink(_parsed(sql, CreateSink), sql, catalog)
    formats = SinkFormat(type=SINK_FORMATS[ksqldb.value_format]), SinkFormat(type=SINK_FORMATS[ksqldb.key_format])
    return replace(sink, value_format=formats[0], key_format=formats[1], of_view=True)


def message_of(statement: InsertValues, catalog: Catalog) -> tuple[Source, Message]:
    """Returns the source and the message of INSERT INTO … VALUES. Raises 42809 or 0A000 for an item that cannot be written so."""
    item = catalog.relation(Name(statement.name, position=statement.position))
    ksqldb = ksqldb_of(item)
    if ksqldb is None:
        raise WrongObjectType(f'"{item.name}" is not a stream or table of ksqlDB', position=statement.position)
    if not isinstance(item, Source):
        raise FeatureNotSupported(
            f"INSERT into a derived {ksqldb.type} is not supported",
            hint="Insert into the stream that it is made of.",
            position=statement.position,
        )
    columns = tuple((c.name, types.of_catalog(c.type)) for c in item.columns if c.name not in PSEUDO_COLUMNS)
    delimiter = getattr(item.value_format, "delimiter", declarations.DELIMITER)
    return item, declarations.message(statement, columns, ksqldb.message_key, ksqldb.value_format, delimiter)


def _next_number(catalog: Catalog) -> int:
    """Returns the number of the next persistent query: the greatest number of those that exist, plus 1."""
    return max((k.number for i in catalog.items.values() if (k := ksqldb_of(i)) is not None), default=-1) + 1


def _parsed(sql: str, kind: type[StatementType]) -> StatementType:
    """Returns the value of a text in PostgreSQL's dialect."""
    statement = parse(sql, "postgresql")
    assert isinstance(statement, kind)
    return statement


@contextmanager
def _without_position() -> Iterator[None]:
    """Removes the position from errors: it refers to the text in PostgreSQL's dialect."""
    try:
        yield
    except TailgateError as error:
        error.position = None
        raise
