"""Types text, character varying, character and name.

Source: PostgreSQL 15, src/backend/utils/adt/varlena.c, varchar.c, name.c.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake.errors import NameTooLong, StringDataRightTruncation
from tailgate.lake.types import Type
from tailgate.values.codec.codec import Codec, Writer
from tailgate.values.codec.columns import ColumnReader, same_bytes, texts_themselves
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import utf8

NAME_BYTES_MAX = 63


def read_text(text: str, type: Type, style: Style) -> str:
    return text


def read_text_binary(data: bytes, type: Type) -> str:
    return utf8(data)


def read_limited(text: str, type: Type, style: Style) -> str:
    return fitted(text, type)


def read_limited_binary(data: bytes, type: Type) -> str:
    return fitted(utf8(data), type)


def fitted(text: str, type: Type) -> str:
    """Applies the length of varchar(n) or character(n), which counts characters.

    Only blanks may be cut off. Raises 22001.
    """
    if not type.modifiers:
        return text
    length = type.modifiers[0]
    if len(text) > length:
        if text[length:].strip(" "):
            raise StringDataRightTruncation(f"value too long for type {type}")
        text = text[:length]
    return text.ljust(length) if type.name == "bpchar" else text


def read_name(text: str, type: Type, style: Style) -> str:
    """Cuts a name to 63 bytes, at the end of a character."""
    data = text.encode()
    return text if len(data) <= NAME_BYTES_MAX else data[:NAME_BYTES_MAX].decode(errors="ignore")


def read_name_binary(data: bytes, type: Type) -> str:
    text = utf8(data)
    if len(data) > NAME_BYTES_MAX:
        raise NameTooLong("identifier too long", detail=f"Identifier must be less than {NAME_BYTES_MAX + 1} characters.")
    return text


def character_writer(type: Type, style: Style | None = None) -> Writer:
    """Returns a writer that pads values with blanks to the length of character(n)."""
    if not type.modifiers:
        return bytes
    width = type.modifiers[0]
    return lambda value: value if len(value) >= width else _padded(value, width)


def _padded(value: bytes, width: int) -> bytes:
    """Adds blanks up to `width` characters, which are not bytes."""
    return value + b" " * (width - len(value.decode("utf-8", "replace")))


def without_blanks(text: str) -> str:
    """Returns the key of a character: trailing blanks do not count."""
    return text.rstrip(" ")


def read_limited_column(texts: pa.ChunkedArray, type: Type) -> pa.ChunkedArray | None:
    longest = pc.max(pc.utf8_length(texts)).as_py() if type.modifiers else None
    return texts if longest is None or longest <= type.modifiers[0] else None


def read_name_column(texts: pa.ChunkedArray, type: Type) -> pa.ChunkedArray | None:
    return texts if (pc.max(pc.binary_length(texts)).as_py() or 0) <= NAME_BYTES_MAX else None


def character_column(array: pa.Array, type: Type, style: Style | None = None) -> pa.Array | None:
    """Returns the bytes of a column of character; None if values must be padded."""
    return None if type.modifiers else same_bytes(array)


def _codec(read_text: Callable[[str, Type, Style], str], read_binary: Callable[[bytes, Type], str], read_column: ColumnReader) -> Codec:
    return Codec(read_text, read_binary, lambda type, style: bytes, lambda type: bytes, read_column, same_bytes, same_bytes)


TEXT = _codec(read_text, read_text_binary, texts_themselves)
VARCHAR = _codec(read_limited, read_limited_binary, read_limited_column)
NAME = _codec(read_name, read_name_binary, read_name_column)
CHARACTER = Codec(
    read_limited,
    read_limited_binary,
    character_writer,
    character_writer,
    column_text=character_column,
    column_binary=character_column,
    order_key=without_blanks,
)
