"""The items of CREATE STREAM and CREATE TABLE.

    CREATE STREAM | TABLE (columns)  ──► text of CREATE SOURCE ──► Source, DeadLetters
    CREATE … AS SELECT               ──► text of CREATE MATERIALIZED VIEW ──► MaterializedView, ViewErrors
                                     └─► text of CREATE SINK ──► Sink, dropped with the view

The texts are in PostgreSQL's dialect: they are the definitions of the items. `KsqldbItem` has the statement as typed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from tailgate.engine.ddl.kafka.registry import SchemaLookup
from tailgate.engine.ddl.kafka.sink import create_sink
from tailgate.engine.ddl.kafka.source import create_source
from tailgate.engine.ddl.ksqldb.endpoints import Endpoints
from tailgate.engine.ddl.ksqldb.names_in_use import named
from tailgate.engine.ddl.ksqldb.schemas import TopicSchemas
from tailgate.engine.ddl.ksqldb.serdes import formats_of, with_key_name
from tailgate.engine.ddl.ksqldb.unnamed_keys import has_unnamed_key, with_key
from tailgate.engine.ddl.view import create_view
from tailgate.lake.catalog import Catalog, DeadLetters, MaterializedView, Sink, Source, ksqldb_of
from tailgate.lake.catalog.formats import KsqldbItem, SinkFormat
from tailgate.lake.catalog.names import Name, quoted
from tailgate.lake.errors import FeatureNotSupported, InvalidColumnReference, InvalidParameterValue, TailgateError, WrongObjectType
from tailgate.sql.ksqldb.declared import sources
from tailgate.sql.ksqldb.declared.formats import UNWRAPPING, WITH_SCHEMA, ItemFormat, check_columns
from tailgate.sql.ksqldb.declared.properties import TopicProperties, topic_properties
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.pseudo_columns import WINDOW_BOUNDS
from tailgate.sql.ksqldb.queries import Translation, aggregation, derivation, from_clause
from tailgate.sql.ksqldb.queries.scopes import nested_types, source_item
from tailgate.sql.ksqldb.queries.timestamps import TimestampColumn, timed
from tailgate.sql.ksqldb.statements import CreateAs, CreateItem
from tailgate.sql.numeric_types import OF_GENERAL
from tailgate.sql.statements import CreateSink, CreateSource, CreateView, parse
from tailgate.sql.statements.statement import Statement

TOPIC_PREFIX = "topic."  # of options of a sink that are settings of its topic
StatementType = TypeVar("StatementType", bound=Statement)


def topic_of(statement: CreateItem) -> TopicProperties:
    """Returns the properties of the topic of a declared stream or table. Raises 22023 or 0A000."""
    return topic_properties(statement, topic=ksqldb_name(statement.name))


def declared_source(
    statement: CreateItem, text: str, catalog: Catalog, registry: SchemaLookup, endpoints: Endpoints
) -> tuple[Source, DeadLetters]:
    """Returns the items of a declared stream or table; `text` is the statement as typed."""
    schemas = TopicSchemas(topic_of(statement), registry, endpoints, catalog)
    is_unnamed = has_unnamed_key(statement)
    if is_unnamed:
        statement = with_key(statement, topic_of(statement).topic, schemas.value_names(statement), catalog)
        schemas = TopicSchemas(topic_of(statement), registry, endpoints, catalog)
    complete, topic = schemas.completed(statement)
    sources.check_item(complete, topic)
    keys, values = sources.message_key(complete), sources.value_columns(complete)
    endpoint = sources.Endpoint(
        endpoints.topic(topic.topic),
        endpoints.registry_clause() if "AVRO" in (topic.key.name, topic.value.name) else "",
        schemas.message("key", topic.key, keys, topic.key_schema_id),
        schemas.message("value", topic.value, values, topic.value_schema_id),
    )
    sql = sources.source_text(complete, topic, endpoint)
    bounds = () if topic.window is None else WINDOW_BOUNDS if topic.window.form == "session" else WINDOW_BOUNDS[:1]
    ksqldb = KsqldbItem(
        type=complete.type,
        statement=text,
        topic=topic.topic,
        **_formats(topic),
        message_key=(*(column.name for column in keys), *bounds),
        unnamed_key=is_unnamed,
        types=nested_types((c.name, c.type) for c in complete.columns),
        read_only=complete.source,
    )
    with _without_position(), named(statement, catalog):
        return create_source(_parsed(sql, CreateSource), sql, endpoints.visible(catalog), registry, ksqldb)


@dataclass(frozen=True, slots=True)
class Replaced:
    """The columns of a view that is replaced. `first`: those that come first, in their order. `hidden`: as of `derivation`."""

    first: Sequence[str]
    hidden: Collection[str] | None


def derived_view(
    statement: CreateAs,
    text: str,
    catalog: Catalog,
    reset: Literal["earliest", "latest"],
    registry: SchemaLookup,
    endpoints: Endpoints,
    replaced: Replaced | None = None,
) -> MaterializedView:
    """Returns the view of CREATE {STREAM | TABLE} … AS; `text` is the statement as typed.

    `replaced`: the view that it replaces, if any.
    """
    endpoints.brokers()
    source = source_item(statement.query.source, catalog)
    origin = ksqldb_of(source)
    formats = (ItemFormat("KAFKA"), ItemFormat("JSON")) if origin is None else formats_of(origin)
    topic = topic_properties(statement, topic=ksqldb_name(statement.name), formats=formats)
    replaced = replaced or Replaced((), None)
    translation = _translation(statement, catalog, replaced.hidden)
    topic = _with_key_format(topic, statement, translation)
    if {topic.key.name, topic.value.name} & set(WITH_SCHEMA):
        endpoints.schemas()
    _check_retention(statement, topic, translation)
    timestamp = TimestampColumn(topic.timestamp, topic.timestamp_format)
    translation = timed(translation, timestamp, statement.position, is_stream=statement.type == "stream")
    keys = [(name, type) for name, type in translation.columns if name in translation.message_key and name not in WINDOW_BOUNDS]
    check_columns(topic.key.name, keys, statement.position, is_key=True)
    hidden = (*translation.message_key, *WINDOW_BOUNDS)
    values = [column for column in translation.columns if column[0] not in hidden]
    if not values:
        raise InvalidColumnReference("The projection contains no value columns.", position=statement.query.position)
    check_columns(topic.value.name, values, statement.position)
    sources.check_wrapping(statement, len(values))
    if (
        not statement.wraps
        and len(values) == 1
        and topic.value.name in UNWRAPPING
        and "WRAP_SINGLE_VALUE" not in dict(statement.properties)
    ):
        topic = replace(topic, value=replace(topic.value, wrapped=False))
    topic = TopicSchemas(topic, registry, endpoints, catalog).written(tuple(keys), tuple(values), statement.position)
    number = catalog.next_query
    ksqldb = KsqldbItem(
        type=statement.type,
        statement=text,
        topic=topic.topic,
        **_formats(topic),
        message_key=translation.message_key,
        unnamed_key=translation.unnamed_key,
        types=nested_types(translation.columns),
        query=f"{'CSAS' if statement.type == 'stream' else 'CTAS'}_{ksqldb_name(statement.name)}_{number}",
        number=number,
        reset=reset,
    )
    with named(statement, catalog):
        return replace(view_of(statement.name, translation, catalog, replaced.first), ksqldb=ksqldb)


def _check_retention(statement: CreateAs, topic: TopicProperties, translation: Translation) -> None:
    """Raises 22023 for RETENTION_MS of a table without windows."""
    if topic.retention_ms is not None and statement.type == "table" and WINDOW_BOUNDS[0] not in translation.message_key:
        raise InvalidParameterValue(
            "Invalid config variable in the WITH clause: RETENTION_MS. Non-windowed tables do not support retention.",
            position=statement.position,
        )


def _with_key_format(topic: TopicProperties, statement: CreateAs, translation: Translation) -> TopicProperties:
    """Returns the properties of a topic with the format of its keys: NONE after PARTITION BY NULL, otherwise another one than NONE."""
    if dict(statement.properties).keys() & {"FORMAT", "KEY_FORMAT"}:
        return topic
    if not translation.message_key and statement.query.partition_by:
        return replace(topic, key=ItemFormat("NONE"))
    return replace(topic, key=ItemFormat(statement.key_format)) if translation.message_key and topic.key.name == "NONE" else topic


def view_of(name: str, translation: Translation, catalog: Catalog, first: Sequence[str] = ()) -> MaterializedView:
    """Returns the view of a persistent query, without its properties. `first`: as of Replaced."""
    query = translation.text
    if first:
        others = [column for column, _ in translation.columns if column not in first]
        query = f"SELECT {', '.join(map(quoted, (*first, *others)))} FROM ({query}) AS upgraded"
    sql = f"CREATE MATERIALIZED VIEW {quoted(name)} WITH (on_error = 'skip') AS {query}"
    with _without_position():
        view = create_view(_parsed(sql, CreateView), sql, catalog, numeric_rules=OF_GENERAL)
    assert isinstance(view, MaterializedView)
    return view


def _translation(statement: CreateAs, catalog: Catalog, hidden: Collection[str] | None) -> Translation:
    """Returns the query of CREATE {STREAM | TABLE} … AS in PostgreSQL's dialect. Raises 42809 for a query of the other type."""
    query = statement.query
    source = from_clause(query, catalog)
    result = "table" if query.group_by else source.type
    if statement.type != result:
        raise WrongObjectType(
            f"Invalid result type. Your SELECT query produces a {result.upper()}."
            f" Please use CREATE {result.upper()} AS SELECT statement instead.",
            position=query.position,
        )
    translation = aggregation(query, source, statement.name) if query.group_by else derivation(query, source, statement.name, hidden=hidden)
    if query.limit is not None:
        raise FeatureNotSupported("LIMIT of a persistent query is not supported", position=query.position)
    return translation


