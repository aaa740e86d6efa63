"""Reference implementation of numerics without a declared precision: exact numbers with a display scale, NaN and infinities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from tailgate.lake.sortable import loaded, stored

QUOTIENT_DIGITS_MIN, SCALE_MAX = 16, 1000
BASE, BASE_DIGITS = 10_000, 4  # of PostgreSQL's numerics


class General(Decimal):
    """A number that is identical only to those with the same display scale. `values.order` compares numbers by value."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, General) and self.as_tuple() == other.as_tuple()

    def __hash__(self) -> int:
        return hash(self.as_tuple())

    @property
    def scale(self) -> int:
        exponent = self.as_tuple().exponent
        return -exponent if isinstance(exponent, int) else 0


class DivisionByZero(Exception):
    """The divisor is zero."""


def general(number: int | Decimal) -> General:
    """Returns a number with its digits after the decimal point as display scale."""
    value = Decimal(number)
    exponent = value.as_tuple().exponent
    return rounded(Fraction(value), 0) if isinstance(exponent, int) and exponent > 0 else General(value)


def rounded(value: Fraction, scale: int) -> General:
    """Rounds half away from zero to `scale` digits."""
    whole = math.floor(abs(value) * 10**scale + Fraction(1, 2))
    return General(Decimal((int(value < 0 and whole > 0), tuple(map(int, str(whole))), -scale)))


def read(form: Any) -> General | None:
    """Returns the number with a stored form: the fields u, s and x."""
    return None if form is None else General(loaded(*form))


def form(number: str | Decimal) -> tuple[Any, ...]:
    return tuple(stored(Decimal(number)).values())


# ---- arithmetic ----------------------------------------------------------------------------------------------------------------------


def arithmetic(sign: str, a: General, b: General) -> General:
    if a.is_nan() or b.is_nan():
        return General("NaN")
    if sign in "/%" and b.is_zero():
        raise DivisionByZero
    if not (a.is_finite() and b.is_finite()):
        return infinite(sign, a, b)
    x, y = Fraction(a), Fraction(b)
    scale = max(a.scale, b.scale)
    match sign:
        case "/":
            return rounded(x / y, quotient_scale(x, y, scale))
        case "%":
            return rounded(x - y * math.trunc(x / y), scale)
        case "*":
            return rounded(x * y, a.scale + b.scale)
    return rounded(x + y if sign == "+" else x - y, scale)


def infinite(sign: str, a: General, b: General) -> General:
    """Applies an operator to two numbers of which at least one is infinite."""
    if sign == "%":
        return a if a.is_finite() else General("NaN")
    if sign == "/" and a.is_finite():
        return General(0)
    # as floats of the same signs, which have the same rules
    x, y = (float(v) if v.is_infinite() else float((Decimal(v) > 0) - (Decimal(v) < 0)) for v in (a, b))
    if sign == "/":
        result = math.nan if math.isinf(y) else x * y
    else:
        result = {"+": x + y, "-": x - y, "*": x * y}[sign]
    return General("NaN") if math.isnan(result) else General(Decimal(result))


def quotient_scale(x: Fraction, y: Fraction, scale: int) -> int:
    """Returns the display scale of x / y for operands with at most `scale` digits: at least 16 significant digits."""
    (weight_x, first_x), (weight_y, first_y) = leading(x), leading(y)
    weight = weight_x - weight_y - (first_x <= first_y)
    return min(max(QUOTIENT_DIGITS_MIN - weight * BASE_DIGITS, scale, 0), SCALE_MAX)


def leading(value: Fraction) -> tuple[int, int]:
    """Returns the exponent and the value of the first digit to base 10,000."""
    value, weight = abs(value), 0
    if not value:
        return 0, 0
    while value >= BASE:
        value, weight = value / BASE, weight + 1
    while value < 1:
        value, weight = value * BASE, weight - 1
    return weight, math.floor(value)


# ---- aggregates ----------------------------------------------------------------------------------------------------------------------


def total(values: Sequence[General]) -> General:
    special = {str(v) for v in values if not v.is_finite()}
    if special:
        return General(special.pop() if len(special) == 1 else "NaN")
    return rounded(sum(map(Fraction, values), Fraction()), max(v.scale for v in values))


def average(values: Sequence[General]) -> General:
    return arithmetic("/", total(values), general(len(values)))


def variance(values: Sequence[General], *, sample: bool, root: bool) -> General:
    """Returns the variance, or the standard deviation, of enough values."""
    if not all(v.is_finite() for v in values):
        return General("NaN")
    exact, n = list(map(Fraction, values)), len(values)
    spread, divisor = n * sum(v * v for v in exact) - sum(exact) ** 2, Fraction(n * (n - 1 if sample else n))
    if not spread:
        return General(0)
    scale = quotient_scale(spread, divisor, 2 * max(v.scale for v in values))
    result = rounded(spread / divisor, scale)
    if not root:
        return result
    context = Context(prec=result.adjusted() + 2 * scale + 20, Emin=-999_999, Emax=999_999)
    return rounded(Fraction(context.sqrt(Decimal(result))), scale)
