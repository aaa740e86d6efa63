"""Roots, powers and logarithms of general numerics: as exact as their display scale.

Source: PostgreSQL 15, src/backend/utils/adt/numeric.c (numeric_sqrt to numeric_power, power_var_int).
"""

from __future__ import annotations

import math
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Context, Decimal

from tailgate.lake.errors import DivisionByZero, InvalidArgumentForLogarithm, InvalidArgumentForPowerFunction
from tailgate.lake.sortable import DIGITS_MAX
from tailgate.values.numbers.numerics import overflow
from tailgate.values.numeric.arithmetic import divide_to
from tailgate.values.numeric.scales import (
    DISPLAY_SCALE_MAX,
    GROUP,
    INFINITY,
    MINUS_INFINITY,
    NAN,
    ONE,
    SIGNIFICANT_DIGITS,
    WIDE,
    ZERO,
    display_scale,
    groups,
    logarithm_places,
    rounded,
    scale_of,
    weight,
)  # fmt: skip

EXPONENT_MAX = 6_000  # of e: beyond it a result overflows, or is 0
LOG_10_E = 0.434294481903252
GUARD = 12  # digits that are computed and not shown
LONG, HALVINGS = 500, 100  # from 3,600 digits and an argument of 6,000: 80 ms in place of 600


def _context(digits: int) -> Context:
    return Context(prec=max(digits, 1) + GUARD, Emax=999_999, Emin=-999_999, rounding=ROUND_HALF_EVEN)


def square_root(a: Decimal) -> Decimal:
    if a.is_nan() or a == INFINITY:
        return a
    if a < 0:
        raise InvalidArgumentForPowerFunction("cannot take square root of a negative number")
    places = (weight(a) + 1) * GROUP // 2 - 1
    return root_to(a, display_scale(places, a))


