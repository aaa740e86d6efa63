"""Functions of bytea: encodings, digests, single bytes and bits, substrings.

Source: PostgreSQL 15, src/backend/utils/adt/{encode,varlena,cryptohashfuncs}.c, contrib/pgcrypto/{pgcrypto,px-hmac}.c.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac as hmacs
import re

from tailgate.lake.errors import (
    ArraySubscriptError,
    CharacterNotInRepertoire,
    InvalidParameterValue,
    InvalidTextRepresentation,
    SubstringError,
    UntranslatableCharacter,
)
from tailgate.sql.compute.registry import udf
from tailgate.values.codec.texts import utf8

ENCODINGS = {"utf8": "utf-8", "unicode": "utf-8", "latin1": "iso8859-1", "iso88591": "iso8859-1", "sqlascii": "utf-8"}
BACKSLASH = ord("\\")


# --- encodings -----------------------------------------------------------------------------------


@udf("bytea", "text", to="text")
def encode(data: bytes, encoding: str) -> str:
    match encoding.lower():
        case "hex":
            return data.hex()
        case "base64":
            text = base64.b64encode(data).decode()
            return "\n".join(text[i : i + 76] for i in range(0, len(text), 76))
        case "escape":
            return "".join("\\\\" if b == BACKSLASH else f"\\{b:03o}" if b == 0 or b > 127 else chr(b) for b in data)
    raise InvalidParameterValue(f'unrecognized encoding: "{encoding}"')


@udf("text", "text", to="bytea")
def decode(text: str, encoding: str) -> bytes:
    match encoding.lower():
        case "hex":
            return _decode_hex(text)
        case "base64":
            return _decode_base64(text)
        case "escape":
            return _unescape(text)
    raise InvalidParameterValue(f'unrecognized encoding: "{encoding}"')


def _decode_hex(text: str) -> bytes:
    digits = text.translate({ord(c): None for c in " \t\n\r"})
    invalid = next((c for c in digits if c not in "0123456789abcdefABCDEF"), None)
    if invalid is not None:
        raise InvalidParameterValue(f'invalid hexadecimal digit: "{invalid}"')
    if len(digits) % 2:
        raise InvalidParameterValue("invalid hexadecimal data: odd number of digits")
    return bytes.fromhex(digits)


def _decode_base64(text: str) -> bytes:
    symbols = text.translate({ord(c): None for c in " \t\n\r"})
    body = symbols.rstrip("=")
    invalid = next((c for c in body if not (c.isascii() and (c.isalnum() or c in "+/"))), None)
    if invalid == "=":
        raise InvalidParameterValue('unexpected "=" while decoding base64 sequence')
    if invalid is not None:
        raise InvalidParameterValue(f'invalid symbol "{invalid}" found while decoding base64 sequence')
    if len(symbols) % 4:
        raise InvalidParameterValue("invalid base64 end sequence")
    try:
        return base64.b64decode(symbols)
    except binascii.Error:
        raise InvalidParameterValue("invalid base64 end sequence") from None


def _unescape(text: str) -> bytes:
    escaped, data, at = text.encode(), bytearray(), 0
    while at < len(escaped):
        digits = escaped[at + 1 : at + 4]
        if escaped[at] != BACKSLASH:
            data.append(escaped[at])
            at += 1
        elif digits[:1] == b"\\":
            data.append(BACKSLASH)
            at += 2
        elif len(digits) == 3 and digits[0] in b"0123" and all(d in b"01234567" for d in digits):
            data.append(int(digits, 8))
            at += 4
        else:
            raise InvalidTextRepresentation("invalid input syntax for type bytea")
    return bytes(data)


def _codec(name: str, message: str) -> str:
    """Returns Python's name of an encoding. Raises 22023 with the message."""
    codec = ENCODINGS.get(re.sub(r"[^a-z0-9]", "", name.lower()))
    if codec is None:
        raise InvalidParameterValue(f'{message} "{name}"')
    return codec


@udf("bytea", "text", to="text")
def convert_from(data: bytes, encoding: str) -> str:
    codec = _codec(encoding, "invalid source encoding name")
    if codec == "utf-8":
        return utf8(data)
    text = data.decode(codec)
    if "\0" in text:
        raise CharacterNotInRepertoire('invalid byte sequence for encoding "UTF8": 0x00')
    return text


