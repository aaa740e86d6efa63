"""The input functions of numbers, boolean, bytea and uuid.

Source: PostgreSQL 15, src/backend/utils/adt/{numutils,int8,float,numeric,bool,varlena,uuid}.c.
"""

from __future__ import annotations

import math
import re
import struct
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from tailgate.lake.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    InvalidTextRepresentation,
    NumericValueOutOfRange,
    TailgateError,
)

BLANKS = " \t\n\r\f\v"
INTEGER = re.compile(r"[+-]?[0-9]+")
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
RANGES = {
    "int2": (-(2**15), 2**15 - 1),
    "int4": (-(2**31), 2**31 - 1),
    "int8": (-(2**63), 2**63 - 1),
    "oid": (0, 2**32 - 1),
}
TYPE_NAMES = {  # in messages
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "oid": "oid",
    "float4": "real",
    "float8": "double precision",
}
SPECIAL_NUMBERS = {  # and Python's spelling
    "nan": "nan",
    **dict.fromkeys(("inf", "infinity", "+inf", "+infinity"), "inf"),
    **dict.fromkeys(("-inf", "-infinity"), "-inf"),
}
EXACT = Context(prec=2000, Emax=999999, Emin=-999999)
BOOLEANS = {word[:n]: True for word in ("true", "yes") for n in range(1, len(word) + 1)}
BOOLEANS |= {word[:n]: False for word in ("false", "no") for n in range(1, len(word) + 1)}
BOOLEANS |= {"on": True, "of": False, "off": False, "1": True, "0": False}
HEX_DIGITS = "0123456789abcdefABCDEF"


def invalid(type: str, text: str) -> TailgateError:
    return InvalidTextRepresentation(f'invalid input syntax for type {type}: "{text}"')


def integer(text: str, type: str) -> int:
    stripped = text.strip(BLANKS)
    if not INTEGER.fullmatch(stripped):
        raise invalid(TYPE_NAMES[type], text)
    value = int(stripped)
    low, high = RANGES[type]
    if type == "oid" and -(2**31) <= value < 0:
        value += 2**32
    if not low <= value <= high:
        raise NumericValueOutOfRange(f'value "{text}" is out of range for type {TYPE_NAMES[type]}')
    return value


def real(text: str, type: str) -> float:
    stripped = text.strip(BLANKS).lower()
    if stripped in SPECIAL_NUMBERS:
        return float(SPECIAL_NUMBERS[stripped])
    if not NUMBER.fullmatch(stripped):
        raise invalid(TYPE_NAMES[type], text)
    value = float(stripped)
    if type == "float4" and math.isfinite(value):
        try:
            (value,) = struct.unpack("f", struct.pack("f", value))
        except OverflowError:
            value = math.inf
    nonzero = any(c in "123456789" for c in stripped.split("e")[0])
    if math.isinf(value) or (value == 0 and nonzero):
        raise NumericValueOutOfRange(f'"{text.strip(BLANKS)}" is out of range for type {TYPE_NAMES[type]}')
    return value


def numeric(text: str) -> Decimal:
    """Returns a numeric with the scale of its text."""
    stripped = text.strip(BLANKS)
    if stripped.lower() in SPECIAL_NUMBERS:
        raise FeatureNotSupported(f"numeric '{stripped}' is not supported")
    if not NUMBER.fullmatch(stripped):
        raise invalid("numeric", text)
    try:
        return EXACT.create_decimal(stripped)
    except InvalidOperation:
        raise NumericValueOutOfRange("value overflows numeric format") from None


def scaled(value: Decimal, precision: int, scale: int) -> Decimal:
    """Rounds half away from zero to a scale. Raises 22003 if the result has too many digits."""
    rounded = value.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=EXACT)
    if rounded and rounded.adjusted() >= precision - scale:
        field = f"A field with precision {precision}, scale {scale}"
        bound = f"10^{precision - scale}" if precision > scale else "1"
        raise NumericValueOutOfRange(
            "numeric field overflow",
            detail=f"{field} must round to an absolute value less than {bound}.",
        )
    return rounded


def boolean(text: str) -> bool:
    value = BOOLEANS.get(text.strip(BLANKS).lower())
    if value is None:
        raise invalid("boolean", text)
    return value


def byte_string(text: str) -> bytes:
    return _hex_bytes(text[2:]) if text.startswith("\\x") else _escaped_bytes(text)


def _hex_bytes(text: str) -> bytes:
    digits = text.translate({ord(c): None for c in " \t\n\r"})
    try:
        return bytes.fromhex(digits)
    except ValueError:
        invalid_digit = next((c for c in digits if c not in HEX_DIGITS), None)
        if invalid_digit is None:
            raise InvalidParameterValue("invalid hexadecimal data: odd number of digits") from None
        raise InvalidParameterValue(f'invalid hexadecimal digit: "{invalid_digit}"') from None


def _escaped_bytes(text: str) -> bytes:
    data = bytearray()
    at = 0
    while at < len(text):
        if text[at] != "\\":
            data += text[at].encode()
            at += 1
        elif text[at + 1 : at + 2] == "\\":
            data += b"\\"
            at += 2
        elif re.fullmatch(r"[0-3][0-7][0-7]", text[at + 1 : at + 4]):
            data.append(int(text[at + 1 : at + 4], 8))
            at += 4
        else:
            raise InvalidTextRepresentation("invalid input syntax for type bytea")
    return bytes(data)


def uuid(text: str) -> str:
    body = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    digits = body.replace("-", "").lower()
    valid_digits = len(digits) == 32 and all(c in HEX_DIGITS for c in digits)
    if not valid_digits or any(len(group) % 4 or not group for group in body.split("-")):
        raise invalid("uuid", text)
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