def derived_sink(statement: CreateAs, view: MaterializedView, catalog: Catalog, partitions: int, endpoints: Endpoints) -> Sink:
    """Returns the sink of a derived stream or table. `catalog` contains the view. `partitions`: those of its source's topic.

    A table writes the newest row of each key to a compacted topic, which also deletes old records if its keys have windows. A stream
    writes each row once.
    """
    ksqldb = view.ksqldb
    assert ksqldb is not None
    topic = topic_properties(statement, topic=ksqldb.topic, formats=formats_of(ksqldb))
    options = [f"partition_count = {topic.partitions or partitions}"]
    if ksqldb.type == "table":
        policy = "compact,delete" if set(ksqldb.message_key) & set(WINDOW_BOUNDS) else "compact"
        options.append(f"\"topic.cleanup.policy\" = '{policy}'")
    window = statement.query.window
    retentions = [ms for ms in (topic.retention_ms, None if window is None else window.retention) if ms is not None]
    if retentions:
        options.append(f"retention_ms = {max(retentions)}")
    if topic.replicas is not None:
        options.append(f"replication_factor = {topic.replicas}")
    return writing_sink(view, options, catalog, endpoints)


def writing_sink(view: MaterializedView, options: list[str], catalog: Catalog, endpoints: Endpoints) -> Sink:
    """Returns the sink that writes the rows of a persistent query to its topic. `options`: those of its WITH."""
    ksqldb = view.ksqldb
    assert ksqldb is not None
    # the key of a table is unique, although that of a full join cannot be derived
    enforced = " NOT ENFORCED" if ksqldb.type == "table" else ""
    key = f" KEY ({', '.join(map(quoted, ksqldb.message_key))}){enforced}" if ksqldb.message_key else ""
    envelope = "UPSERT" if ksqldb.type == "table" else "NONE"
    home = catalog.schema_of(view).name
    written = f" WITH ({', '.join(options)})" if options else ""
    sql = (
        f"CREATE SINK {Name(f'{view.name}_topic', home).sql} FROM {Name(view.name, home).sql}"
        f" INTO {endpoints.topic(ksqldb.topic)}{key}"
        f"{written} FORMAT JSON ENVELOPE {envelope}"
    )
    with _without_position():
        sink = create_sink(_parsed(sql, CreateSink), sql, endpoints.visible(catalog))
    key_columns = sum(name not in WINDOW_BOUNDS for name in ksqldb.message_key)
    key_format, value_format = formats_of(ksqldb)
    written_item = catalog[ksqldb.into] if ksqldb.into else view
    key_form = _sink_format(with_key_name(sources.key_format(key_format, key_columns), written_item.name), endpoints)
    value_form = _sink_format(value_format, endpoints)
    if endpoints.registry_connection is not None and (value_form.registry or key_form.registry):
        sink = replace(sink, depends=(sink.depends[0], *sorted({*sink.depends[1:], endpoints.registry_connection.id})))
    return replace(sink, value_format=value_form, key_format=key_form, of_view=True)


