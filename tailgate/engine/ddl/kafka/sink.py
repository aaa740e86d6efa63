"""CREATE SINK: the sink's catalog item. `sinks.settings` documents the options.

CREATE SINK s FROM (query) … first creates the materialized view s_query, which is dropped with the
sink, and then a sink from this view. If the query, or the relation, reads the schema `tailgate`, whose
rows are not in the log, s_query is a plain view (ADR 0030).
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal

from tailgate.engine.ddl.kafka import access, connection
from tailgate.engine.ddl.view import create_view
from tailgate.engine.plan.views.streams import Streams
from tailgate.formats.events.avro import KEY_NAME, VALUE_NAME
from tailgate.formats.events.schemas import Part
from tailgate.formats.events.schemas import schema as schema_of
from tailgate.lake.catalog import Catalog, Item, MaterializedView, Sink, View
from tailgate.lake.catalog.formats import SinkFormat
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.schemas import is_system
from tailgate.lake.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidColumnReference,
    InvalidParameterValue,
    TailgateError,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
)
from tailgate.lake.types import JSONB
from tailgate.sql.bind import bind_query
from tailgate.sql.definitions import bind_definition
from tailgate.sql.new_items import normalized, schema_for, stored_relation
from tailgate.sql.statements import Avro, CreateSink, CreateView, Format, Json, Protobuf, QueryText, Text, parse
from tailgate.sql.system_queries import follows_history, reads_system

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
# compatibility levels of a registry
LEVELS = ("NONE", *(f"{word}{rest}" for word in ("BACKWARD", "FORWARD", "FULL") for rest in ("", "_TRANSITIVE")))

# options of WITH → allowed values: whole numbers (None), these words, any text or boolean (empty)
OPTIONS: dict[str, tuple[str, ...] | None] = {
    **dict.fromkeys(("partition_count", "replication_factor", "retention_ms", "retention_bytes")),
    **dict.fromkeys(("compression_type", "compression"), COMPRESSIONS),
    **dict.fromkeys(("compatibility_level", "key_compatibility_level", "value_compatibility_level"), LEVELS),
    **dict.fromkeys(("consistency_topic", "avro_key_fullname", "avro_value_fullname", "reuse_topic"), ()),
}
TOPIC_PREFIX = "topic."  # prefix of settings of the topic


def sink_view(statement: CreateSink, catalog: Catalog) -> View | MaterializedView | None:
    """Returns the view of a sink from a query or from relations of the schema `tailgate`, None for a sink from a stored relation.

    Positions of errors refer to the statement.
    """
    query, within, kind = statement.from_item, catalog, "VIEW"
    schema = schema_for(statement.name, catalog)
    if isinstance(query, Name):
        relation = catalog.relation(query)
        if not _reads_system(relation, catalog):
            return None
        columns = ", ".join(Name(column.name).sql for column in relation.columns)
        query = QueryText(f"SELECT {columns} FROM {Name(relation.name, catalog.schema_of(relation).name).sql}")
        within = catalog.stored
    elif not reads_system(bind_query(query, catalog, view=True).plan):
        kind = "MATERIALIZED VIEW"
    name = Name(f"{statement.name.name}_query", schema.name)
    text = f"CREATE {kind} {name.sql} AS {query.text}"
    view_statement = parse(text)
    assert isinstance(view_statement, CreateView)
    try:
        view = create_view(view_statement, text, within)
    except TailgateError as e:
        e.position = None if e.position is None else e.position - view_statement.query.offset + query.offset
        raise
    return view


def create_sink(statement: CreateSink, text: str, catalog: Catalog, view: View | MaterializedView | None = None) -> Sink:
    """Returns the item of a sink; `text` is the statement as typed. `view`: that of `sink_view`, which the catalog contains."""
    schema = schema_for(statement.name, catalog)
    for name, value in statement.options:
        _check_option(name, value)
    relation, depends = (_relation(statement, catalog), ()) if view is None else (view, view.depends)
    key = _key(statement, relation)
    headers = _headers_column(statement, relation)
    envelope = statement.envelope or "debezium"
    if envelope == "none" and not _append_only(relation, catalog):
        raise FeatureNotSupported(
            f'ENVELOPE NONE of {relation.kind} "{relation.name}" is not supported, because its rows may go',
            hint="Use ENVELOPE DEBEZIUM or UPSERT.",
        )
    _check_columns(relation)
    _check_text(statement, relation, key, envelope)
    if envelope == "upsert" and key is None:
        raise InvalidParameterValue("ENVELOPE UPSERT needs a key", hint="Add KEY (column, …) to the sink.")
    reached = connection.kafka(statement.connection, statement.brokers, statement.options, catalog)
    value_format, value_depends = _format(statement.value_format, catalog)
    key_format, key_depends = (None, ()) if statement.key_format is None else _format(statement.key_format, catalog)
    item = Sink(
        id=catalog.next_id,
        name=statement.name.name,
        depends=(relation.id, *sorted({*depends, *reached.depends, *value_depends, *key_depends} - {relation.id})),
        sql=text,
        brokers=reached.address,
        topic=statement.topic,
        kafka=reached.settings,
        value_format=value_format,
        key_format=key_format,
        message_key=key,
        envelope=envelope,
        snapshot=statement.snapshot,
        headers=headers,
        constant_headers=() if isinstance(statement.headers, str) else tuple(statement.headers),
        has_query=view is not None,
        settings={name: _json(value) for name, value in statement.options if not access.is_access(name)},
        schema=schema.id,
    )
    return normalized(item, statement, catalog)


def _check_option(name: str, value: object) -> None:
    """Raises 0A000 for an option that is not supported, 22023 for an invalid value."""
    if access.is_access(name) or name.startswith(TOPIC_PREFIX):
        return
    if name not in OPTIONS:
        raise FeatureNotSupported(f'option "{name}" of a sink is not supported')
    allowed = OPTIONS[name]
    if allowed is None and not re.fullmatch(r"-?[0-9]+", str(value)):
        raise InvalidParameterValue(f'option "{name}" is a whole number')
    if allowed and str(value).upper() not in map(str.upper, allowed):
        raise InvalidParameterValue(f'option "{name}" is one of {", ".join(allowed)}')


def sink_schema(sink: Sink, catalog: Catalog, part: Part) -> str:
    """Returns the schema of the values, or the keys, that a sink writes.

    Raises 42809 for a format without a schema, 42704 for a sink without a key.
    """
    relation = catalog[sink.depends[0]]
    kind = (sink.key_format if part == "key" and sink.key_format else sink.value_format).type
    if kind not in ("avro", "protobuf"):
        raise WrongObjectType(f"FORMAT {kind.upper()} has no schema", hint="FORMAT AVRO and PROTOBUF have one.")
    columns = relation.columns[: sink.known_columns.get(relation.id)]
    if part == "key":
        if sink.message_key is None:
            raise UndefinedObject(f'sink "{sink.name}" has no key', hint="Add KEY (column, …) to the sink.")
        columns = tuple(columns[i] for i in sink.message_key)
    name = sink.settings.get(f"avro_{part}_fullname", KEY_NAME if part == "key" else VALUE_NAME)
    schema = schema_of(kind, part, columns, sink.envelope, name)
    return schema if isinstance(schema, str) else json.dumps(schema, indent=2)


def _relation(statement: CreateSink, catalog: Catalog) -> Item:
    """Returns the stored relation that a sink sends."""
    assert isinstance(statement.from_item, Name), "a query has a view"
    return stored_relation(
        statement.from_item,
        catalog,
        so="it has no changes to send",
        hint="Create a materialized view of it, or send a query: CREATE SINK … FROM (SELECT …).",
    )


def _reads_system(relation: Item, catalog: Catalog) -> bool:
    """Returns whether a relation belongs to the schema `tailgate`, or is a view that reads one of these."""
    return is_system(relation.id) or (isinstance(relation, View) and reads_system(bind_definition(relation, catalog).plan))


def _headers_column(statement: CreateSink, relation: Item) -> int | None:
    """Returns the position of the column with headers, or None."""
    if not isinstance(statement.headers, str) or not statement.headers:
        return None
    names = [c.name for c in relation.columns]
    if statement.headers not in names:
        raise UndefinedColumn(f'column "{statement.headers}" named in HEADERS does not exist')
    position = names.index(statement.headers)
    if relation.columns[position].type != JSONB:
        raise DatatypeMismatch(
            f'column "{statement.headers}" named in HEADERS is of type {relation.columns[position].type}, not jsonb',
            hint="Its value is an object of texts, or an array of objects with key and value, as INCLUDE HEADERS returns it.",
        )
    return position


def _key(statement: CreateSink, relation: Item) -> tuple[int, ...] | None:
    """Returns the positions of the key's columns, or None.

    Raises 42P10 if the key of ENVELOPE UPSERT may not be unique, unless NOT ENFORCED is given.
    """
    if not statement.key:
        return None
    names = [c.name for c in relation.columns]
    for name in statement.key:
        if name not in names:
            raise UndefinedColumn(f'column "{name}" named in key does not exist')
    key = tuple(names.index(name) for name in statement.key)
    unique = relation.key is not None and set(relation.key) <= set(key)
    if statement.envelope == "upsert" and not unique and not statement.key_not_enforced:
        known_key = "none" if relation.key is None else "(" + ", ".join(names[k] for k in relation.key) + ")"
        raise InvalidColumnReference(
            "upsert key could not be validated as unique",
            detail=f"Known keys of {relation.kind} {relation.name}: {known_key}.",
            hint="Use KEY (…) NOT ENFORCED if you know that it is.",
        )
    return key


def _append_only(relation: Item, catalog: Catalog) -> bool:
    """Returns whether the rows of a relation are never retracted."""
    if isinstance(relation, View):
        return follows_history(bind_definition(relation, catalog))
    return isinstance(relation, MaterializedView) and Streams(catalog)(relation).append_only


def _check_columns(relation: Item) -> None:
    """Raises 0A000 for columns that topics cannot have."""
    for column in relation.columns:
        if column.type.multidimensional:
            hint = f"Write the column as text, or as jsonb with to_jsonb({column.name})."
            raise FeatureNotSupported(f'a sink of multidimensional arrays, as in column "{column.name}", is not supported', hint=hint)


def _check_text(statement: CreateSink, relation: Item, key: tuple[int, ...] | None, envelope: str) -> None:
    """Raises 0A000 if FORMAT TEXT is used for several columns or with ENVELOPE DEBEZIUM."""
    if isinstance(statement.value_format, Text) and (len(relation.columns) != 1 or envelope == "debezium"):
        raise FeatureNotSupported(
            "FORMAT TEXT of a sink needs a relation of one column and ENVELOPE UPSERT or NONE", hint="Use FORMAT JSON."
        )
    if isinstance(statement.key_format, Text) and (key is None or len(key) != 1):
        raise FeatureNotSupported("KEY FORMAT TEXT of a sink needs a key of one column", hint="Use KEY FORMAT JSON.")


def _format(format: Format, catalog: Catalog) -> tuple[SinkFormat, tuple[int, ...]]:
    """Returns a format, and the ids of its connection and secrets."""
    if isinstance(format, Json | Text):
        return SinkFormat(type="json" if isinstance(format, Json) else "text"), ()
    if not isinstance(format, Avro | Protobuf):
        raise FeatureNotSupported(
            f"sinks of format {type(format).__name__.upper()} are not supported", hint="Use FORMAT AVRO, PROTOBUF, JSON or TEXT."
        )
    if format.schema is not None:
        what = "an Avro" if isinstance(format, Avro) else "a Protobuf"
        raise FeatureNotSupported(f"{what} schema in the statement is not supported", hint="Use USING CONFLUENT SCHEMA REGISTRY 'url'.")
    if isinstance(format, Avro) and (format.key_strategy, format.value_strategy) != (None, None):
        raise FeatureNotSupported("KEY and VALUE STRATEGY of a sink are not supported", hint="Its schemas are made of its columns.")
    if isinstance(format, Protobuf) and format.message is not None:
        raise FeatureNotSupported("MESSAGE of a sink is not supported", hint="Add WITH (avro_value_fullname = '…') to name the message.")
    reached = connection.registry(format.connection, format.registry or "", format.options, catalog)
    name: Literal["avro", "protobuf"] = "avro" if isinstance(format, Avro) else "protobuf"
    return SinkFormat(type=name, registry=reached.address, access=reached.settings), reached.depends


def _json(value: Any) -> Any:
    return [_json(v) for v in value] if isinstance(value, tuple) else value
