"""Types macaddr and macaddr8, whose stored form is their text.

Source: PostgreSQL 15, src/backend/utils/adt/mac.c, mac8.c.
"""

from __future__ import annotations

import re

from tailgate.lake.errors import NumericValueOutOfRange
from tailgate.lake.types import Type
from tailgate.values.codec.binary import octets
from tailgate.values.codec.codec import Codec
from tailgate.values.codec.columns import same_bytes, spelled
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import BLANKS, invalid

# the formats of C's scanf(): the most characters of a number, and the separators between six of them
_FORMATS: tuple[tuple[int | None, tuple[str, ...]], ...] = (
    (None, (":",) * 5),
    (None, ("-",) * 5),
    (2, ("", "", ":", "", "")),
    (2, ("", "", "-", "", "")),
    (2, ("", ".", "", ".", "")),
    (2, ("", "-", "", "-", "")),
    (2, ("",) * 5),
)
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]*|[0-9a-fA-F]+)")
_SEPARATORS = ":-."
_HEX = "0123456789abcdefABCDEF"
MIDDLE = "ff:fe"  # the middle of a macaddr8 that a macaddr becomes


def read_macaddr(text: str, type: Type, style: Style) -> str:
    numbers = next((numbers for width, separators in _FORMATS if (numbers := _scan(text, width, separators))), None)
    if numbers is None:
        raise invalid("macaddr", text)
    if not all(0 <= number <= 255 for number in numbers):
        raise NumericValueOutOfRange(f'invalid octet value in "macaddr" value: "{text}"')
    return bytes(numbers).hex(":")


def _scan(text: str, width: int | None, separators: tuple[str, ...]) -> list[int] | None:
    """Returns six numbers of a format, or None. White space may be before each number and at the end."""
    numbers: list[int] = []
    for separator in (*separators, ""):
        text = text.lstrip(BLANKS)
        match = _NUMBER.match(text[:width])
        if match is None or not text.startswith(separator, match.end()):
            return None
        numbers.append(int(match[0] + "0" * match[0].endswith(("x", "X")), 16))
        text = text[match.end() + len(separator) :]
    return None if text.strip(BLANKS) else numbers


def read_macaddr8(text: str, type: Type, style: Style) -> str:
    """Reads pairs of digits, with one kind of separator after some of them. Six pairs are a macaddr.

    As PostgreSQL does, it ignores a single character at the end.
    """
    body = text.lstrip(BLANKS)
    pairs: list[str] = []
    separator = ""
    at = 0
    while at + 1 < len(body):
        pair = body[at : at + 2]
        if pair[0] not in _HEX or pair[1] not in _HEX or len(pairs) == 8:
            raise invalid("macaddr8", text)
        pairs.append(pair.lower())
        at += 2
        if at < len(body) and body[at] in _SEPARATORS:
            if separator not in ("", body[at]):
                raise invalid("macaddr8", text)
            separator = body[at]
            at += 1
        if len(pairs) in (6, 8) and not body[at:].strip(BLANKS):
            break
    if len(pairs) not in (6, 8):
        raise invalid("macaddr8", text)
    if len(pairs) == 6:
        pairs[3:3] = MIDDLE.split(":")
    return ":".join(pairs)


def read_macaddr_binary(data: bytes, type: Type) -> str:
    return octets(data, 6).hex(":")


def read_macaddr8_binary(data: bytes, type: Type) -> str:
    if len(data) == 6:
        return f"{data[:3].hex(':')}:{MIDDLE}:{data[3:].hex(':')}"
    return octets(data, 8).hex(":")


def write_binary(value: bytes) -> bytes:
    return bytes.fromhex(value.replace(b":", b"").decode())


_COMMON = "[0-9a-f]{2}(?::[0-9a-f]{2}){%d}"
MACADDR = Codec(read_macaddr, read_macaddr_binary, lambda type, style: bytes, lambda type: write_binary, spelled(_COMMON % 5), same_bytes)
MACADDR8 = Codec(
    read_macaddr8, read_macaddr8_binary, lambda type, style: bytes, lambda type: write_binary, spelled(_COMMON % 7), same_bytes
)
