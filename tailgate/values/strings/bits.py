"""Types bit and bit varying, whose stored form is a text of the digits 0 and 1. Its order is PostgreSQL's.

Source: PostgreSQL 15, src/backend/utils/adt/varbit.c.
"""

from __future__ import annotations

from tailgate.lake.errors import InvalidBinaryRepresentation, InvalidTextRepresentation, StringDataLengthMismatch, StringDataRightTruncation
from tailgate.lake.types import Type
from tailgate.values.codec.binary import check_size, insufficient
from tailgate.values.codec.codec import Codec
from tailgate.values.codec.columns import same_bytes
from tailgate.values.codec.style import Style

_HEX = "0123456789abcdefABCDEF"
_COUNT = 4  # bytes of the binary form before the bits: their number
BITS_MAX = 2**31 - 8


def read(text: str, type: Type, style: Style) -> str:
    """Reads binary digits, maybe after b, or hexadecimal digits after x. Raises 22P02, 22026 or 22001."""
    body = text[1:] if text[:1] in ("b", "B", "x", "X") else text
    is_hexadecimal = text[:1] in ("x", "X")
    check_length(len(body.encode()) * (4 if is_hexadecimal else 1), type)
    digits, kind = (_HEX, "hexadecimal") if is_hexadecimal else ("01", "binary")
    if invalid := body.lstrip(digits)[:1]:
        raise InvalidTextRepresentation(f'"{invalid}" is not a valid {kind} digit')
    return "".join(f"{int(digit, 16):04b}" for digit in body) if is_hexadecimal else body


def check_length(length: int, type: Type) -> None:
    """Raises 22026 or 22001 unless a number of bits is one of the type."""
    if not type.modifiers:
        return
    if type.name == "bit" and length != type.modifiers[0]:
        raise StringDataLengthMismatch(f"bit string length {length} does not match type bit({type.modifiers[0]})")
    if length > type.modifiers[0]:
        raise StringDataRightTruncation(f"bit string too long for type bit varying({type.modifiers[0]})")


def read_binary(data: bytes, type: Type) -> str:
    if len(data) < _COUNT:
        raise insufficient()
    length = int.from_bytes(data[:_COUNT], "big", signed=True)
    if not 0 <= length <= BITS_MAX:
        raise InvalidBinaryRepresentation("invalid length in external bit string")
    check_length(length, type)
    check_size(data, _COUNT + -(-length // 8))
    return "".join(f"{byte:08b}" for byte in data[_COUNT:])[:length]


def write_binary(value: bytes) -> bytes:
    size = -(-len(value) // 8)
    return len(value).to_bytes(_COUNT, "big") + (int(value.ljust(8 * size, b"0"), 2).to_bytes(size, "big") if value else b"")


BITS = Codec(read, read_binary, lambda type, style: bytes, lambda type: write_binary, column_text=same_bytes)
