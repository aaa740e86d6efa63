"""Variances, and the functions of a regression line through pairs of numbers.

They are computed from exact sums of the numbers, their squares and their products. The spread of a
and b is n Σab - Σa Σb; in names of functions it is s with the letters, such as sxy. Results have 50
digits and are rounded once, as in the engine.

Source: PostgreSQL 15, src/backend/utils/adt/float.c (float8_regr_*), numeric.c
(numeric_stddev_internal).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal

from tailgate.lake.errors import NumericValueOutOfRange
from tailgate.lake.sortable import EXACT

DIGITS = Context(prec=50, rounding=ROUND_HALF_EVEN, Emax=999999, Emin=-999999)
WIDE = Context(prec=10_000, Emax=999999, Emin=-999999)  # digits of any sum of products of doubles
SAMPLE_FUNCTIONS = ("var_samp", "variance", "stddev_samp", "stddev", "covar_samp")  # need two values


def variance(function: str, values: Sequence[str], scale: int) -> str | None:
    """Returns the result for decimals of equal scale, as a numeric of a scale."""
    n = len(values)
    if n < _values_min(function):
        return None
    numbers = [int(v.replace(".", "")) for v in values]
    _, _, fraction = values[0].partition(".")
    spread = n * sum(x * x for x in numbers) - sum(numbers) ** 2
    result = _variance(function, n, Decimal(spread).scaleb(-2 * len(fraction), context=EXACT))
    return format(result.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, EXACT), "f")


def moments(function: str, values: Sequence[Sequence[float]]) -> float | None:
    """Returns the result for pairs (y, x) of floats, or for x alone. Raises 22003 on overflow."""
    n = len(values)
    if n < _values_min(function):
        return None
    xs, ys = [v[-1] for v in values], [v[0] for v in values]
    if function in ("regr_avgx", "regr_avgy"):
        return _average(xs if function == "regr_avgx" else ys)
    arguments = ys if function == "regr_syy" else xs if function == "regr_sxx" else xs + ys
    if not all(map(math.isfinite, arguments)):
        return math.nan
    (x, y), shift = _integers(xs if function != "regr_syy" else ys, ys if function != "regr_sxx" else xs)
    return _result(function, x, y, shift)


def _values_min(function: str) -> int:
    return 2 if function in SAMPLE_FUNCTIONS else 1


def _variance(function: str, n: int, spread: Decimal) -> Decimal:
    result = DIGITS.divide(spread, Decimal(n * (n - 1 if function in SAMPLE_FUNCTIONS else n)))
    return DIGITS.sqrt(result) if function.startswith("stddev") else result


def _average(values: Sequence[float]) -> float:
    special = {v for v in values if not math.isfinite(v)}
    if special:
        only_infinity = len(special) == 1 and not any(map(math.isnan, special))
        return special.pop() if only_infinity else math.nan
    (integers,), shift = _integers(values)
    return _float(DIGITS.divide(_unshifted(sum(integers), shift), Decimal(len(values))))


def _result(function: str, x: list[int], y: list[int], shift: int) -> float | None:
    """Returns the result for numbers that are integers times 2^-shift."""
    n = len(x)
    count = Decimal(n)

    def spread(a: list[int], b: list[int]) -> Decimal:
        return _unshifted(n * sum(p * q for p, q in zip(a, b, strict=True)) - sum(a) * sum(b), 2 * shift)

    xx = spread(x, x)
    if function.startswith(("var", "stddev")):
        return _float(_variance(function, n, xx))
    if function == "regr_sxx":
        return _float(DIGITS.divide(xx, count))
    yy, xy = spread(y, y), spread(x, y)
    match function:
        case "regr_syy":
            return _float(DIGITS.divide(yy, count))
        case "regr_sxy":
            return _float(DIGITS.divide(xy, count))
        case "covar_pop":
            return _float(DIGITS.divide(xy, count * count))
        case "covar_samp":
            return _float(DIGITS.divide(xy, Decimal(n * (n - 1))))
        case "corr":
            return None if not xx or not yy else _float(DIGITS.divide(xy, DIGITS.sqrt(EXACT.multiply(xx, yy))))
    if not xx:
        return None
    match function:
        case "regr_r2":
            return 1.0 if not yy else _float(DIGITS.divide(EXACT.multiply(xy, xy), EXACT.multiply(xx, yy)))
        case "regr_slope":
            return _float(DIGITS.divide(xy, xx))
    sx, sy = _unshifted(sum(x), shift), _unshifted(sum(y), shift)
    return _float(DIGITS.divide(EXACT.subtract(sy, DIGITS.divide(EXACT.multiply(sx, xy), xx)), count))


def _integers(*sides: Sequence[float]) -> tuple[tuple[list[int], ...], int]:
    """Returns the numbers times 2^shift, and the shift, which makes them all integers."""
    ratios = [[v.as_integer_ratio() for v in side] for side in sides]
    shift = max((d.bit_length() - 1 for side in ratios for _, d in side), default=0)
    return tuple([n << shift - d.bit_length() + 1 for n, d in side] for side in ratios), shift


def _unshifted(value: int, shift: int) -> Decimal:
    """Returns value / 2^shift exactly: 2^-n is 5^n / 10^n."""
    return Decimal(value * 5**shift).scaleb(-shift, context=WIDE)


def _float(value: Decimal) -> float:
    result = float(value)
    if math.isinf(result):
        raise NumericValueOutOfRange("value out of range: overflow")
    return result
