"""Sums, products, quotients and rounding of general numerics.

Source: PostgreSQL 15, src/backend/utils/adt/numeric.c (numeric_add to numeric_lcm).
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Decimal

from tailgate.lake.errors import DivisionByZero, NumericValueOutOfRange
from tailgate.lake.sortable import DIGITS_MAX, SCALE_MAX
from tailgate.values.numbers.numerics import overflow
from tailgate.values.numeric.scales import NAN, ONE, WIDE, ZERO, checked, quotient_scale, rounded, scale_of

FACTORS_MAX = 64  # of a product of Python's integers
FACTORIAL_MAX = 32_177  # a larger one has more digits than a numeric may have


def add(a: Decimal, b: Decimal) -> Decimal:
    if a.is_finite() and b.is_finite():
        return checked(WIDE.add(a, b))
    if a.is_nan() or b.is_nan() or (a.is_infinite() and b.is_infinite() and a != b):
        return NAN
    return a if a.is_infinite() else b


def subtract(a: Decimal, b: Decimal) -> Decimal:
    return add(a, negated(b))


def multiply(a: Decimal, b: Decimal) -> Decimal:
    if a.is_finite() and b.is_finite():
        product = WIDE.multiply(a, b)
        return rounded(product, SCALE_MAX) if scale_of(product) > SCALE_MAX else checked(product)
    if a.is_nan() or b.is_nan() or not a or not b:
        return NAN
    return _infinity(a, b)


def _infinity(a: Decimal, b: Decimal) -> Decimal:
    return Decimal("-Infinity" if a.is_signed() != b.is_signed() else "Infinity")


def divide(a: Decimal, b: Decimal) -> Decimal:
    if (special := _special_quotient(a, b)) is not None:
        return special
    return divide_to(a, b, quotient_scale(a, b))


def _special_quotient(a: Decimal, b: Decimal) -> Decimal | None:
    """Returns the quotient if an operand is NaN or infinite, else None. Raises 22012."""
    if a.is_nan() or b.is_nan():
        return NAN
    if not b:
        raise DivisionByZero("division by zero")
    if a.is_infinite():
        return NAN if b.is_infinite() else _infinity(a, b)
    return ZERO if b.is_infinite() else None


def divide_to(a: Decimal, b: Decimal, scale: int) -> Decimal:
    """Returns the quotient of finite values, rounded half away from zero to a scale."""
    tenths = WIDE.divide_int(a.scaleb(scale + 1, context=WIDE), b)  # of the unit of the result, cut off
    return rounded(tenths.scaleb(-scale - 1, context=WIDE), scale)


def quotient(a: Decimal, b: Decimal) -> Decimal:
    """Returns the integer part of the quotient."""
    if (special := _special_quotient(a, b)) is not None:
        return special
    return checked(WIDE.divide_int(a, b))


def remainder(a: Decimal, b: Decimal) -> Decimal:
    """Returns the remainder with the sign of the dividend."""
    if a.is_nan() or b.is_nan():
        return NAN
    if not b:
        raise DivisionByZero("division by zero")
    if a.is_infinite():
        return NAN
    return a if b.is_infinite() else checked(WIDE.remainder(a, b))


def negated(a: Decimal) -> Decimal:
    return a.copy_negate() if a and not a.is_nan() else a


def absolute(a: Decimal) -> Decimal:
    return a.copy_abs()


def sign(a: Decimal) -> Decimal:
    return a if a.is_nan() else Decimal((a > 0) - (a < 0))


# --- rounding ------------------------------------------------------------------------------------


def round_to(a: Decimal, digits: int) -> Decimal:
    return _at(a, digits, "ROUND_HALF_UP")


def truncate(a: Decimal, digits: int) -> Decimal:
    return _at(a, digits, ROUND_DOWN)


def _at(a: Decimal, digits: int, rounding: str) -> Decimal:
    if not a.is_finite():
        return a
    digits = max(-DIGITS_MAX - 1, min(digits, SCALE_MAX))
    value = a.quantize(ONE.scaleb(-digits), rounding=rounding, context=WIDE)
    return checked(value.quantize(ONE, context=WIDE) if digits < 0 else value)


def ceiling(a: Decimal) -> Decimal:
    return _integral(a, ROUND_CEILING)


def floor(a: Decimal) -> Decimal:
    return _integral(a, ROUND_FLOOR)


def _integral(a: Decimal, rounding: str) -> Decimal:
    return checked(a.quantize(ONE, rounding=rounding, context=WIDE)) if a.is_finite() else a


def min_scale(a: Decimal) -> int | None:
    """Returns the smallest scale that shows all digits; None for NaN and infinities."""
    if not a.is_finite():
        return None
    return max(0, scale_of(WIDE.normalize(a))) if a else 0


def display_scale(a: Decimal) -> int | None:
    return scale_of(a) if a.is_finite() else None


def trim_scale(a: Decimal) -> Decimal:
    scale = min_scale(a)
    return a if scale is None else a.quantize(ONE.scaleb(-scale), context=WIDE)


# --- integers ------------------------------------------------------------------------------------


def _scaled_integers(a: Decimal, b: Decimal) -> tuple[int, int, int]:
    """Returns both values times a power of ten that makes them integers, and the power."""
    scale = max(scale_of(a), scale_of(b))
    return int(a.scaleb(scale, context=WIDE)), int(b.scaleb(scale, context=WIDE)), scale


def greatest_common_divisor(a: Decimal, b: Decimal) -> Decimal:
    if not (a.is_finite() and b.is_finite()):
        return NAN
    x, y, scale = _scaled_integers(a, b)
    return Decimal(math.gcd(x, y)).scaleb(-scale, context=WIDE)


def least_common_multiple(a: Decimal, b: Decimal) -> Decimal:
    if not (a.is_finite() and b.is_finite()):
        return NAN
    x, y, scale = _scaled_integers(a, b)
    return checked(Decimal(math.lcm(x, y)).scaleb(-scale, context=WIDE))


def factorial(n: int) -> Decimal:
    if n < 0:
        raise NumericValueOutOfRange("factorial of a negative number is undefined")
    if n > FACTORIAL_MAX:
        raise overflow()
    return _product(1, n + 1)


def _product(first: int, end: int) -> Decimal:
    """Returns the product of the integers below `end`. Products of numbers of similar length are fast."""
    if end - first <= FACTORS_MAX:
        return Decimal(math.prod(range(first, end)))
    middle = (first + end) // 2
    return WIDE.multiply(_product(first, middle), _product(middle, end))
