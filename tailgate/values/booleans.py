"""Type boolean.

Source: PostgreSQL 15, src/backend/utils/adt/bool.c.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake.errors import ProtocolViolation
from tailgate.lake.types import Type
from tailgate.values.codec.binary import TrailingData
from tailgate.values.codec.codec import Codec
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import BLANKS, invalid

WORDS = {word[:length]: True for word in ("true", "yes") for length in range(1, len(word) + 1)}
WORDS |= {word[:length]: False for word in ("false", "no") for length in range(1, len(word) + 1)}
WORDS |= {"on": True, "of": False, "off": False, "1": True, "0": False}


def read(text: str, type: Type, style: Style) -> bool:
    word = text.strip(BLANKS)
    value = WORDS.get(word.lower()) if word.isascii() else None
    if value is None:
        raise invalid("boolean", text)
    return value


def read_binary(data: bytes, type: Type) -> bool:
    if not data:
        raise ProtocolViolation("no data left in message")
    if len(data) > 1:
        raise TrailingData
    return data != b"\0"


def write(value: bool) -> bytes:
    return b"t" if value else b"f"


def write_binary(value: bool) -> bytes:
    return b"\1" if value else b"\0"


def read_column(texts: pa.ChunkedArray, type: Type) -> pa.ChunkedArray | None:
    true, false = pc.equal(texts, "t"), pc.equal(texts, "f")
    return true if pc.all(pc.or_(true, false)).as_py() in (True, None) else None


def column_text(array: pa.Array, type: Type, style: Style) -> pa.Array:
    return pc.if_else(array, b"t", b"f").cast(pa.binary())


BOOLEAN = Codec(read, read_binary, lambda type, style: write, lambda type: write_binary, read_column, column_text)
