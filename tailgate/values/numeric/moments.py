"""Variances and standard deviations of general numerics.

Source: PostgreSQL 15, src/backend/utils/adt/numeric.c (numeric_accum to numeric_stddev_internal).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import reduce

from tailgate.values.numeric.arithmetic import divide_to
from tailgate.values.numeric.powers import root_to
from tailgate.values.numeric.scales import NAN, WIDE, ZERO, checked, quotient_scale

SAMPLE_FUNCTIONS = ("var_samp", "variance", "stddev_samp", "stddev")  # need two values


def variance(function: str, values: Sequence[Decimal]) -> Decimal | None:
    """Returns a variance or, of a function whose name begins with stddev, a standard deviation."""
    n = len(values)
    is_sample = function in SAMPLE_FUNCTIONS
    if n < (2 if is_sample else 1):
        return None
    if not all(v.is_finite() for v in values):
        return NAN
    sum_of_values = reduce(WIDE.add, values)
    squares = reduce(WIDE.add, (WIDE.multiply(v, v) for v in values))
    spread = WIDE.subtract(WIDE.multiply(Decimal(n), squares), WIDE.multiply(sum_of_values, sum_of_values))
    if spread <= 0:
        return ZERO
    count = Decimal(n * (n - 1 if is_sample else n))
    scale = quotient_scale(spread, count)
    result = divide_to(spread, count, scale)
    return root_to(result, scale) if function.startswith("stddev") else checked(result)
