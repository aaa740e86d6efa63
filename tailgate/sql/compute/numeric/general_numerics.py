"""Functions of general numerics, for values that DuckDB's decimals do not hold or do not compute.

Macros of `sql.functions.general.macros` compute the usual values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_FLOOR, Decimal
from functools import partial
from itertools import groupby
from typing import Any

from tailgate.lake import sortable
from tailgate.lake.errors import (
    FeatureNotSupported,
    InvalidArgumentForWidthBucketFunction,
    InvalidParameterValue,
    NumericValueOutOfRange,
    ProgramLimitExceeded,
)
from tailgate.lake.sortable import KEY_DIGITS, KEY_SCALE
from tailgate.sql import interruption
from tailgate.sql.compute.registry import udf
from tailgate.sql.compute.series import NUMERIC_SERIES_DIGITS_MAX, NUMERIC_SERIES_MAX, ZERO_STEP
from tailgate.values.numbers import numerics
from tailgate.values.numeric import arithmetic, moments, powers
from tailgate.values.numeric.scales import WIDE, scale_of

CHECKED_EVERY = 1_000  # values of a sum: whether the statement is to end
KEY_LIMIT = Decimal(10**KEY_DIGITS)

UNARY: dict[str, Callable[[Decimal], Decimal]] = {
    "negate": arithmetic.negated,
    "abs": arithmetic.absolute,
    "sign": arithmetic.sign,
    "ceil": arithmetic.ceiling,
    "floor": arithmetic.floor,
    "sqrt": powers.square_root,
    "exp": powers.exponential,
    "ln": powers.natural_logarithm,
    "log10": powers.decimal_logarithm,
    "trim_scale": arithmetic.trim_scale,
}
BINARY: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "add": arithmetic.add,
    "subtract": arithmetic.subtract,
    "multiply": arithmetic.multiply,
    "divide": arithmetic.divide,
    "remainder": arithmetic.remainder,
    "div": arithmetic.quotient,
    "gcd": arithmetic.greatest_common_divisor,
    "lcm": arithmetic.least_common_multiple,
    "log": powers.logarithm,
    "power": powers.power,
}
for _name, _function in UNARY.items():
    udf("general", to="general", name=f"general_{_name}")(_function)
for _name, _binary in BINARY.items():
    udf("general", "general", to="general", name=f"general_{_name}")(_binary)
udf("general", "int4", to="general", name="general_round")(arithmetic.round_to)
udf("general", "int4", to="general", name="general_trunc")(arithmetic.truncate)
udf("general", to="int4", name="general_scale")(arithmetic.display_scale)
udf("general", to="int4", name="general_min_scale")(arithmetic.min_scale)
udf("int8", to="general", name="general_factorial")(arithmetic.factorial)


# --- order ---------------------------------------------------------------------------------------


@udf("general", to="key")
def general_key(a: Decimal) -> dict[str, Any]:
    """Returns the sort key: the value, rounded down to 20 digits after the decimal point, and its bytes if it is another one.

    >>> general_key(Decimal("1.50"))
    {'f1': Decimal('150000000000000000000'), 'f2': b''}
    """
    if a.is_finite() and a.copy_abs() < KEY_LIMIT:
        scaled = a.scaleb(KEY_SCALE, context=WIDE)
        value = scaled.to_integral_value(rounding=ROUND_FLOOR, context=WIDE).quantize(Decimal(1), context=WIDE)
        rest = b"" if value == scaled else sortable.key(a)
        return {"f1": value or Decimal(0), "f2": rest}
    limit = Decimal(int(KEY_LIMIT) * 10**KEY_SCALE)
    return {"f1": limit.copy_negate() if a.is_signed() else limit, "f2": sortable.key(a)}


# --- aggregates ----------------------------------------------------------------------------------


@udf("general", "general[]", to="general")
def general_total(part: Decimal, others: list[Decimal]) -> Decimal:
    """Returns the sum of a sum that DuckDB computed, which has its display scale, and of other values."""
    total = part
    for number, value in enumerate(others):
        if number % CHECKED_EVERY == 0:
            interruption.check()
        total = arithmetic.add(total, value)
    return total


@udf("text", "general[]", to="general")
def general_variance(function: str, values: list[Decimal]) -> Decimal | None:
    return moments.variance(function, values)


@udf("text", "text[]", to="general")
def general_variance_texts(function: str, values: list[str]) -> Decimal | None:
    return moments.variance(function, list(map(Decimal, values)))


@udf("general[]", to="general[]")
def general_unique(values: list[Decimal]) -> list[Decimal]:
    """Returns one of the values that are equal."""
    return list({arithmetic.trim_scale(v) if v.is_finite() else str(v): v for v in values}.values())


@udf("general[]", to="general")
def general_mode(values: list[Decimal]) -> Decimal | None:
    """Returns the most frequent of values in order; of those that are equal, the first."""
    most, mode = 0, None
    for _, equal in groupby(values, sortable.key):
        first, *others = equal
        if len(others) + 1 > most:
            most, mode = len(others) + 1, first
    return mode


# --- casts ---------------------------------------------------------------------------------------


@udf("general", to="text")
def general_to_text(a: Decimal) -> str:
    return format(a, "f")


@udf("text", to="general")
def text_to_general(text: str) -> Decimal:
    return numerics.general(text)


@udf("general", "int4", "int4", to="text")
def general_to_fixed(a: Decimal, precision: int, scale: int) -> str:
    """Returns the text of the value of a declared numeric. Raises 22003, also for NaN and infinities."""
    if not a.is_finite():
        raise numerics.field_overflow(precision, scale, infinite=a.is_infinite())
    return format(numerics.scaled(a, precision, scale), "f")


@udf("general", "int4", "int4", to="general")
def general_fit(a: Decimal, precision: int, scale: int) -> Decimal:
    """Returns the value of a numeric that is declared with more than 38 digits, or with an unusual scale."""
    return numerics.limited(a, precision, scale)


@udf("float8", to="general")
def float8_to_general(value: float) -> Decimal:
    return numerics.general(f"{value:.15g}") if math.isfinite(value) else Decimal(value)


@udf("float4", to="general")
def float4_to_general(value: float) -> Decimal:
    return numerics.general(f"{value:.6g}") if math.isfinite(value) else Decimal(value)


def _to_float(type: str, a: Decimal) -> float:
    value = float(a)
    if a.is_finite() and (math.isinf(value) or (not value and a)):
        raise NumericValueOutOfRange(f'"{a:f}" is out of range for type {type}')
    return value


udf("general", to="float8", name="general_to_float8")(partial(_to_float, "double precision"))


def to_integer(type: str, bits: int, a: Decimal) -> int:
    """Returns a number rounded to an integer. Raises 0A000 for NaN and infinities, 22003 if the integer has more bits."""
    if not a.is_finite():
        raise FeatureNotSupported(f"cannot convert {'NaN' if a.is_nan() else 'infinity'} to {type}")
    value = int(arithmetic.round_to(a, 0))
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise NumericValueOutOfRange(f"{type} out of range")
    return value


for _name, _type, _bits in (("int2", "smallint", 16), ("int4", "integer", 32), ("int8", "bigint", 64)):
    _cast: Callable[[Decimal], int] = partial(to_integer, _type, _bits)
    udf("general", to=_name, name=f"general_to_{_name}")(_cast)


# --- series ---------------------------------------------------------------------------------------


@udf("general", "general", "general", to="general[]")
def general_series(first: Decimal, last: Decimal, step: Decimal) -> list[Decimal]:
    """Returns the numbers from `first` to `last`. Raises 22023, 54000."""
    for name, value in (("start value", first), ("stop value", last), ("step size", step)):
        if not value.is_finite():
            raise InvalidParameterValue(f"{name} cannot be {'NaN' if value.is_nan() else 'infinity'}")
    if not step:
        raise InvalidParameterValue(ZERO_STEP)
    distance = WIDE.subtract(last, first)
    if distance and distance.is_signed() != step.is_signed():
        return []
    if distance.copy_abs() >= WIDE.multiply(step.copy_abs(), Decimal(NUMERIC_SERIES_MAX)):
        raise ProgramLimitExceeded(f"generate_series of numerics gives more than {NUMERIC_SERIES_MAX} rows")
    count = int(WIDE.divide_int(distance, step)) + 1
    if count * (max(first.adjusted(), last.adjusted(), 0) + 1 + max(scale_of(first), scale_of(step))) > NUMERIC_SERIES_DIGITS_MAX:
        raise ProgramLimitExceeded(f"generate_series of numerics gives more than {NUMERIC_SERIES_DIGITS_MAX} digits")
    series, current = [first], first
    for number in range(1, count):
        if number % CHECKED_EVERY == 0:
            interruption.check()
        current = arithmetic.add(current, step)
        series.append(current)
    return series


# --- others --------------------------------------------------------------------------------------


@udf("general", "general", "general", "int4", to="int4")
def width_bucket_general(value: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    if any(a.is_nan() for a in (value, low, high)):
        raise InvalidArgumentForWidthBucketFunction("operand, lower bound, and upper bound cannot be NaN")
    if low.is_infinite() or high.is_infinite():
        raise InvalidArgumentForWidthBucketFunction("lower and upper bounds must be finite")
    if count <= 0:
        raise InvalidArgumentForWidthBucketFunction("count must be greater than zero")
    if low == high:
        raise InvalidArgumentForWidthBucketFunction("lower bound cannot equal upper bound")
    if value < low if low < high else value > low:
        return 0
    if value >= high if low < high else value <= high:
        return count + 1
    distance, width = arithmetic.subtract(value, low).copy_abs(), arithmetic.subtract(high, low).copy_abs()
    return int(WIDE.divide_int(WIDE.multiply(distance, Decimal(count)), width)) + 1
