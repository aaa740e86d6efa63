"""Input and output of jsonpath, whose stored form is the text that PostgreSQL prints. It has no comparisons.

Source: PostgreSQL 15, src/backend/utils/adt/jsonpath.c.
"""

from __future__ import annotations

from tailgate.lake.errors import InvalidBinaryRepresentation
from tailgate.lake.types import Type
from tailgate.values.codec.binary import insufficient
from tailgate.values.codec.codec import Codec
from tailgate.values.codec.columns import same_bytes
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import utf8
from tailgate.values.jsonpath.parser import parse
from tailgate.values.jsonpath.printer import text

_VERSION = b"\1"  # of the binary form


def read(source: str, type: Type, style: Style) -> str:
    return text(parse(source))


def read_binary(data: bytes, type: Type) -> str:
    if not data:
        raise insufficient()
    if data[:1] != _VERSION:
        raise InvalidBinaryRepresentation(f"unsupported jsonpath version number: {data[0]}")
    return text(parse(utf8(data[1:])))


def write_binary(value: bytes) -> bytes:
    return _VERSION + value


JSONPATH = Codec(read, read_binary, lambda type, style: bytes, lambda type: write_binary, column_text=same_bytes)
