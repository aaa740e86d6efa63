"""Type bytea.

Source: PostgreSQL 15, src/backend/utils/adt/varlena.c, encode.c.
"""

from __future__ import annotations

import re

from tailgate.lake.errors import InvalidParameterValue, InvalidTextRepresentation, TailgateError
from tailgate.lake.types import Type
from tailgate.values.codec.codec import Codec, Writer
from tailgate.values.codec.columns import same_bytes
from tailgate.values.codec.style import Style

_HEX_DIGITS = "0123456789abcdefABCDEF"
_HEX_BLANKS = " \t\n\r"
_ESCAPE = re.compile(rb"\\(?:(\\)|([0-3][0-7][0-7])|)")


def read(text: str, type: Type, style: Style) -> bytes:
    return _hex(text[2:]) if text.startswith("\\x") else _escaped(text)


def _hex(text: str) -> bytes:
    if "\f" not in text and "\v" not in text:  # bytes.fromhex skips more kinds of blanks than PostgreSQL
        try:
            return bytes.fromhex(text)
        except ValueError:
            pass
    raise _hex_error(text)


def _hex_error(text: str) -> TailgateError:
    """Returns 22023 for the first digit that is wrong or missing. Blanks may be between pairs of digits."""
    at = 0
    while at < len(text):
        if text[at] in _HEX_BLANKS:
            at += 1
            continue
        for digit in text[at : at + 2]:
            if digit not in _HEX_DIGITS:
                return InvalidParameterValue(f'invalid hexadecimal digit: "{digit}"')
        at += 2
    return InvalidParameterValue("invalid hexadecimal data: odd number of digits")


def _escaped(text: str) -> bytes:
    def byte(match: re.Match[bytes]) -> bytes:
        if match[1]:
            return b"\\"
        if match[2]:
            return bytes([int(match[2], 8)])
        raise InvalidTextRepresentation("invalid input syntax for type bytea")

    return _ESCAPE.sub(byte, text.encode())


def write_hex(value: bytes) -> bytes:
    return b"\\x" + value.hex().encode()


def write_escaped(value: bytes) -> bytes:
    """
    >>> write_escaped(bytes([0, 65, 92]))
    b'\\\\000A\\\\\\\\'
    """
    return b"".join(b"\\\\" if c == 92 else bytes([c]) if 32 <= c <= 126 else b"\\%03o" % c for c in value)


def writer(type: Type, style: Style) -> Writer:
    return write_escaped if style.bytea_output == "escape" else write_hex


BYTEA = Codec(read, lambda data, type: bytes(data), writer, lambda type: bytes, column_binary=same_bytes)
