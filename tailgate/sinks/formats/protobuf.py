"""Encoding of Arrow columns (in their stored form) as Protobuf. The `.proto` text is in `tailgate.formats.events.protobuf`.

A NULL column is omitted, and a NULL array is written as an empty one. As in Avro, a row is the
concatenation of its fields, so equal rows have equal bytes.

Source: Protocol Buffers, "Encoding"; Confluent, "Wire format": 0, the schema's id, and 0 for the first message.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from tailgate.formats.varint import varint
from tailgate.formats.wire import FIRST_MESSAGE, header
from tailgate.lake.errors import NullValueNotAllowed
from tailgate.lake.tables import moments
from tailgate.lake.types import Field, Type
from tailgate.sinks.formats import jsons

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
BEFORE, AFTER = 1, 2
MICROS = 1_000_000
# ---- bytes -----------------------------------------------------------------------------------------------------------------------


def tag(number: int, wire: int) -> bytes:
    """Returns the tag of a field: its number and wire type."""
    return varint(number << 3 | wire)


def sized(data: bytes) -> bytes:
    """Returns bytes with their length in front."""
    return varint(len(data)) + data


def rows(columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]:
    """Returns the encoded message of these columns, for each row."""
    if not columns:
        return [b""] * length
    encoded = [list(_fields(number, field, array)) for number, (field, array) in enumerate(zip(columns, arrays, strict=True), 1)]
    return [b"".join(parts) for parts in zip(*encoded, strict=True)]


def _fields(number: int, field: Field, array: pa.Array) -> Iterator[bytes]:
    """Yields a column's field for each row: no bytes where it is NULL."""
    type = field.type
    encode = _encoder(number, type.element if type.is_array else type)
    for value in moments.numbers(array).to_pylist():
        if value is None:
            yield b""
        elif type.is_array:
            if None in value:
                raise NullValueNotAllowed(f'null in an array of column "{field.name}"', hint="Protobuf cannot express it: use FORMAT AVRO.")
            yield b"".join(map(encode, value))
        else:
            yield encode(value)


def _encoder(number: int, type: Type) -> Callable[[Any], bytes]:
    """Returns a function that encodes one value, with the tag of its field."""
    begin = {wire: tag(number, wire) for wire in (VARINT, FIXED64, LENGTH, FIXED32)}
    match type.name:
        case "bool" | "int2" | "int4" | "int8" | "oid":
            return lambda value: begin[VARINT] + varint(int(value))
        case "float4":
            return lambda value: begin[FIXED32] + struct.pack("<f", value)
        case "float8":
            return lambda value: begin[FIXED64] + struct.pack("<d", value)
        case "bytea":
            return lambda value: begin[LENGTH] + sized(value)
        case "timestamp" | "timestamptz":
            return lambda value: begin[LENGTH] + sized(_timestamp(value))
        case "record":
            return _record(begin[LENGTH], type)
        case "enum":
            labels = {number: label.encode() for number, label in type.labels}
            return lambda value: begin[LENGTH] + sized(labels[value])
    write = jsons.writer(type)
    quoted = type.name not in jsons.JSON_TYPES

    def text(value: Any) -> bytes:
        written = write(value)
        return begin[LENGTH] + sized((json.loads(written) if quoted and written.startswith('"') else written).encode())

    return text


def _record(begin: bytes, type: Type) -> Callable[[Any], bytes]:
    fields = [(f.type.is_array, _encoder(n, f.type.element if f.type.is_array else f.type)) for n, f in enumerate(type.fields, 1)]

    def record(row: dict[str, Any]) -> bytes:
        parts = []
        for value, (is_array, encode) in zip(row.values(), fields, strict=True):
            for each in (value or ()) if is_array else (value,):
                parts.append(b"" if each is None else encode(each))
        return begin + sized(b"".join(parts))

    return record


def _timestamp(value: int) -> bytes:
    seconds, micros = divmod(value, MICROS)
    return tag(1, VARINT) + varint(seconds) + (tag(2, VARINT) + varint(1000 * micros)) * bool(micros)


class Protobuf:
    """The format PROTOBUF: Confluent's header with the schema's id and the index of the message, then the message."""

    def __init__(self, id: int) -> None:
        self._header = header(id) + FIRST_MESSAGE

    def rows(self, columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]:
        return rows(columns, arrays, length)

    def key(self, row: bytes) -> bytes:
        return self._header + row

    def value(self, row: bytes) -> bytes:
        return self._header + row

    def change(self, before: bytes | None, after: bytes | None) -> bytes:
        old = b"" if before is None else tag(BEFORE, LENGTH) + sized(before)
        new = b"" if after is None else tag(AFTER, LENGTH) + sized(after)
        return self._header + old + new
