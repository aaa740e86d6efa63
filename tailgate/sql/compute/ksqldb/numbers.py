"""ksqlDB's functions of numbers, with the results of Java's Math.

Source: ksqlDB 0.29, documentation, "Scalar functions", section "Numeric functions".
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_FLOOR, Decimal

from tailgate.lake.errors import InvalidTextRepresentation, ProgramLimitExceeded
from tailgate.sql.compute.registry import udf

SERIES_MAX = 1_000_000  # elements of an array that a function generates
PLACES_MAX = 400  # a DOUBLE has no digits beyond
BLANKS = "".join(map(chr, range(0x21)))  # that Java skips around a number
_DECIMAL = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_HEXADECIMAL = r"0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+"
DOUBLE = re.compile(rf"([+-]?)(?:(NaN|Infinity)|(?:({_DECIMAL})|({_HEXADECIMAL}))[fFdD]?)")


@udf("float8", "float8", to="float8")
def ksqldb_power(base: float, exponent: float) -> float:
    """Returns a power: NaN where it is not defined, an infinity on overflow."""
    if abs(base) == 1 and math.isinf(exponent):
        return math.nan
    if base == 1 and math.isnan(exponent):
        return math.nan
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ValueError:
        if base == 0:
            return math.copysign(math.inf, base) if exponent % 2 == 1 else math.inf
        return math.nan


@udf("float8", "int4", to="float8")
def ksqldb_round(value: float, places: int) -> float:
    """Returns a value that is rounded to decimal places, half up: in the direction of positive infinity."""
    if not math.isfinite(value) or abs(places) > PLACES_MAX:
        return value if places > 0 or not math.isfinite(value) else 0.0
    shifted = Decimal(repr(value)).scaleb(places) + Decimal("0.5")
    return float(shifted.to_integral_value(ROUND_FLOOR).scaleb(-places))


@udf("int8", "int8", "int8", to="jsonb")
def ksqldb_generate_series(start: int, end: int, step: int) -> str | None:
    """Returns the numbers from start to end as an array; NULL if the step has the wrong direction or is 0."""
    if step == 0 or (end - start) * step < 0:
        return None
    if (end - start) // step >= SERIES_MAX:
        raise ProgramLimitExceeded(f"an array may have at most {SERIES_MAX} elements")
    return "[" + ", ".join(map(str, range(start, end + (1 if step > 0 else -1), step))) + "]"


@udf("text", to="float8")
def ksqldb_double(text: str) -> float:
    """Returns the number in a text that Java's Double.parseDouble accepts. Raises 22P02."""
    match = DOUBLE.fullmatch(text.strip(BLANKS))
    if match is None:
        raise InvalidTextRepresentation(f'invalid input syntax for type DOUBLE: "{text}"')
    sign, word, digits, hexadecimal = match.groups()
    try:
        value = float(word or digits) if hexadecimal is None else float.fromhex(hexadecimal)
    except OverflowError:
        value = math.inf
    return -value if sign == "-" else value


# --- arithmetic as in Java -----------------------------------------------------------------------


def _wrapped(number: int) -> int:
    """Returns the integer of the lowest 64 bits."""
    return (number + 2**63) % 2**64 - 2**63


@udf("int8", "int8", to="int8")
def ksqldb_plus(left: int, right: int) -> int:
    return _wrapped(left + right)


@udf("int8", "int8", to="int8")
def ksqldb_minus(left: int, right: int) -> int:
    return _wrapped(left - right)


@udf("int8", "int8", to="int8")
def ksqldb_times(left: int, right: int) -> int:
    return _wrapped(left * right)


@udf("numeric", to="int8")
def ksqldb_bigint_of_numeric(value: Decimal) -> int:
    """Returns the BIGINT of the lowest 64 bits of a number's whole part."""
    return _wrapped(int(value))


@udf("float8", to="int8")
def ksqldb_bigint_of_double(value: float) -> int:
    """Returns the whole part of a number; the nearest BIGINT if it is out of range, and 0 for NaN."""
    return _saturated(value, 63)


@udf("float8", to="int4")
def ksqldb_int_of_double(value: float) -> int:
    """Returns the whole part of a number; the nearest INT if it is out of range, and 0 for NaN."""
    return _saturated(value, 31)


def _saturated(value: float, bits: int) -> int:
    if math.isnan(value):
        return 0
    limit: int = 2**bits
    return min(max(int(max(min(value, 1e20), -1e20)), -limit), limit - 1)


@udf("float8", "float8", to="float8")
def ksqldb_quotient(left: float, right: float) -> float:
    """Returns a quotient: an infinity or NaN for a division by zero."""
    if right != 0:
        return left / right
    return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)


@udf("float8", "float8", to="float8")
def ksqldb_remainder(left: float, right: float) -> float:
    """Returns the remainder with the sign of the dividend; NaN where it is not defined."""
    return math.nan if right == 0 or math.isinf(left) else math.fmod(left, right)
