"""Aggregates over a list of all values of a group, and exact divisions."""

from __future__ import annotations

from decimal import Decimal

from tailgate.lake.errors import DivisionByZero, NumericValueOutOfRange
from tailgate.lake.sortable import EXACT
from tailgate.sql.compute.numeric import moments
from tailgate.sql.compute.registry import udf
from tailgate.values.strings.jsonb import object_text

udf("text", "text[]", "int4", to="text", name="variance")(moments.variance)
udf("text", "float8[][]", to="float8", name="moments")(moments.moments)
udf("text[][]", to="jsonb", name="jsonb_object")(object_text)


@udf("numeric", "numeric", "int4", to="numeric")
def decimal_divide(a: Decimal, b: Decimal, scale: int) -> Decimal:
    """Returns the exact quotient, rounded half away from zero to a scale."""
    if not b:
        raise DivisionByZero("division by zero")
    (a_top, a_bottom), (b_top, b_bottom) = a.as_integer_ratio(), b.as_integer_ratio()
    top = a_top * b_bottom * 10**scale
    bottom = a_bottom * b_top
    quotient = (2 * abs(top) + abs(bottom)) // (2 * abs(bottom))
    if quotient >= 10**38:
        raise NumericValueOutOfRange("numeric field overflow")
    negative = (top < 0) != (bottom < 0)
    return Decimal(-quotient if negative else quotient).scaleb(-scale, context=EXACT)


@udf("numeric", "numeric", to="numeric")
def decimal_remainder(a: Decimal, b: Decimal) -> Decimal:
    """Returns the exact remainder, with the sign of the dividend. DuckDB computes that of two scales, and of large numbers, as floats."""
    if not b:
        raise DivisionByZero("division by zero")
    return EXACT.remainder(a, b)