@dataclass(frozen=True, slots=True)
class SinkTopic:
    """The topic of a derived stream or table. `replicas`: None for the broker's default."""

    name: str
    partitions: int
    replicas: int | None
    config: dict[str, str]


def topic_of_sink(sink: Sink) -> SinkTopic | None:
    """Returns the topic that a sink of `derived_sink` writes; None for one of INSERT INTO … SELECT, whose topic exists."""
    options = sink.settings
    if "partition_count" not in options:
        return None
    config = {name.removeprefix(TOPIC_PREFIX): str(value) for name, value in options.items() if name.startswith(TOPIC_PREFIX)}
    if "retention_ms" in options:
        config["retention.ms"] = str(options["retention_ms"])
    return SinkTopic(sink.topic, int(options["partition_count"]), options.get("replication_factor"), config)


def _formats(topic: TopicProperties) -> dict[str, Any]:
    """Returns the formats of a topic as fields of KsqldbItem."""
    window = {} if topic.window is None else {"window": topic.window.form, "window_size": topic.window.size}
    return {
        "key_format": topic.key.name,
        "value_format": topic.value.name,
        "key_delimiter": topic.key.delimiter,
        "value_delimiter": topic.value.delimiter,
        "wrapped": topic.value.wrapped,
        "key_schema_name": topic.key.schema_name,
        "value_schema_name": topic.value.schema_name,
        "key_nullable": topic.key.nullable,
        "value_nullable": topic.value.nullable,
        "key_schema": topic.key.schema,
        "value_schema": topic.value.schema,
        **window,
    }


def _sink_format(format: ItemFormat, endpoints: Endpoints) -> SinkFormat:
    return SinkFormat(
        type="ksqldb",
        name=format.name,
        delimiter=format.delimiter,
        wrapped=format.wrapped,
        schema_name=format.schema_name,
        nullable=format.nullable,
        schema=format.schema,
        registry=endpoints.schemas() if format.name in WITH_SCHEMA else None,
        access=(endpoints.registry_settings or None) if format.name in WITH_SCHEMA else None,
    )


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
