"""Records: "(1,abc,)". They have output functions only.

Source: PostgreSQL 15, src/backend/utils/adt/rowtypes.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from struct import pack
from typing import Any

from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import Type
from tailgate.values.codec.binary import sized
from tailgate.values.codec.codec import Codec, Value, Writer
from tailgate.values.codec.style import Style

_QUOTED = re.compile(rb'[(),"\\\s\v]|^$')


def codec_of(codec: Callable[[Type], Codec]) -> Codec:
    """Returns the codec of records, whose fields have the codecs that `codec` finds."""

    def text_writer(type: Type, style: Style) -> Writer:
        return writer([codec(field.type).text_writer(field.type, style) for field in type.fields])

    def binary_writer(type: Type) -> Writer:
        return _binary_writer([(field.type.oid, codec(field.type).binary_writer(field.type)) for field in type.fields])

    return Codec(_refuse_text, _refuse_binary, text_writer, binary_writer)


def _refuse_text(text: str, type: Type, style: Style) -> Value:
    raise FeatureNotSupported("input of anonymous composite types is not implemented")


def _refuse_binary(data: bytes, type: Type) -> Value:
    raise FeatureNotSupported("input of anonymous composite types is not implemented")


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


def _binary_writer(fields: list[tuple[int, Writer]]) -> Writer:
    heads = [(pack("!I", oid), write) for oid, write in fields]

    def record(value: tuple[Any, ...]) -> bytes:
        return pack("!i", len(heads)) + b"".join(oid + sized(write, v) for (oid, write), v in zip(heads, value, strict=True))

    return record
