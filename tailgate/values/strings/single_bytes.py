"""Type "char": one byte, whose stored form is the character with this number, or an empty text for 0.

Bytes above 127 are not valid UTF-8. They are written and read in octal.

Source: PostgreSQL 15, src/backend/utils/adt/char.c.
"""

from __future__ import annotations

import re

import pyarrow as pa

from tailgate.lake.types import Type
from tailgate.values.codec.binary import octets
from tailgate.values.codec.codec import Codec
from tailgate.values.codec.columns import same_bytes
from tailgate.values.codec.style import Style

ASCII_END = 128
_OCTAL = re.compile(r"\\[0-7]{3}", re.ASCII)


def character(byte: int) -> str:
    """Returns the stored form of a byte."""
    return chr(byte) if byte else ""


def byte_of(value: str) -> int:
    """Returns the byte of a stored form. The inverse of `character`."""
    return ord(value) if value else 0


def shown(value: str) -> str:
    """Returns the text of a stored form.

    >>> shown("a"), shown(""), shown("\\xe9")
    ('a', '', '\\\\351')
    """
    return value if byte_of(value) < ASCII_END else f"\\{byte_of(value):03o}"


def read(text: str, type: Type | None = None, style: Style | None = None) -> str:
    """Returns the first byte of a text, or the one that a text such as \\303 stands for."""
    if _OCTAL.fullmatch(text):
        return character(int(text[1:], 8) % 256)
    return character(text.encode()[0]) if text else ""


def read_binary(data: bytes, type: Type) -> str:
    return character(octets(data, 1)[0])


def write_text(value: bytes) -> bytes:
    return shown(value.decode()).encode()


def write_binary(value: bytes) -> bytes:
    return bytes([byte_of(value.decode())])


def _column_text(array: pa.Array, type: Type, style: Style) -> pa.Array | None:
    """Writes a column of ASCII characters, whose texts are their stored forms."""
    is_ascii = all(len(value) < 2 for value in array.unique().view(pa.binary()).to_pylist() if value is not None)
    return same_bytes(array) if is_ascii else None


SINGLE_BYTE = Codec(read, read_binary, lambda type, style: write_text, lambda type: write_binary, column_text=_column_text)
