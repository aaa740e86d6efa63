"""Functions of numeric and of integers.

An inexact numeric result has 16 digits after the decimal point (lake.types.NUMERIC_SCALE); in
PostgreSQL the number of digits depends on the value.

Source: PostgreSQL 15, src/backend/utils/adt/numeric.c.
"""

from __future__ import annotations

import math
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation, Overflow

from tailgate.lake.errors import (
    DivisionByZero,
    InvalidArgumentForLogarithm,
    InvalidArgumentForPowerFunction,
    InvalidArgumentForWidthBucketFunction,
    NumericValueOutOfRange,
    TailgateError,
)
from tailgate.sql.compute.registry import udf

EXACT = Context(prec=120, Emax=100_000, Emin=-100_000)
ROUNDING = Context(prec=500)
ROUND_DIGITS_MAX = 200


def field_overflow() -> TailgateError:
    return NumericValueOutOfRange("numeric field overflow")


# --- powers and logarithms -----------------------------------------------------------------------


@udf("numeric", "numeric", to="numeric")
def numeric_power(a: Decimal, b: Decimal) -> Decimal:
    if not a and b < 0:
        raise InvalidArgumentForPowerFunction("zero raised to a negative power is undefined")
    if a < 0 and b != b.to_integral_value():
        raise InvalidArgumentForPowerFunction("a negative number raised to a non-integer power yields a complex result")
    if not b or a == 1:
        return Decimal(1)
    if not a:
        return Decimal(0)
    try:
        power = EXACT.power(a, b)
    except (Overflow, InvalidOperation):
        raise field_overflow() from None
    return _bounded(power)


def _bounded(value: Decimal) -> Decimal:
    """Returns 0 for a very small number. Raises 22003 for a number that a numeric cannot hold."""
    if value and value.adjusted() > 38:
        raise field_overflow()
    return Decimal(0) if value and value.adjusted() < -60 else value


@udf("numeric", to="numeric")
def numeric_sqrt(a: Decimal) -> Decimal:
    if a < 0:
        raise InvalidArgumentForPowerFunction("cannot take square root of a negative number")
    return EXACT.sqrt(a)


@udf("numeric", to="numeric")
def numeric_exp(a: Decimal) -> Decimal:
    if a > 100:
        raise field_overflow()
    return _bounded(EXACT.exp(a)) if a > -200 else Decimal(0)


def _check_positive(a: Decimal) -> None:
    if a <= 0:
        raise InvalidArgumentForLogarithm(f"cannot take logarithm of {'a negative number' if a else 'zero'}")


@udf("numeric", to="numeric")
def numeric_ln(a: Decimal) -> Decimal:
    _check_positive(a)
    return EXACT.ln(a)


@udf("numeric", "numeric", to="numeric")
def numeric_log(base: Decimal, a: Decimal) -> Decimal:
    _check_positive(base)
    _check_positive(a)
    divisor = EXACT.ln(base)
    if not divisor:
        raise DivisionByZero("division by zero")
    return EXACT.divide(EXACT.ln(a), divisor)


@udf("numeric", to="numeric")
def numeric_log10(a: Decimal) -> Decimal:
    _check_positive(a)
    return EXACT.log10(a)


# --- division ------------------------------------------------------------------------------------


@udf("numeric", "numeric", to="numeric")
def numeric_div(a: Decimal, b: Decimal) -> Decimal:
    if not b:
        raise DivisionByZero("division by zero")
    return EXACT.divide_int(a, b)


@udf("numeric", "numeric", to="numeric")
def numeric_gcd(a: Decimal, b: Decimal) -> Decimal:
    scale = max(-int(a.as_tuple().exponent), -int(b.as_tuple().exponent), 0)
    gcd = math.gcd(int(a.scaleb(scale, EXACT)), int(b.scaleb(scale, EXACT)))
    return Decimal(gcd).scaleb(-scale, EXACT)


@udf("numeric", "numeric", to="numeric")
def numeric_lcm(a: Decimal, b: Decimal) -> Decimal:
    if not a or not b:
        return Decimal(0)
    return abs(EXACT.multiply(a, EXACT.divide_int(b, numeric_gcd(a, b))))


@udf("int8", to="numeric")
def factorial(n: int) -> Decimal:
    if n < 0:
        raise NumericValueOutOfRange("factorial of a negative number is undefined")
    if n > 33:  # 34! is above 1e38
        raise field_overflow()
    return Decimal(math.factorial(n))


