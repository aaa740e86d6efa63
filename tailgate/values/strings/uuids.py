"""Type uuid, whose stored form is its text in lower case.

Source: PostgreSQL 15, src/backend/utils/adt/uuid.c.
"""

from __future__ import annotations

import re

from tailgate.lake.types import Type
from tailgate.values.codec.binary import check_size
from tailgate.values.codec.codec import Codec
from tailgate.values.codec.columns import same_bytes, spelled
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import invalid

_UUID = re.compile(r"(\{)?[0-9a-fA-F]{4}(?:-?[0-9a-fA-F]{4}){7}(?(1)\})")
_COMMON = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def read(text: str, type: Type, style: Style) -> str:
    if not _UUID.fullmatch(text):
        raise invalid("uuid", text)
    return _hyphenated(text.strip("{}").replace("-", "").lower())


def _hyphenated(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def read_binary(data: bytes, type: Type) -> str:
    check_size(data, 16)
    return _hyphenated(data.hex())


def write_binary(value: bytes) -> bytes:
    return bytes.fromhex(value.decode().replace("-", ""))


UUID = Codec(read, read_binary, lambda type, style: bytes, lambda type: write_binary, spelled(_COMMON), same_bytes)
