"""Derives columns from a Protobuf message, one for each field.

    column type          from
    bool … float8        bool, int32, int64, float, double; uint32 is int8
    numeric(20,0)        uint64
    text, bytea          string, bytes; an enum's symbol, or its number without a symbol
    timestamptz          google.protobuf.Timestamp
    interval             google.protobuf.Duration
    the value's type     google.protobuf.Int32Value and the other wrappers
    type[]               repeated fields of these types
    jsonb                messages, groups, maps, repeated messages; google.protobuf.Struct, Value and
                         ListValue as their JSON

A column is NULL if the message shows that the field was not sent: fields of proto2 without a
default, `optional` fields of proto3, messages, members of a oneof. Other fields have their default:
0, an empty text, the enum's first symbol.

Source: Protocol Buffers, "Language Guide (proto 3)", "Field Presence".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tailgate.formats.protobuf.known import WRAPPERS
from tailgate.formats.protobuf.linking import linked
from tailgate.formats.protobuf.schema import ENUM, MESSAGE, Field, File, Message, Schema
from tailgate.formats.protobuf.schema import indexes as message_indexes
from tailgate.lake.errors import InvalidObjectDefinition, InvalidParameterValue
from tailgate.lake.types import BOOL, BYTEA, FLOAT4, FLOAT8, INT4, INT8, INTERVAL, JSONB, TEXT, TIMESTAMPTZ, Type
from tailgate.lake.types import Field as Column

UNSIGNED = Type("numeric", (20, 0))
TYPES: dict[str, Type] = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), INT4),
    **dict.fromkeys(("int64", "sint64", "sfixed64", "uint32", "fixed32"), INT8),
    **dict.fromkeys(("uint64", "fixed64"), UNSIGNED),
    "double": FLOAT8,
    "float": FLOAT4,
    "bool": BOOL,
    "string": TEXT,
    "bytes": BYTEA,
    ENUM: TEXT,
}
KNOWN: dict[str, Type] = {"google.protobuf.Timestamp": TIMESTAMPTZ, "google.protobuf.Duration": INTERVAL}


def chosen(files: tuple[File, ...], message: str | None) -> tuple[str, list[int]]:
    """Returns a message's full name and its indexes in its file. Raises 22023 if it does not exist.

    Without a name it is the first message of the last file.
    """
    last = files[-1]
    if message is None:
        if not last.messages:
            raise InvalidParameterValue("the Protobuf schema has no message")
        return last.messages[0].name, [0]
    name = message.removeprefix(".")
    if name not in linked(files).messages or name.startswith("google.protobuf."):
        raise InvalidParameterValue(f'the Protobuf schema has no message "{name}"')
    return name, next((i for f in files if (i := message_indexes(f, name)) is not None), [0])


def spec(files: tuple[File, ...], message: str, indexes: list[int] | None) -> str:
    """Returns the message's schema for the decoder (tailgate/engine/java, ProtobufSchema) and `columns`.

    It is JSON with the types that the message contains. `indexes`: the message indexes that follow
    Confluent's header; None if messages have no header.
    """
    schema = linked(files)
    messages = _reachable(schema, message)
    enums = {f.of for name in messages for f in schema.messages[name].fields if f.type == ENUM}
    return json.dumps(
        {
            "message": message,
            "index": indexes,
            "columns": [{"name": c.name, "spark": c.type.spark} for c in _columns(schema, message)],
            "messages": {
                name: {"entry": schema.messages[name].is_entry, "fields": [asdict(f) for f in schema.messages[name].fields]}
                for name in messages
            },
            "enums": {name: {str(number): symbol for symbol, number in reversed(schema.enums[name].values)} for name in sorted(enums)},
        }
    )


def columns(spec_text: str) -> tuple[Column, ...]:
    """Returns the columns of a schema that `spec` returned."""
    spec: Mapping[str, Any] = json.loads(spec_text)
    messages = {name: Message(name, tuple(Field(**f) for f in m["fields"]), is_entry=m["entry"]) for name, m in spec["messages"].items()}
    return _columns(Schema(messages, {}), spec["message"])


def merged(old: str, new: str) -> str:
    """Merges two results of `spec`: adds fields with new numbers to those of the old message.

    A field that the new message lacks is NULL if it was not sent. Other messages keep the old
    fields.
    """
    old_spec, new_spec = json.loads(old), json.loads(new)
    message = old_spec["message"]
    old_fields, new_fields = (of["messages"][of["message"]]["fields"] for of in (old_spec, new_spec))
    new_numbers, old_numbers = {f["number"] for f in new_fields}, {f["number"] for f in old_fields}
    fields = [
        f if f["number"] in new_numbers or f["repeated"] else {**f, "presence": True, "required": False, "default": None}
        for f in old_fields
    ]
    fields += [f for f in new_fields if f["number"] not in old_numbers]
    merged_spec = {
        **old_spec,
        "messages": {**new_spec["messages"], **old_spec["messages"], message: {**old_spec["messages"][message], "fields": fields}},
        "enums": {
            name: {**new_spec["enums"].get(name, {}), **old_spec["enums"].get(name, {})}
            for name in {**new_spec["enums"], **old_spec["enums"]}
        },
    }
    return json.dumps({**merged_spec, "columns": [{"name": c.name, "spark": c.type.spark} for c in columns(json.dumps(merged_spec))]})


def _reachable(schema: Schema, message: str) -> list[str]:
    """Returns the message and all messages that it contains, directly or indirectly."""
    names = [message]
    for name in names:
        names += dict.fromkeys(f.of for f in schema.messages[name].fields if f.of in schema.messages and f.of not in names)
    return names


def _columns(schema: Schema, message: str) -> tuple[Column, ...]:
    fields = schema.messages[message].fields
    if not fields:
        raise InvalidObjectDefinition(f'the Protobuf message "{message}" has no fields, and a source needs a column at least')
    return tuple(Column(f.name, _type(schema, f), f.presence and not f.required and f.default is None) for f in fields)


def _type(schema: Schema, field: Field) -> Type:
    if field.type in TYPES:
        type = TYPES[field.type]
    elif field.of in KNOWN:
        type = KNOWN[field.of]
    elif field.of in WRAPPERS and field.type == MESSAGE:
        type = TYPES[schema.messages[field.of].fields[0].type]
    else:
        return JSONB
    return type.array() if field.repeated else type