def _int8(value: int) -> int:
    if value >= 2**63:
        raise NumericValueOutOfRange("bigint out of range")
    return value


def _int4(value: int) -> int:
    if value >= 2**31:
        raise NumericValueOutOfRange("integer out of range")
    return value


@udf("int8", "int8", to="int8")
def gcd_int8(a: int, b: int) -> int:
    return _int8(math.gcd(a, b))


@udf("int8", "int8", to="int8")
def lcm_int8(a: int, b: int) -> int:
    return _int8(math.lcm(a, b))


@udf("int4", "int4", to="int4")
def gcd_int4(a: int, b: int) -> int:
    return _int4(math.gcd(a, b))


@udf("int4", "int4", to="int4")
def lcm_int4(a: int, b: int) -> int:
    return _int4(math.lcm(a, b))


# --- rounding ------------------------------------------------------------------------------------


@udf("numeric", to="int4")
def min_scale(a: Decimal) -> int:
    return max(0, -int(EXACT.normalize(a).as_tuple().exponent)) if a else 0


@udf("numeric", "int4", to="numeric")
def numeric_round(a: Decimal, digits: int) -> Decimal:
    return _quantized(a, digits, ROUND_HALF_UP)


@udf("numeric", "int4", to="numeric")
def numeric_trunc(a: Decimal, digits: int) -> Decimal:
    return _quantized(a, digits, ROUND_DOWN)


def _quantized(a: Decimal, digits: int, rounding: str) -> Decimal:
    bounded = max(-ROUND_DIGITS_MAX, min(digits, ROUND_DIGITS_MAX))
    return a.quantize(Decimal(1).scaleb(-bounded), rounding=rounding, context=ROUNDING)


# --- width_bucket --------------------------------------------------------------------------------


def _check_buckets(count: int, equal_bounds: bool) -> None:
    if count <= 0:
        raise InvalidArgumentForWidthBucketFunction("count must be greater than zero")
    if equal_bounds:
        raise InvalidArgumentForWidthBucketFunction("lower bound cannot equal upper bound")


@udf("numeric", "numeric", "numeric", "int4", to="int4")
def width_bucket_numeric(value: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    _check_buckets(count, low == high)
    if low < high:
        return 0 if value < low else count + 1 if value >= high else int((value - low) * count // (high - low)) + 1
    return 0 if value > low else count + 1 if value <= high else int((low - value) * count // (low - high)) + 1


@udf("float8", "float8", "float8", "int4", to="int4")
def width_bucket_float8(value: float, low: float, high: float, count: int) -> int:
    if any(map(math.isnan, (value, low, high))):
        raise InvalidArgumentForWidthBucketFunction("operand, lower bound, and upper bound cannot be NaN")
    if math.isinf(low) or math.isinf(high):
        raise InvalidArgumentForWidthBucketFunction("lower and upper bounds must be finite")
    _check_buckets(count, low == high)
    if value < low if low < high else value > low:
        return 0
    return _int4(count + 1 if (value >= high if low < high else value <= high) else _bucket(value, low, high, count))


def _bucket(value: float, low: float, high: float, count: int) -> int:
    """Returns the bucket of a value inside the range, rounded as in PostgreSQL 15.

    If the numerator or the range is infinite, where PostgreSQL 15 returns -2147483648, all are halved.
    """
    bucket = count * (value - low) / (high - low) + 1
    if not math.isfinite(bucket):
        bucket = count * ((value / 2 - low / 2) / (high / 2 - low / 2)) + 1
    return int(bucket)


# --- shifts --------------------------------------------------------------------------------------


def _register_shifts(type: str, bits: int) -> None:
    width = 64 if bits == 64 else 32  # a smallint is shifted as an integer
    sign_bit = 1 << bits - 1

    def left(a: int, count: int) -> int:
        return (((a << count % width) + sign_bit) & ((1 << bits) - 1)) - sign_bit

    def right(a: int, count: int) -> int:
        return a >> count % width

    udf(type, "int4", to=type, name=f"shift_left_{type}")(left)
    udf(type, "int4", to=type, name=f"shift_right_{type}")(right)


for _type, _bits in (("int2", 16), ("int4", 32), ("int8", 64)):
    _register_shifts(_type, _bits)
