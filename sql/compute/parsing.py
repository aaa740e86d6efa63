"""Text to values of other types: what casts of text do."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from lake.errors import CharacterNotInRepertoire, DatetimeFieldOverflow, DivisionByZero, InvalidParameterValue, NumericValueOutOfRange, of
from lake.types import Type
from sql.compute.registry import own
from sql.input import moments, numbers
from sql.input.jsonb import made_object
from sql.input.literals import parse

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
SINCE_2000_S = 946_684_800
ENCODINGS = {"utf8": "utf-8", "unicode": "utf-8", "latin1": "iso8859-1", "iso88591": "iso8859-1", "sqlascii": "utf-8"}
PARSED = "bool int2 int4 int8 float4 float8 date time timestamp timestamptz interval uuid bytea oid".split()


def _parser(type: str) -> Callable[[str], Any]:
    target = Type(type)
    return lambda text: parse(text, target)


for _name in PARSED:
    own("text", to=_name, name="text_to_" + _name)(_parser(_name))


def printed(value: Decimal, precision: int, scale: int) -> Decimal:
    return numbers.scaled(value, precision, scale)


@own("text", "int4", "int4", to="numeric")
def text_to_numeric(text: str, precision: int, scale: int) -> Decimal:
    return printed(numbers.numeric(text), precision, scale)


def encoding(name: str, message: str) -> str:
    found = ENCODINGS.get(re.sub(r"[^a-z0-9]", "", name.lower()))
    if found is None:
        raise InvalidParameterValue(f'{message} "{name}"')
    return found


@own("bytea", "text", to="text")
def convert_from(data: bytes, name: str) -> str:
    codec = encoding(name, "invalid source encoding name")
    try:
        text = data.decode(codec)
    except UnicodeDecodeError as error:
        # as many bytes as the character's first byte calls for
        first = data[error.start]
        size = 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4 if first < 0xF8 else 1
        shown = " ".join(f"0x{b:02x}" for b in data[error.start : error.start + size])
        raise CharacterNotInRepertoire(f'invalid byte sequence for encoding "UTF8": {shown}') from None
    if "\0" in text:
        raise CharacterNotInRepertoire('invalid byte sequence for encoding "UTF8": 0x00')
    return text


@own("text", "text", to="bytea")
def convert_to(text: str, name: str) -> bytes:
    codec = encoding(name, "invalid destination encoding name")
    try:
        return text.encode(codec)
    except UnicodeEncodeError as error:
        shown = " ".join(f"0x{b:02x}" for b in text[error.start].encode())
        message = f'character with byte sequence {shown} in encoding "UTF8" has no equivalent in encoding "LATIN1"'
        raise of("22P05", message) from None


@own("float8", to="timestamptz", name="to_timestamp")
def seconds_to_timestamp(seconds: float) -> datetime:
    if seconds != seconds:
        raise DatetimeFieldOverflow("timestamp cannot be NaN")
    try:
        # PostgreSQL rounds what it counts from its epoch
        return EPOCH + timedelta(microseconds=round((seconds - SINCE_2000_S) * 1e6) + SINCE_2000_S * 1_000_000)
    except (OverflowError, ValueError):
        raise DatetimeFieldOverflow(f'timestamp out of range: "{seconds:g}"') from None


@own("numeric", "numeric", "int4", to="numeric")
def decimal_divide(a: Decimal, b: Decimal, scale: int) -> Decimal:
    """Exact, rounded half away from zero."""
    if not b:
        raise DivisionByZero("division by zero")
    numerator, denominator = a.as_integer_ratio(), b.as_integer_ratio()
    top = numerator[0] * denominator[1] * 10**scale
    bottom = numerator[1] * denominator[0]
    negative = (top < 0) != (bottom < 0)
    quotient = (2 * abs(top) + abs(bottom)) // (2 * abs(bottom))
    if quotient >= 10**38:
        raise NumericValueOutOfRange("numeric field overflow")
    return Decimal(-quotient if negative else quotient).scaleb(-scale, context=numbers.EXACT)


own("text", "text[]", "int4", to="text", name="variance")(moments.variance)
own("text", "float8[][]", to="float8", name="moments")(moments.moments)
own("text[][]", to="jsonb", name="jsonb_object")(made_object)
