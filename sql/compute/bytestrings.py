"""Strings of bytes: encodings, digests, single bytes and bits.

Source: PostgreSQL 15, src/backend/utils/adt/{encode,varlena,cryptohashfuncs}.c.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

from lake.errors import InvalidParameterValue, InvalidTextRepresentation, of
from sql.compute.registry import own


@own("bytea", "text", to="text")
def encode(data: bytes, form: str) -> str:
    match form.lower():
        case "hex":
            return data.hex()
        case "base64":
            text = base64.b64encode(data).decode()
            return "\n".join(text[i : i + 76] for i in range(0, len(text), 76))
        case "escape":
            return "".join("\\\\" if b == 92 else f"\\{b:03o}" if b == 0 or b > 127 else chr(b) for b in data)
    raise InvalidParameterValue(f'unrecognized encoding: "{form}"')


@own("text", "text", to="bytea")
def decode(text: str, form: str) -> bytes:
    match form.lower():
        case "hex":
            return _hexadecimal(text)
        case "base64":
            return _base64(text)
        case "escape":
            return _escaped(text)
    raise InvalidParameterValue(f'unrecognized encoding: "{form}"')


def _hexadecimal(text: str) -> bytes:
    digits = text.translate({ord(c): None for c in " \t\n\r"})
    wrong = next((c for c in digits if c not in "0123456789abcdefABCDEF"), None)
    if wrong is not None:
        raise InvalidParameterValue(f'invalid hexadecimal digit: "{wrong}"')
    if len(digits) % 2:
        raise InvalidParameterValue("invalid hexadecimal data: odd number of digits")
    return bytes.fromhex(digits)


def _base64(text: str) -> bytes:
    symbols = text.translate({ord(c): None for c in " \t\n\r"})
    body = symbols.rstrip("=")
    wrong = next((c for c in body if not (c.isascii() and (c.isalnum() or c in "+/"))), None)
    if wrong is not None:
        message = "unexpected" if wrong == "=" else "invalid symbol"
        if wrong == "=":
            raise InvalidParameterValue(f'{message} "=" while decoding base64 sequence')
        raise InvalidParameterValue(f'{message} "{wrong}" found while decoding base64 sequence')
    if len(symbols) % 4:
        raise InvalidParameterValue("invalid base64 end sequence")
    try:
        return base64.b64decode(symbols)
    except binascii.Error:
        raise InvalidParameterValue("invalid base64 end sequence") from None


def _escaped(text: str) -> bytes:
    data, out, at = text.encode(), bytearray(), 0
    while at < len(data):
        if data[at] != 92:
            out.append(data[at])
            at += 1
        elif data[at + 1 : at + 2] == b"\\":
            out.append(92)
            at += 2
        elif len(digits := data[at + 1 : at + 4]) == 3 and digits[0] in b"0123" and all(d in b"01234567" for d in digits):
            out.append(int(digits, 8))
            at += 4
        else:
            raise InvalidTextRepresentation("invalid input syntax for type bytea")
    return bytes(out)


for _bits in (224, 256, 384, 512):

    def _digest(data: bytes, name: str = f"sha{_bits}") -> bytes:
        return hashlib.new(name, data).digest()

    own("bytea", to="bytea", name=f"sha{_bits}")(_digest)


@own("bytea", to="text", name="md5_bytea")
def md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _index(data: bytes, index: int, size: int) -> None:
    if not 0 <= index < size:
        raise of("2202E", f"index {index} out of valid range, 0..{size - 1}")


@own("bytea", "int4", to="int4")
def get_byte(data: bytes, index: int) -> int:
    _index(data, index, len(data))
    return data[index]


@own("bytea", "int4", "int4", to="bytea")
def set_byte(data: bytes, index: int, value: int) -> bytes:
    _index(data, index, len(data))
    return data[:index] + bytes([value & 255]) + data[index + 1 :]


@own("bytea", "int8", to="int4")
def get_bit(data: bytes, index: int) -> int:
    _index(data, index, 8 * len(data))
    return data[index // 8] >> index % 8 & 1


@own("bytea", "int8", "int4", to="bytea")
def set_bit(data: bytes, index: int, value: int) -> bytes:
    _index(data, index, 8 * len(data))
    if value not in (0, 1):
        raise InvalidParameterValue("new bit must be 0 or 1")
    byte = data[index // 8] & ~(1 << index % 8) | value << index % 8
    return data[: index // 8] + bytes([byte]) + data[index // 8 + 1 :]


@own("bytea", to="int8", name="bit_count")
def bits(data: bytes) -> int:
    return sum(b.bit_count() for b in data)


@own("bytea", "int4", to="bytea", name="bytea_from")
def part_from(data: bytes, start: int) -> bytes:
    return data[max(start - 1, 0) :]


@own("bytea", "int4", "int4", to="bytea", name="bytea_part")
def part(data: bytes, start: int, length: int) -> bytes:
    if length < 0:
        raise of("22011", "negative substring length not allowed")
    return data[max(start - 1, 0) : max(start - 1 + length, 0)]


@own("bytea", "bytea", to="int4", name="bytea_position")
def place(part: bytes, data: bytes) -> int:
    return data.find(part) + 1


@own("bytea", "bytea", "int4", "int4", to="bytea", name="bytea_overlay")
def overlay(data: bytes, new: bytes, start: int, count: int) -> bytes:
    if start <= 0:
        raise of("22011", "negative substring length not allowed")
    return data[: start - 1] + new + data[max(start + count, 1) - 1 :]


@own("bytea", "bytea", to="bytea", name="bytea_btrim")
def trim(data: bytes, wanted: bytes) -> bytes:
    return data.strip(wanted) if wanted else data


@own("bytea", "bytea", to="bytea", name="bytea_ltrim")
def trim_left(data: bytes, wanted: bytes) -> bytes:
    return data.lstrip(wanted) if wanted else data


@own("bytea", "bytea", to="bytea", name="bytea_rtrim")
def trim_right(data: bytes, wanted: bytes) -> bytes:
    return data.rstrip(wanted) if wanted else data
