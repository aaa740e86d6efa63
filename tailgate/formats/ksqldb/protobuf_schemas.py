"""The format PROTOBUF with a schema of the registry, whose fields may have other numbers and types than those of ksqlDB's schema.

    INT, BIGINT, DOUBLE     a number of any type, also in a wrapper such as google.protobuf.Int32Value
    VARCHAR                 string, or the symbol of an enum
    STRUCT                  message, or a oneof with its name and number: choice_0
    MAP                     map, or repeated message with key and value
    NULL, missing columns   a field that is not written

Source: ksqlDB 0.29, documentation, "Schema inference with ID"; Protocol Buffers, "Encoding".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from tailgate.formats.ksqldb import protobuf
from tailgate.formats.ksqldb.protobuf import FIXED64, LENGTH, MESSAGES, VARINT, Encode, sized, tag
from tailgate.formats.ksqldb.values import Column, Type, Values, kind
from tailgate.formats.protobuf.known import WRAPPERS
from tailgate.formats.protobuf.linking import linked
from tailgate.formats.protobuf.schema import ENUM, GROUP, Field, Message, Schema, indexes
from tailgate.formats.protobuf.text import parsed
from tailgate.formats.varint import long, varint
from tailgate.lake.errors import InvalidTextRepresentation

CACHE_MAX = 64  # schemas
GROUP_START, GROUP_END, FIXED32 = 3, 4, 5  # wire types
KNOWN = {message: name for name, (message, _) in MESSAGES.items()}  # messages of DECIMAL, DATE, TIME and TIMESTAMP

Members: TypeAlias = Mapping[str, Type]  # the types of columns or fields of a structure, by their names


def _packed(form: str) -> Encode:
    return struct.Struct(form).pack


SCALARS: dict[str, tuple[int, Encode]] = {
    **dict.fromkeys(("bool", "int32", "int64", "uint32", "uint64"), (VARINT, varint)),
    **dict.fromkeys(("sint32", "sint64"), (VARINT, long)),
    "fixed32": (FIXED32, _packed("<I")),
    "sfixed32": (FIXED32, _packed("<i")),
    "float": (FIXED32, _packed("<f")),
    "fixed64": (FIXED64, _packed("<Q")),
    "sfixed64": (FIXED64, _packed("<q")),
    "double": (FIXED64, _packed("<d")),
    "string": (LENGTH, lambda value: sized(value.encode())),
    "bytes": (LENGTH, lambda value: sized(value)),
}


@lru_cache(maxsize=CACHE_MAX)
def _parsed(text: str, name: str) -> tuple[Schema, str, bytes]:
    """Returns a schema, the full name of a message in it, the first one if `name` is empty, and its index as bytes."""
    file = parsed(text)
    message = name or file.messages[0].name
    path = indexes(file, message) or [0]
    return linked((file,)), message, b"\0" if path == [0] else b"".join(map(long, (len(path), *path)))


def index(text: str, name: str) -> bytes:
    """Returns the bytes between the id of a schema and a message: the index of the message in the schema."""
    return _parsed(text, name)[2]


def encoded(text: str, name: str, columns: Sequence[Column], values: Sequence[Values], length: int) -> list[bytes | None]:
    """Returns the message of each row. `name`: its full name in the schema, empty for the first one.

    Raises 22P02 for a value that the schema does not allow.
    """
    schema, message, _ = _parsed(text, name)
    encode = _Messages(schema).message(message, {column.name: column.type for column in columns})
    names = [column.name for column in columns]
    rows = zip(*values, strict=True) if values else ((),) * length
    try:
        return [encode(dict(zip(names, row, strict=True))) for row in rows]
    except (struct.error, OverflowError) as error:
        raise InvalidTextRepresentation(f"a row does not fit the schema of the registry: {error}") from None


class _Messages:
    """Encoders of the messages of a schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def message(self, name: str, types: Members) -> Encode:
        """Returns a function from the values of columns, by name, to the bytes of a message."""
        fields = self._schema.messages[name].fields
        oneofs = dict.fromkeys(field.oneof for field in fields if field.oneof)
        parts = [(field.name, self._field(field, types[field.name])) for field in fields if not field.oneof and field.name in types]
        for number, oneof in enumerate(oneofs):
            if (union := f"{oneof}_{number}") in types:
                members = dict(types[union][1:])
                parts.append((union, self._oneof([field for field in fields if field.oneof == oneof], members)))

        def encode(row: Mapping[str, Any]) -> bytes:
            return b"".join(part(row[name]) for name, part in parts if row[name] is not None)

        return encode

    def _oneof(self, fields: Sequence[Field], types: Members) -> Encode:
        """Returns a function that encodes the first field of a structure that is not NULL."""
        parts = [(field.name, self._field(field, types[field.name])) for field in fields if field.name in types]
        return lambda value: next((part(value[name]) for name, part in parts if value[name] is not None), b"")

    def _field(self, field: Field, type: Type) -> Encode:
        """Returns a function that encodes a field with its tag."""
        if not field.repeated:
            wire, encode = self._element(field, type)
            begin = tag(field.number, wire)
            empty = None if field.presence or field.of else {"string": "", "bytes": b""}.get(field.type, 0)
            return lambda value: b"" if value == empty and empty is not None else begin + encode(value)
        if kind(type) == "map":
            entry = self._schema.messages[field.of]
            wire, encode = LENGTH, self._entry(entry, type[1])
            begin = tag(field.number, wire)
            return lambda value: b"".join(begin + encode({"key": k, "value": v}) for k, v in value.items())
        wire, encode = self._element(field, type[1])
        default = {"varchar": "", "bytes": b""}.get(kind(type[1]), 0) if field.type in SCALARS else None
        begin = tag(field.number, wire)

        def element(item: Any) -> bytes:
            present = default if item is None else item
            return sized(b"") if present is None else encode(present)  # a message without fields

        if wire in (LENGTH, GROUP_START):
            return lambda value: b"".join(begin + element(item) for item in value)
        packed = tag(field.number, LENGTH)
        return lambda value: packed + sized(b"".join(map(element, value))) if value else b""

    def _entry(self, entry: Message, type: Type) -> Encode:
        encode = self.message(entry.name, {"key": "varchar", "value": type})
        return lambda value: sized(encode(value))

    def _element(self, field: Field, type: Type) -> tuple[int, Encode]:
        """Returns the wire type of a value, and a function that encodes it without its tag."""
        if field.type in SCALARS:
            return SCALARS[field.type]
        if field.type == ENUM:
            numbers = dict(self._schema.enums[field.of].values)
            return VARINT, lambda value: varint(_number(numbers, value, field.of))
        if field.of in WRAPPERS:
            inner = self._field(self._schema.messages[field.of].fields[0], type)
            return LENGTH, lambda value: sized(inner(value))
        if field.of in KNOWN:
            content = protobuf.value(type, "")
            return LENGTH, lambda value: sized(content(value))
        encode = self.message(field.of, dict(type[1:]))
        if field.type == GROUP:
            end = tag(field.number, GROUP_END)
            return GROUP_START, lambda value: encode(value) + end
        return LENGTH, lambda value: sized(encode(value))


def _number(numbers: Mapping[str, int], symbol: str, enum: str) -> int:
    if symbol not in numbers:
        raise InvalidTextRepresentation(f'the enum {enum} of the schema in the registry has no symbol "{symbol}"')
    return numbers[symbol]
