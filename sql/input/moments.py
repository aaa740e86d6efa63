"""Variances and the functions of a line through pairs of numbers, from the exact sums of the numbers, their squares and products.

S_xx is n Σx² - (Σx)². Results are computed with 50 digits and rounded once, as the engine does.

Source: PostgreSQL 15, src/backend/utils/adt/float.c (float8_regr_*), numeric.c (numeric_stddev_internal).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal

from lake.errors import NumericValueOutOfRange
from sql.input.numbers import EXACT

DIGITS = Context(prec=50, rounding=ROUND_HALF_EVEN, Emax=999999, Emin=-999999)
SAMPLES = ("var_samp", "variance", "stddev_samp", "stddev", "covar_samp")  # of two values at least


def variance(name: str, values: Sequence[str], scale: int) -> str | None:
    """Of decimals with equal scales, as a numeric of a scale."""
    n = len(values)
    if n < (2 if name in SAMPLES else 1):
        return None
    numbers = [int(v.replace(".", "")) for v in values]
    _, _, digits = values[0].partition(".")
    spread = n * sum(x * x for x in numbers) - sum(numbers) ** 2
    found = _variance(name, n, Decimal(spread).scaleb(-2 * len(digits), context=EXACT))
    return format(found.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, EXACT), "f")


def _variance(name: str, n: int, spread: Decimal) -> Decimal:
    found = DIGITS.divide(spread, Decimal(n * (n - 1 if name in SAMPLES else n)))
    return DIGITS.sqrt(found) if name.startswith("stddev") else found


def moments(name: str, values: Sequence[Sequence[float]]) -> float | None:
    """Of floating point: pairs (y, x), or x alone. Raises 22003 for a result that is none."""
    n = len(values)
    if n < (2 if name in SAMPLES else 1):
        return None
    xs, ys = [v[-1] for v in values], [v[0] for v in values]
    if name in ("regr_avgx", "regr_avgy"):
        chosen = xs if name == "regr_avgx" else ys
        special = {v for v in chosen if not math.isfinite(v)}
        if special:
            return special.pop() if len(special) == 1 and not any(map(math.isnan, special)) else math.nan
        (whole,), shift = _whole(chosen)
        return _finite(DIGITS.divide(_scaled(sum(whole), shift), Decimal(n)))
    read = ys if name == "regr_syy" else xs if name == "regr_sxx" else xs + ys
    if not all(map(math.isfinite, read)):
        return math.nan
    return _of(name, n, *_whole(xs if name != "regr_syy" else ys, ys if name != "regr_sxx" else xs))


def _of(name: str, n: int, sides: tuple[list[int], ...], shift: int) -> float | None:
    x, y = sides

    def spread(a: list[int], b: list[int]) -> Decimal:
        return _scaled(n * sum(p * q for p, q in zip(a, b, strict=True)) - sum(a) * sum(b), 2 * shift)

    xx = spread(x, x)
    if name.startswith(("var", "stddev")):
        return _finite(_variance(name, n, xx))
    count = Decimal(n)
    if name == "regr_sxx":
        return _finite(DIGITS.divide(xx, count))
    yy, xy = spread(y, y), spread(x, y)
    match name:
        case "regr_syy":
            return _finite(DIGITS.divide(yy, count))
        case "regr_sxy":
            return _finite(DIGITS.divide(xy, count))
        case "covar_pop":
            return _finite(DIGITS.divide(xy, count * count))
        case "covar_samp":
            return _finite(DIGITS.divide(xy, Decimal(n * (n - 1))))
        case "corr":
            return None if not xx or not yy else _finite(DIGITS.divide(xy, DIGITS.sqrt(EXACT.multiply(xx, yy))))
    if not xx:
        return None
    match name:
        case "regr_r2":
            return 1.0 if not yy else _finite(DIGITS.divide(EXACT.multiply(xy, xy), EXACT.multiply(xx, yy)))
        case "regr_slope":
            return _finite(DIGITS.divide(xy, xx))
    sx, sy = _scaled(sum(x), shift), _scaled(sum(y), shift)
    return _finite(DIGITS.divide(EXACT.subtract(sy, DIGITS.divide(EXACT.multiply(sx, xy), xx)), count))


def _whole(*sides: Sequence[float]) -> tuple[tuple[list[int], ...], int]:
    """The numbers times 2 to the power of a shift, which makes them all whole."""
    ratios = [[v.as_integer_ratio() for v in side] for side in sides]
    shift = max((d.bit_length() - 1 for side in ratios for _, d in side), default=0)
    return tuple([n << shift - d.bit_length() + 1 for n, d in side] for side in ratios), shift


def _scaled(value: int, shift: int) -> Decimal:
    """value / 2^shift, exactly: 2^-n is 5^n / 10^n."""
    return Decimal(value * 5**shift).scaleb(-shift, context=WIDE)


WIDE = Context(prec=10_000, Emax=999999, Emin=-999999)  # digits of any sum of products of doubles


def _finite(value: Decimal) -> float:
    found = float(value)
    if math.isinf(found):
        raise NumericValueOutOfRange("value out of range: overflow")
    return found
