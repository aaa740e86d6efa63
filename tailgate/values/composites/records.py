"""Records: "(1,abc,)". Those without a composite type have output functions only.

Source: PostgreSQL 15, src/backend/utils/adt/rowtypes.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from struct import Struct, pack
from typing import Any

from tailgate.lake.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidBinaryRepresentation,
)
from tailgate.lake.types import BY_OID, Type
from tailgate.values.codec.binary import TrailingData, insufficient, sized
from tailgate.values.codec.codec import Codec, Value, Writer
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import BLANKS, after_blanks, malformed, read_field

_QUOTED = re.compile(rb'[(),"\\\s\v]|^$')


def codec_of(codec: Callable[[Type], Codec]) -> Codec:
    """Returns the codec of records, whose fields have the codecs that `codec` finds."""

    def text_writer(type: Type, style: Style) -> Writer:
        return writer([codec(field.type).text_writer(field.type, style) for field in type.fields])

    def binary_writer(type: Type) -> Writer:
        return _binary_writer([(field.type.oid, codec(field.type).binary_writer(field.type)) for field in type.fields])

    def read_text(text: str, type: Type, style: Style) -> Value:
        _check_named(type)
        pairs = zip(parsed(text, len(type.fields)), type.fields, strict=True)
        return tuple(None if t is None else codec(f.type).read_text(t, f.type, style) for t, f in pairs)

    def read_binary(data: bytes, type: Type) -> Value:
        _check_named(type)
        return _read_binary(data, type, lambda data, of: codec(of).read_binary(data, of))

    return Codec(read_text, read_binary, text_writer, binary_writer)


def _check_named(type: Type) -> None:
    if type.composite is None:
        raise FeatureNotSupported("input of anonymous composite types is not implemented")


# --- text ----------------------------------------------------------------------------------------


def parsed(text: str, width: int) -> list[str | None]:
    r"""Returns the texts of a number of fields, None for NULL. Raises 22P02.

    >>> parsed('(1,"a ""b"" c",,"")', 4)
    ['1', 'a "b" c', None, '']
    """
    at = after_blanks(text, 0)
    if text[at : at + 1] != "(":
        raise malformed("record", text, "Missing left parenthesis.")
    at += 1
    fields: list[str | None] = []
    for number in range(width):
        if number:
            if text[at : at + 1] != ",":
                raise malformed("record", text, "Too few columns.")
            at += 1
        value, at = read_field("record", text, at, ",)")
        fields.append(value)
    if text[at : at + 1] != ")":
        raise malformed("record", text, "Too many columns.")
    if text[at + 1 :].strip(BLANKS):
        raise malformed("record", text, "Junk after right parenthesis.")
    return fields


def quote(text: bytes) -> bytes:
    """Returns the text of a field, in quotes if it needs them."""
    if _QUOTED.search(text):
        return b'"' + text.replace(b"\\", b"\\\\").replace(b'"', b'""') + b'"'
    return text


def writer(fields: list[Writer]) -> Writer:
    r"""
    >>> writer([lambda v: b"%d" % v, lambda v: v, bytes])((1, b'a "b" c', None)).decode()
    '(1,"a ""b"" c",)'
    """

    def write(value: tuple[Any, ...]) -> bytes:
        return b"(" + b",".join(b"" if v is None else quote(f(v)) for f, v in zip(fields, value, strict=True)) + b")"

    return write


# --- binary --------------------------------------------------------------------------------------

_COUNT, _HEAD = Struct("!i"), Struct("!Ii")  # the number of fields; the oid and the length of one


def _read_binary(data: bytes, type: Type, read: Callable[[bytes, Type], Value]) -> Value:
    if len(data) < _COUNT.size:
        raise insufficient()
    (count,) = _COUNT.unpack_from(data)
    if count != len(type.fields):
        raise DatatypeMismatch(f"wrong number of columns: {count}, expected {len(type.fields)}")
    values: list[Value] = []
    at = _COUNT.size
    for number, field in enumerate(type.fields, 1):
        if at + _HEAD.size > len(data):
            raise insufficient()
        oid, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if oid != field.type.oid:
            pair = f"{oid} ({_name(oid)}) instead of expected {field.type.oid} ({field.type})"
            raise DatatypeMismatch(f"binary data has type {pair} in record column {number}")
        if length < -1 or at + length > len(data):
            raise InvalidBinaryRepresentation("insufficient data left in message")
        if length == -1:
            values.append(None)
            continue
        try:
            values.append(read(data[at : at + length], field.type))
        except TrailingData:
            raise InvalidBinaryRepresentation(f"improper binary format in record column {number}") from None
        at += length
    if at != len(data):
        raise TrailingData
    return tuple(values)


def _name(oid: int) -> str:
    return str(BY_OID[oid]) if oid in BY_OID else "???"


def _binary_writer(fields: list[tuple[int, Writer]]) -> Writer:
    heads = [(pack("!I", oid), write) for oid, write in fields]

    def record(value: tuple[Any, ...]) -> bytes:
        return pack("!i", len(heads)) + b"".join(oid + sized(write, v) for (oid, write), v in zip(heads, value, strict=True))

    return record
