"""CREATE SINK: the sink's item. What its options mean is told in `sinks.settings`."""

from __future__ import annotations

from typing import Any

from engine.ddl import access, connection
from engine.ddl.names import free, kept
from engine.plan.plans import Streams
from lake.catalog import Catalog, Item
from lake.errors import FeatureNotSupported, InvalidColumnReference, InvalidParameterValue, ObjectNotInPrerequisiteState, UndefinedColumn
from sql.statements import Avro, CreateSink, Format, Json, Protobuf, Text


def create_sink(statement: CreateSink, text: str, catalog: Catalog) -> Item:
    """The item of a sink; `text` is the statement as typed."""
    schema = free(statement.name, catalog)
    relation = catalog.relation(statement.from_item)
    if not relation.stored:
        raise ObjectNotInPrerequisiteState(
            f'{relation.kind} "{relation.name}" is not stored, so it has no changes to send',
            hint="Create a materialized view of it and send that.",
            position=statement.from_item.position,
        )
    key = _key(statement, relation)
    envelope = statement.envelope or "debezium"
    if envelope == "none" and not _append_only(relation, catalog):
        raise FeatureNotSupported(
            f'ENVELOPE NONE of {relation.kind} "{relation.name}" is not supported, because its rows may go',
            hint="Use ENVELOPE DEBEZIUM or UPSERT.",
        )
    _check_text(statement, relation, key, envelope)
    if envelope == "upsert" and key is None:
        raise InvalidParameterValue("ENVELOPE UPSERT needs a key", hint="Add KEY (column, …) to the sink.")
    reached = connection.kafka(statement.connection, statement.brokers, statement.options, catalog)
    value_format, value_depends = _format(statement.value_format, catalog)
    key_format, key_depends = (None, ()) if statement.key_format is None else _format(statement.key_format, catalog)
    item = Item(
        id=catalog.next_id,
        kind="sink",
        name=statement.name.name,
        depends=(relation.id, *sorted({*reached.depends, *value_depends, *key_depends})),
        sql=text,
        options={
            "brokers": reached.address,
            "topic": statement.topic,
            "kafka": reached.settings,
            "value_format": value_format,
            "key_format": key_format,
            "key": None if key is None else list(key),
            "envelope": envelope,
            "snapshot": statement.snapshot,
            "with": {name: _json(value) for name, value in statement.options if not access.is_access(name)},
        },
        schema=schema.id,
    )
    return kept(item, statement, catalog)


def _key(statement: CreateSink, relation: Item) -> tuple[int, ...] | None:
    """The positions of the key's columns; unless NOT ENFORCED was said, an upsert's must identify a row."""
    if not statement.key:
        return None
    names = [c.name for c in relation.columns]
    for name in statement.key:
        if name not in names:
            raise UndefinedColumn(f'column "{name}" named in key does not exist')
    key = tuple(names.index(name) for name in statement.key)
    unique = relation.key is not None and set(relation.key) <= set(key)
    if statement.envelope == "upsert" and not unique and not statement.key_not_enforced:
        known = "none" if relation.key is None else "(" + ", ".join(names[k] for k in relation.key) + ")"
        raise InvalidColumnReference(
            "upsert key could not be validated as unique",
            detail=f"Known keys of {relation.kind} {relation.name}: {known}.",
            hint="Say KEY (…) NOT ENFORCED if you know that it is.",
        )
    return key


def _append_only(relation: Item, catalog: Catalog) -> bool:
    return relation.kind == "materialized view" and Streams(catalog)(relation).append_only


def _check_text(statement: CreateSink, relation: Item, key: tuple[int, ...] | None, envelope: str) -> None:
    """FORMAT TEXT has one column and no envelope."""
    if isinstance(statement.value_format, Text) and (len(relation.columns) != 1 or envelope == "debezium"):
        raise FeatureNotSupported(
            "FORMAT TEXT of a sink needs a relation of one column and ENVELOPE UPSERT or NONE", hint="Use FORMAT JSON."
        )
    if isinstance(statement.key_format, Text) and (key is None or len(key) != 1):
        raise FeatureNotSupported("KEY FORMAT TEXT of a sink needs a key of one column", hint="Use KEY FORMAT JSON.")


def _format(format: Format, catalog: Catalog) -> tuple[dict[str, Any], tuple[int, ...]]:
    """As the item has it, and ids of its connection and secrets."""
    if isinstance(format, Json | Text):
        return {"type": type(format).__name__.lower()}, ()
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
        raise FeatureNotSupported("MESSAGE of a sink is not supported", hint="Say WITH (avro_value_fullname = '…'): it names the message.")
    reached = connection.registry(format.connection, format.registry or "", format.options, catalog)
    return {"type": type(format).__name__.lower(), "registry": reached.address, "access": reached.settings}, reached.depends


def _json(value: Any) -> Any:
    return [_json(v) for v in value] if isinstance(value, tuple) else value
