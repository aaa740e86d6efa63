"""Functions of exact numbers.

An inexact result of a numeric has 16 digits behind the point (lake.types.NUMERIC_SCALE), where PostgreSQL's number of digits follows the
value.

Source: PostgreSQL 15, src/backend/utils/adt/numeric.c.
"""

from __future__ import annotations

import math
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation, Overflow

from lake.errors import DivisionByZero, NumericValueOutOfRange, of
from sql.compute.registry import own

WIDE = Context(prec=500)
EXACT = Context(prec=120, Emax=100_000, Emin=-100_000)


def field_overflow() -> Exception:
    return NumericValueOutOfRange("numeric field overflow")


@own("numeric", "numeric", to="numeric")
def numeric_power(a: Decimal, b: Decimal) -> Decimal:
    if not a and b < 0:
        raise of("2201F", "zero raised to a negative power is undefined")
    whole = b == b.to_integral_value()
    if a < 0 and not whole:
        raise of("2201F", "a negative number raised to a non-integer power yields a complex result")
    if not b or a == 1:
        return Decimal(1)
    if not a:
        return Decimal(0)
    try:
        found = EXACT.power(a, b)
    except (Overflow, InvalidOperation):
        raise field_overflow() from None
    return _within(found)


def _within(value: Decimal) -> Decimal:
    """22003 if it has no room; what is very small is 0."""
    if value and value.adjusted() > 38:
        raise field_overflow()
    return Decimal(0) if value and value.adjusted() < -60 else value


@own("numeric", to="numeric")
def numeric_sqrt(a: Decimal) -> Decimal:
    if a < 0:
        raise of("2201F", "cannot take square root of a negative number")
    return EXACT.sqrt(a)


@own("numeric", to="numeric")
def numeric_exp(a: Decimal) -> Decimal:
    if a > 100:
        raise field_overflow()
    return _within(EXACT.exp(a)) if a > -200 else Decimal(0)


def _positive(a: Decimal) -> None:
    if a <= 0:
        raise of("2201E", f"cannot take logarithm of {'a negative number' if a else 'zero'}")


@own("numeric", to="numeric")
def numeric_ln(a: Decimal) -> Decimal:
    _positive(a)
    return EXACT.ln(a)


@own("numeric", "numeric", to="numeric")
def numeric_log(base: Decimal, a: Decimal) -> Decimal:
    _positive(base)
    _positive(a)
    divisor = EXACT.ln(base)
    if not divisor:
        raise DivisionByZero("division by zero")
    return EXACT.divide(EXACT.ln(a), divisor)


@own("numeric", to="numeric")
def numeric_log10(a: Decimal) -> Decimal:
    _positive(a)
    return EXACT.log10(a)


@own("numeric", "numeric", to="numeric")
def numeric_div(a: Decimal, b: Decimal) -> Decimal:
    if not b:
        raise DivisionByZero("division by zero")
    return EXACT.divide_int(a, b)


@own("numeric", "numeric", to="numeric")
def numeric_gcd(a: Decimal, b: Decimal) -> Decimal:
    scale = max(-int(a.as_tuple().exponent), -int(b.as_tuple().exponent), 0)
    return Decimal(math.gcd(int(a.scaleb(scale, EXACT)), int(b.scaleb(scale, EXACT)))).scaleb(-scale, EXACT)


@own("numeric", "numeric", to="numeric")
def numeric_lcm(a: Decimal, b: Decimal) -> Decimal:
    if not a or not b:
        return Decimal(0)
    return abs(EXACT.multiply(a, EXACT.divide_int(b, numeric_gcd(a, b))))


@own("int8", to="numeric")
def factorial(n: int) -> Decimal:
    if n < 0:
        raise NumericValueOutOfRange("factorial of a negative number is undefined")
    if n > 33:  # the last below 1e38
        raise field_overflow()
    return Decimal(math.factorial(n))


@own("int8", "int8", to="int8")
def gcd_int8(a: int, b: int) -> int:
    return _int8(math.gcd(a, b))


@own("int8", "int8", to="int8")
def lcm_int8(a: int, b: int) -> int:
    return _int8(math.lcm(a, b))


def _int8(value: int) -> int:
    if value >= 2**63:
        raise NumericValueOutOfRange("bigint out of range")
    return value


@own("int4", "int4", to="int4")
def gcd_int4(a: int, b: int) -> int:
    return _int4(math.gcd(a, b))


@own("int4", "int4", to="int4")
def lcm_int4(a: int, b: int) -> int:
    return _int4(math.lcm(a, b))


def _int4(value: int) -> int:
    if value >= 2**31:
        raise NumericValueOutOfRange("integer out of range")
    return value


@own("numeric", to="int4")
def min_scale(a: Decimal) -> int:
    return max(0, -int(EXACT.normalize(a).as_tuple().exponent)) if a else 0


@own("numeric", "numeric", "numeric", "int4", to="int4", name="width_bucket_numeric")
def bucket(value: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    _buckets(count, low == high)
    if low < high:
        return 0 if value < low else count + 1 if value >= high else int((value - low) * count // (high - low)) + 1
    return 0 if value > low else count + 1 if value <= high else int((low - value) * count // (low - high)) + 1


def _buckets(count: int, equal: bool) -> None:
    if count <= 0:
        raise of("2201G", "count must be greater than zero")
    if equal:
        raise of("2201G", "lower bound cannot equal upper bound")


@own("float8", "float8", "float8", "int4", to="int4", name="width_bucket_float8")
def float_bucket(value: float, low: float, high: float, count: int) -> int:
    if any(map(math.isnan, (value, low, high))):
        raise of("2201G", "operand, lower bound, and upper bound cannot be NaN")
    if math.isinf(low) or math.isinf(high):
        raise of("2201G", "lower and upper bounds must be finite")
    _buckets(count, low == high)
    if low < high:
        found = 0 if value < low else count + 1 if value >= high else int(count * ((value - low) / (high - low))) + 1
    else:
        found = 0 if value > low else count + 1 if value <= high else int(count * ((low - value) / (low - high))) + 1
    if found >= 2**31:
        raise NumericValueOutOfRange("integer out of range")
    return found


@own("numeric", "int4", to="numeric")
def numeric_round(a: Decimal, digits: int) -> Decimal:
    return a.quantize(Decimal(1).scaleb(-max(-200, min(digits, 200))), rounding=ROUND_HALF_UP, context=WIDE)


@own("numeric", "int4", to="numeric")
def numeric_trunc(a: Decimal, digits: int) -> Decimal:
    return a.quantize(Decimal(1).scaleb(-max(-200, min(digits, 200))), rounding=ROUND_DOWN, context=WIDE)


def _shifts(type: str, bits: int) -> None:
    width = 64 if bits == 64 else 32
    sign = 1 << bits - 1

    def left(a: int, count: int) -> int:
        return (((a << count % width) + sign) & ((1 << bits) - 1)) - sign

    def right(a: int, count: int) -> int:
        return a >> count % width

    own(type, "int4", to=type, name=f"shift_left_{type}")(left)
    own(type, "int4", to=type, name=f"shift_right_{type}")(right)


for _type, _bits in (("int2", 16), ("int4", 32), ("int8", 64)):
    _shifts(_type, _bits)
