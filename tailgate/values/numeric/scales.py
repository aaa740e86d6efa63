"""Limits of PostgreSQL's numerics, and the display scales of results that are rounded.

A value is a Decimal whose exponent is minus its display scale, NaN, or an infinity. PostgreSQL stores
digits to base 10,000, in groups; it derives scales from the first group and its weight, the power of 10,000.

Source: PostgreSQL 15, src/backend/utils/adt/numeric.c (select_div_scale, estimate_ln_dweight).
"""

from __future__ import annotations

import math
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal

from tailgate.lake.sortable import DIGITS_MAX, SCALE_MAX
from tailgate.values.numbers.numerics import overflow

NAN, INFINITY, MINUS_INFINITY = Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity")
ZERO, ONE = Decimal(0), Decimal(1)
SIGNIFICANT_DIGITS = 16  # at least, of a rounded result
DISPLAY_SCALE_MAX = 1_000  # of a rounded result
GROUP = 4  # digits
LOG_10 = 2.302585092994046
# room for the exact product of two values
WIDE = Context(prec=2 * (DIGITS_MAX + SCALE_MAX), Emax=999_999, Emin=-999_999, rounding=ROUND_HALF_UP)


def scale_of(value: Decimal) -> int:
    """Returns the display scale of a finite value."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int), value
    return -exponent


def checked(value: Decimal) -> Decimal:
    """Returns a finite result, zero without a sign. Raises 22003 if it has too many digits before the decimal point."""
    if not value:
        return value.copy_abs()
    if value.adjusted() >= DIGITS_MAX:
        raise overflow()
    return value


def rounded(value: Decimal, scale: int) -> Decimal:
    """Rounds half away from zero to a display scale."""
    return checked(value.quantize(ONE.scaleb(-scale), rounding=ROUND_HALF_UP, context=WIDE))


def weight(value: Decimal) -> int:
    """Returns the power of 10,000 of the first group of digits, 0 for zero.

    >>> [weight(Decimal(text)) for text in ("0", "9999", "10000", "0.5", "0.00001")]
    [0, 0, 1, -1, -2]
    """
    return value.adjusted() // GROUP if value else 0


def groups(value: Decimal, count: int) -> int:
    """Returns the first groups of digits as one integer.

    >>> groups(Decimal("12345.67"), 1), groups(Decimal("12345.67"), 2), groups(Decimal("0.5"), 1)
    (1, 12345, 5000)
    """
    shifted = value.copy_abs().scaleb(GROUP * (count - 1 - weight(value)), context=WIDE)
    return int(shifted.to_integral_value(rounding=ROUND_DOWN, context=WIDE))


def display_scale(digits_before: int, *arguments: Decimal) -> int:
    """Returns a scale that shows at least 16 digits of a result with so many digits before the decimal point."""
    return min(max(SIGNIFICANT_DIGITS - digits_before, 0, *map(scale_of, arguments)), DISPLAY_SCALE_MAX)


def quotient_scale(a: Decimal, b: Decimal) -> int:
    """Returns the display scale of a / b."""
    places = weight(a) - weight(b)
    if groups(a, 1) <= groups(b, 1):
        places -= 1
    return display_scale(places * GROUP, a, b)


def logarithm_places(value: Decimal) -> int:
    """Returns about log10(|ln(value)|), truncated, for a value above zero."""
    if Decimal("0.9") <= value <= Decimal("1.1"):
        distance = WIDE.subtract(value, ONE)
        return weight(distance) * GROUP + int(math.log10(groups(distance, 1))) if distance else 0
    places = weight(value) * GROUP
    first = groups(value, 1)
    if value != Decimal(first).scaleb(places, context=WIDE):  # there is a second group
        first, places = groups(value, 2), places - GROUP
    return int(math.log10(abs(math.log(first) + places * LOG_10)))
