"""Casts between text and types that DuckDB casts differently or does not have.

Text is as PostgreSQL prints it in UTC with DateStyle ISO and IntervalStyle postgres.

Source: PostgreSQL 15, the types' input and output functions.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import datetime, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tailgate.lake.types import Type
from tailgate.sql.compute.registry import udf
from tailgate.sql.input import numbers
from tailgate.sql.input.literals import elements, parse

Interval = tuple[int, int, int]
PARSED_TYPES = "bool int2 int4 int8 float4 float8 date time timestamp timestamptz interval uuid bytea oid".split()


# --- numbers to text -----------------------------------------------------------------------------


@udf("float8", to="text")
def float8_to_text(value: float) -> str:
    """Returns the fewest digits that read back as the same number.

    An exponent is used from 1e15 on and below 1e-4.

    >>> float8_to_text(7.0), float8_to_text(1e15), float8_to_text(1e-5), float8_to_text(float("-inf"))
    ('7', '1e+15', '1e-05', '-Infinity')
    """
    text = repr(value)
    if abs(value) >= 2**52 and math.isfinite(value):
        neighbours = math.nextafter(value, math.inf), math.nextafter(value, 0)
        if not _is_nearest(text, value, *neighbours):
            # The text is halfway between two numbers; Python accepts that, PostgreSQL does not.
            texts = (f"{value:.{digits}e}" for digits in range(15, 18))
            text = next(t for t in texts if _is_nearest(t, value, *neighbours))
    return _float_text(text, 15)


@udf("float4", to="text")
def float4_to_text(value: float) -> str:
    """Returns the fewest digits that read back as the same number.

    >>> float4_to_text(1234567.75), float4_to_text(0.10000000149011612)
    ('1.2345678e+06', '0.1')
    """
    if value == 0 or not math.isfinite(value):
        return _float_text(repr(value), 6)
    bits = struct.unpack("i", struct.pack("f", value))[0]
    neighbours = [struct.unpack("f", struct.pack("i", bits + d))[0] for d in (-1, 1)]
    texts = (f"{value:.{digits}e}" for digits in range(10))
    return _float_text(next(t for t in texts if _is_nearest(t, value, *neighbours)), 6)


def _is_nearest(text: str, value: float, *neighbours: float) -> bool:
    """Returns whether a text is nearer to a number than to both of its neighbours."""
    number = Fraction(text)
    distance = abs(number - Fraction(value))
    return all(distance < abs(number - Fraction(n)) for n in neighbours if math.isfinite(n))


def _float_text(text: str, exponent_from: int) -> str:
    """Converts Python's text of a float to PostgreSQL's."""
    if text in ("inf", "-inf", "nan"):
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[text]
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    mantissa, _, power = text.partition("e")
    integer, _, fraction = mantissa.partition(".")
    digits = (integer + fraction).lstrip("0")
    if not digits:
        return sign + "0"
    # The exponent of the first digit: 0.00123 has digits 123 and exponent -3.
    if integer.strip("0"):
        exponent = int(power or 0) + len(integer) - 1
    else:
        exponent = int(power or 0) - (len(fraction) - len(fraction.lstrip("0"))) - 1
    digits = digits.rstrip("0") or "0"
    if exponent >= exponent_from or exponent < -4:
        rest = "." + digits[1:] if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    digits = digits.ljust(exponent + 1, "0")
    return sign + digits[: exponent + 1] + ("." + digits[exponent + 1 :] if len(digits) > exponent + 1 else "")


# --- times to text -------------------------------------------------------------------------------


@udf("time", to="text")
def time_to_text(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text + f".{fraction:06d}".rstrip("0") if fraction else text


@udf("interval", to="text")
def interval_to_text(value: Interval) -> str:
    """Returns an interval's text; a positive part after a negative one has a plus sign.

    >>> interval_to_text((14, 3, 3661500000)), interval_to_text((0, -1, 3600000000)), interval_to_text((0, 0, 0))
    ('1 year 2 mons 3 days 01:01:01.5', '-1 days +01:00:00', '00:00:00')
    """
    months, days, micros = value
    years = int(months / 12)
    parts, negative_before = [], False
    for amount, unit in ((years, "year"), (months - 12 * years, "mon"), (days, "day")):
        if amount:
            plus = "+" if negative_before and amount > 0 else ""
            parts.append(f"{plus}{amount} {unit}{'' if amount == 1 else 's'}")
            negative_before = amount < 0
    if micros or not parts:
        sign = "-" if micros < 0 else "+" if negative_before else ""
        parts.append(sign + time_to_text(abs(micros)))
    return " ".join(parts)


def timestamp_text(value: datetime, separator: str = " ") -> str:
    text = value.replace(tzinfo=None).isoformat(sep=separator)
    return text.rstrip("0") if value.microsecond else text


@udf("timestamptz", to="text")
def timestamptz_to_text(value: datetime) -> str:
    return timestamp_text(value.astimezone(timezone.utc)) + "+00"


# --- arrays to text and back ---------------------------------------------------------------------

NEEDS_QUOTES = re.compile(r'[{}",\\\s\v]|^$|^null$', re.IGNORECASE)


@udf("text[]", to="text")
def array_to_text(items: list[str | None]) -> str:
    """Returns the text of an array, from the texts of its elements.

    >>> array_to_text(["a", "b c", None, "null", 'x"'])
    '{a,"b c",NULL,"null","x\\\\""}'
    """
    return "{" + ",".join(map(_element, items)) + "}"


def _element(item: str | None) -> str:
    if item is None:
        return "NULL"
    if not NEEDS_QUOTES.search(item):
        return item
    return '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'


udf("text", to="text[]", name="text_to_elements")(elements)


# --- text to other types -------------------------------------------------------------------------


def _parser(type_name: str) -> Callable[[str], Any]:
    type = Type(type_name)
    return lambda text: parse(text, type)


for _name in PARSED_TYPES:
    udf("text", to=_name, name="text_to_" + _name)(_parser(_name))


@udf("text", "int4", "int4", to="numeric")
def text_to_numeric(text: str, precision: int, scale: int) -> Decimal:
    return numbers.scaled(numbers.numeric(text), precision, scale)
