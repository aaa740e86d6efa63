"""PostgreSQL's values in Python: comparison and range checks.

None, bool, int, float, str, bytes, Decimal, date, datetime (with time zone: in UTC), tuples for
arrays.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from tailgate.lake.types import Type
from testing.reference.general import General, general

Value = Any
Row = tuple[Value, ...]
NAN = math.nan  # always this object, so that rows with NaN are equal

EXACT = Context(prec=200)
LIMITS = {"int2": 2**15, "int4": 2**31, "int8": 2**63}


class Failure(Exception):
    """The error of an expression, with its SQLSTATE."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(f"{sqlstate} {message}")
        self.sqlstate = sqlstate


def order(v: Value) -> Any:
    """Returns a key that compares like PostgreSQL: NaN equals itself and is the largest; text by bytes."""
    if isinstance(v, float):
        return (1, 0.0) if math.isnan(v) else (0, v)
    if isinstance(v, Decimal):
        return (1, 0.0) if v.is_nan() else (0, Decimal(v))
    if isinstance(v, int) and not isinstance(v, bool):
        return (0, v)
    return v.encode() if isinstance(v, str) else v


def normal(v: Value) -> Value:
    """Normalizes NaN and negative zero, so that equal values are identical."""
    if isinstance(v, float):
        return NAN if math.isnan(v) else v + 0.0
    return v


def fit(v: Value, type: Type) -> Value:
    """Converts a value to a type.

    Rounds numerics half away from zero to the scale. Raises 22003 if the value is out of range.
    """
    if v is None:
        return None
    if isinstance(v, Decimal) and not v.is_finite() and (type.name in LIMITS or (type.name == "numeric" and not type.general)):
        raise Failure("22003", f"cannot convert {v} to {type}")
    if type.name in LIMITS:
        whole = int(v)
        if whole != v:
            whole = half_up(Fraction(v), 0).__int__()
        if not -LIMITS[type.name] <= whole < LIMITS[type.name]:
            raise Failure("22003", f"{type} out of range")
        return whole
    if type.general:
        return v if isinstance(v, General) else general(v)
    if type.name == "numeric":
        precision, scale = type.decimal
        out = half_up(Fraction(v), scale)
        if abs(out) >= Decimal(10) ** (precision - scale):
            raise Failure("22003", "numeric field overflow")
        return out
    if type.name in ("float8", "float4"):
        try:
            return normal(float(v))
        except OverflowError:
            raise Failure("22003", "value out of range: overflow") from None
    return v


def half_up(v: Fraction, scale: int) -> Decimal:
    """Rounds half away from zero to `scale` digits."""
    scaled = abs(v) * 10**scale
    whole = math.floor(scaled + Fraction(1, 2))
    return Decimal(whole if v >= 0 else -whole).scaleb(-scale, context=EXACT)