def root_to(a: Decimal, scale: int) -> Decimal:
    """Returns the square root of a finite value that is not negative, rounded to a scale."""
    unit = ONE.scaleb(-scale - 1)
    root = _context(max(a.adjusted() // 2, 0) + scale + 2).sqrt(a).quantize(unit, ROUND_DOWN, WIDE)
    while WIDE.multiply(root, root) > a:  # its last digit was rounded up
        root = WIDE.subtract(root, unit)
    return rounded(root, scale)


def exponential(a: Decimal) -> Decimal:
    if not a.is_finite():
        return ZERO if a == MINUS_INFINITY else a
    places = float(a) * LOG_10_E
    scale = display_scale(int(max(-2.0 * DISPLAY_SCALE_MAX, min(places, 2.0 * DISPLAY_SCALE_MAX))), a)
    return _exponential(a, scale)


def _exponential(a: Decimal, scale: int) -> Decimal:
    if a.copy_abs() >= EXPONENT_MAX:
        if a > 0:
            raise overflow()
        return ZERO.scaleb(-scale)
    return rounded(_power_of_e(a, int(float(a) * LOG_10_E) + scale + 2), scale)


def _power_of_e(a: Decimal, digits: int) -> Decimal:
    """Returns e ^ a. The time of exp() grows with the argument, so for many digits it is (e ^ (a / 2^n)) ^ (2^n)."""
    halvings = HALVINGS if digits > LONG else 0
    context = _context(digits + halvings // 3)
    power = context.exp(context.divide(a, Decimal(2**halvings)))
    for _ in range(halvings):
        power = context.multiply(power, power)
    return power


def _check_positive(a: Decimal) -> None:
    if a <= 0:
        raise InvalidArgumentForLogarithm(f"cannot take logarithm of {'a negative number' if a else 'zero'}")


def natural_logarithm(a: Decimal) -> Decimal:
    if a.is_nan():
        return a
    _check_positive(a)
    if a.is_infinite():
        return a
    places = logarithm_places(a)
    scale = display_scale(places, a)
    return rounded(_logarithm(a, places + scale), scale)


def _logarithm(a: Decimal, digits: int) -> Decimal:
    """Returns ln(a) with at least so many digits."""
    return _context(digits + 2).ln(a)


def logarithm(base: Decimal, a: Decimal) -> Decimal:
    if base.is_nan() or a.is_nan():
        return NAN
    if base.is_finite() and a.is_finite():
        _check_positive(base)
        _check_positive(a)
        return _finite_logarithm(base, a)
    if base < 0 or a < 0:
        raise InvalidArgumentForLogarithm("cannot take logarithm of a negative number")
    if not base or not a:
        raise InvalidArgumentForLogarithm("cannot take logarithm of zero")
    if base.is_infinite():
        return NAN if a.is_infinite() else ZERO
    return INFINITY


def _finite_logarithm(base: Decimal, a: Decimal) -> Decimal:
    if base == ONE:
        raise DivisionByZero("division by zero")
    places = logarithm_places(a) - logarithm_places(base)
    scale = display_scale(places, base, a)
    digits = max(places + scale, 1) + 8
    return divide_to(_logarithm(a, digits), _logarithm(base, digits), scale)


def decimal_logarithm(a: Decimal) -> Decimal:
    return logarithm(Decimal(10), a)


# --- powers --------------------------------------------------------------------------------------


def power(a: Decimal, b: Decimal) -> Decimal:
    if a.is_nan() or b.is_nan():
        return ONE if b == 0 or a == 1 else NAN
    if not a and b < 0:
        raise InvalidArgumentForPowerFunction("zero raised to a negative power is undefined")
    if a < 0 and b.is_finite() and not _is_integral(b):
        raise InvalidArgumentForPowerFunction("a negative number raised to a non-integer power yields a complex result")
    if a.is_infinite() or b.is_infinite():
        return _infinite_power(a, b)
    if _is_integral(b) and -(2**31) <= b < 2**31:
        return _integer_power(a, int(b))
    if not a:
        return ZERO.scaleb(-SIGNIFICANT_DIGITS)
    return _real_power(a, b)


def _is_integral(value: Decimal) -> bool:
    return value == value.to_integral_value(context=WIDE)


def _is_odd(value: Decimal) -> bool:
    return bool(WIDE.remainder(value, Decimal(2)))


def _infinite_power(a: Decimal, b: Decimal) -> Decimal:
    if a == ONE or not b:
        return ONE
    if not a:
        return ZERO
    if b.is_infinite():
        if a == -1:
            return ONE
        return INFINITY if (a.copy_abs() > 1) == (b > 0) else ZERO
    if b < 0:
        return ZERO
    return MINUS_INFINITY if a < 0 and _is_odd(b) else INFINITY


def _integer_power(a: Decimal, b: int) -> Decimal:
    """Returns a power with an exponent of 32 bits."""
    scale = min(max(SIGNIFICANT_DIGITS, scale_of(a)), DISPLAY_SCALE_MAX)
    if b in (0, 1):
        return rounded(a if b else ONE, scale)
    if not a:
        return ZERO.scaleb(-scale)
    places = b * _decimal_logarithm(a)
    if places > DIGITS_MAX:
        raise overflow()
    if places + 1 < -scale:
        return ZERO.scaleb(-scale)
    return rounded(_context(max(int(places), 0) + scale + len(str(abs(b)))).power(a, Decimal(b)), scale)


def _decimal_logarithm(a: Decimal) -> float:
    """Returns log10(|a|) from its first four groups of digits."""
    return math.log10(groups(a, GROUP)) + (weight(a) - GROUP + 1) * GROUP


def _real_power(a: Decimal, b: Decimal) -> Decimal:
    """Returns a power of a value other than zero, as e ^ (b ln |a|)."""
    base = a.copy_abs()
    ln_places = logarithm_places(base)
    estimate = _estimate(base, b, max(8 - ln_places, 0))
    if abs(estimate) > EXPONENT_MAX * 301 / 300:
        if estimate > 0:
            raise overflow()
        return ZERO.scaleb(-DISPLAY_SCALE_MAX)
    places = int(estimate * LOG_10_E)
    scale = display_scale(places, a, b)
    digits = max(scale + places, 0) + 8 + max(b.adjusted(), 0) + max(ln_places, 0)
    result = _exponential(_context(digits).multiply(b, _logarithm(base, digits)), scale)
    return result.copy_negate() if a < 0 and _is_odd(b) and result else result


def _estimate(base: Decimal, b: Decimal, scale: int) -> float:
    """Returns b ln(base), rounded as by PostgreSQL: the display scale depends on its digits before the decimal point."""
    ln = rounded(_logarithm(base, scale + 4), scale)
    return float(rounded(WIDE.multiply(b, ln), scale))
