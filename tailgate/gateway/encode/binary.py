"""A value to PostgreSQL's binary form: `encoder(type)` is a function from raw value to bytes.

Source: PostgreSQL 15, the types' send functions.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct, pack
from typing import Any

from tailgate.gateway.encode import text
from tailgate.gateway.encode.calendar import DAYS_TO_2000, MICROS_TO_2000
from tailgate.gateway.encode.raw import STRINGS
from tailgate.gateway.encode.style import DEFAULT
from tailgate.lake.types import Type

Encoder = Callable[[Any], bytes]

POSITIVE, NEGATIVE = 0x0000, 0x4000


def numeric_encoder(scale: int) -> Encoder:
    """Digits to base 10,000 around the decimal point, without zero digits at either end.

    >>> numeric_encoder(2)(12345).hex(), numeric_encoder(2)(0).hex()
    ('0002000000000002007b1194', '0000000000000002')
    """
    shown = max(scale, 0)
    parts = -(-shown // 4)  # base-10,000 digits after the point
    shift = 10 ** (4 * parts - shown) if scale >= 0 else 10**-scale

    def encode(value: int) -> bytes:
        sign = POSITIVE
        if value < 0:
            sign, value = NEGATIVE, -value
        value *= shift
        digits: list[int] = []
        while value:
            value, digit = divmod(value, 10_000)
            digits.append(digit)
        weight = len(digits) - 1 - parts
        digits.reverse()
        while digits and not digits[-1]:
            digits.pop()
        if not digits:
            weight = 0
        return pack(f"!hhHH{len(digits)}H", len(digits), weight, sign, shown, *digits)

    return encode


def array_encoder(element: Type) -> Encoder:
    encode, oid = encoder(element), element.oid

    def array(value: list[Any]) -> bytes:
        if not value:
            return pack("!iiI", 0, 0, oid)
        parts = [pack("!iiIii", 1, int(any(v is None for v in value)), oid, len(value), 1)]
        return b"".join(parts + [_sized(encode, v) for v in value])

    return array


def record_encoder(types: list[Type]) -> Encoder:
    members = [(pack("!I", t.oid), encoder(t)) for t in types]

    def record(value: tuple[Any, ...]) -> bytes:
        return pack("!i", len(members)) + b"".join(oid + _sized(encode, v) for (oid, encode), v in zip(members, value, strict=True))

    return record


def _sized(encode: Encoder, value: Any) -> bytes:
    if value is None:
        return b"\xff\xff\xff\xff"
    data = encode(value)
    return len(data).to_bytes(4, "big") + data


def date_binary(value: int) -> bytes:
    if value >= 2**31 - 1:
        return b"\x7f\xff\xff\xff"
    return b"\x80\0\0\0" if value <= -(2**31) + 1 else pack("!i", value - DAYS_TO_2000)


def timestamp_binary(value: int) -> bytes:
    if value >= 2**63 - 1:
        return b"\x7f" + b"\xff" * 7
    return b"\x80" + b"\0" * 7 if value <= -(2**63) + 1 else pack("!q", value - MICROS_TO_2000)


_FIXED: dict[str, Encoder] = {
    "bool": lambda value: b"\1" if value else b"\0",
    "int2": Struct("!h").pack,
    "int4": Struct("!i").pack,
    "int8": Struct("!q").pack,
    "oid": Struct("!I").pack,
    "float4": Struct("!f").pack,
    "float8": Struct("!d").pack,
    "bytea": bytes,
    "date": date_binary,
    "time": Struct("!q").pack,
    "timestamp": timestamp_binary,
    "timestamptz": timestamp_binary,
    "interval": lambda value: pack("!qii", value[2], value[1], value[0]),
    "uuid": lambda value: bytes.fromhex(value.decode().replace("-", "")),
    "jsonb": lambda value: b"\1" + value,
}


def encoder(type: Type) -> Encoder:
    if type.is_array:
        return array_encoder(type.element)
    if type.name == "numeric":
        return numeric_encoder(type.decimal[1])
    if type.name == "record":
        return record_encoder([f.type for f in type.fields])
    if type.name in _FIXED:
        return _FIXED[type.name]
    assert type.name in STRINGS, type.name
    return text.encoder(type, DEFAULT)