@udf("text", "text", to="bytea")
def convert_to(text: str, encoding: str) -> bytes:
    codec = _codec(encoding, "invalid destination encoding name")
    try:
        return text.encode(codec)
    except UnicodeEncodeError as error:
        sequence = " ".join(f"0x{b:02x}" for b in text[error.start].encode())
        character = f'character with byte sequence {sequence} in encoding "UTF8"'
        raise UntranslatableCharacter(f'{character} has no equivalent in encoding "LATIN1"') from None


@udf("bytea", "text", "text", to="bytea")
def convert(data: bytes, source: str, destination: str) -> bytes:
    codecs = _codec(source, "invalid source encoding name"), _codec(destination, "invalid destination encoding name")
    text = convert_from(data, source)
    return data if codecs[0] == codecs[1] else convert_to(text, destination)


# --- digests -------------------------------------------------------------------------------------

for _bits in (224, 256, 384, 512):

    def _digest(data: bytes, algorithm: str = f"sha{_bits}") -> bytes:
        return hashlib.new(algorithm, data).digest()

    udf("bytea", to="bytea", name=f"sha{_bits}")(_digest)


@udf("bytea", to="text")
def md5_bytea(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


DIGESTS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")


def _digest_name(algorithm: str) -> str:
    """Returns the name of an algorithm of digest() and hmac(). Raises 22023."""
    if (name := algorithm.lower()) not in DIGESTS:
        raise InvalidParameterValue(f'Cannot use "{name}": No such hash algorithm')
    return name


@udf("bytea", "text", to="bytea")
def digest(data: bytes, algorithm: str) -> bytes:
    return hashlib.new(_digest_name(algorithm), data, usedforsecurity=False).digest()


@udf("bytea", "bytea", "text", to="bytea")
def hmac(data: bytes, key: bytes, algorithm: str) -> bytes:
    return hmacs.digest(key, data, _digest_name(algorithm))


# --- bytes and bits ------------------------------------------------------------------------------


def _check_index(index: int, size: int) -> None:
    if not 0 <= index < size:
        raise ArraySubscriptError(f"index {index} out of valid range, 0..{size - 1}")


@udf("bytea", "int4", to="int4")
def get_byte(data: bytes, index: int) -> int:
    _check_index(index, len(data))
    return data[index]


@udf("bytea", "int4", "int4", to="bytea")
def set_byte(data: bytes, index: int, value: int) -> bytes:
    _check_index(index, len(data))
    return data[:index] + bytes([value & 255]) + data[index + 1 :]


@udf("bytea", "int8", to="int4")
def get_bit(data: bytes, index: int) -> int:
    _check_index(index, 8 * len(data))
    return data[index // 8] >> index % 8 & 1


@udf("bytea", "int8", "int4", to="bytea")
def set_bit(data: bytes, index: int, value: int) -> bytes:
    _check_index(index, 8 * len(data))
    if value not in (0, 1):
        raise InvalidParameterValue("new bit must be 0 or 1")
    byte = data[index // 8] & ~(1 << index % 8) | value << index % 8
    return data[: index // 8] + bytes([byte]) + data[index // 8 + 1 :]


@udf("bytea", to="int8")
def bit_count(data: bytes) -> int:
    return sum(b.bit_count() for b in data)


# --- substrings ----------------------------------------------------------------------------------


@udf("bytea", "int4", to="bytea")
def bytea_from(data: bytes, start: int) -> bytes:
    return data[max(start - 1, 0) :]


@udf("bytea", "int4", "int4", to="bytea")
def bytea_part(data: bytes, start: int, length: int) -> bytes:
    if length < 0:
        raise SubstringError("negative substring length not allowed")
    return data[max(start - 1, 0) : max(start - 1 + length, 0)]


@udf("bytea", "bytea", to="int4")
def bytea_position(part: bytes, data: bytes) -> int:
    return data.find(part) + 1


@udf("bytea", "bytea", "int4", "int4", to="bytea")
def bytea_overlay(data: bytes, replacement: bytes, start: int, count: int) -> bytes:
    if start <= 0:
        raise SubstringError("negative substring length not allowed")
    return data[: start - 1] + replacement + data[max(start + count, 1) - 1 :]


@udf("bytea", "bytea", to="bytea")
def bytea_btrim(data: bytes, byte_set: bytes) -> bytes:
    return data.strip(byte_set) if byte_set else data


@udf("bytea", "bytea", to="bytea")
def bytea_ltrim(data: bytes, byte_set: bytes) -> bytes:
    return data.lstrip(byte_set) if byte_set else data


@udf("bytea", "bytea", to="bytea")
def bytea_rtrim(data: bytes, byte_set: bytes) -> bytes:
    return data.rstrip(byte_set) if byte_set else data
