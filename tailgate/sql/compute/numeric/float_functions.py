"""Functions of floating-point numbers: powers, roots, and trigonometry in radians and degrees.

Functions in degrees are exact at multiples of 30, as in PostgreSQL.

Source: PostgreSQL 15, src/backend/utils/adt/float.c.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from tailgate.lake.errors import InvalidArgumentForPowerFunction, NumericValueOutOfRange
from tailgate.sql.compute.registry import udf

RADIANS_PER_DEGREE = 0.0174532925199432957692


@udf("float8", "float8", to="float8")
def power_float8(a: float, b: float) -> float:
    if math.isnan(a):
        return 1.0 if b == 0 else a
    if math.isnan(b):
        return 1.0 if a == 1 else b
    if a == 0 and b < 0:
        raise InvalidArgumentForPowerFunction("zero raised to a negative power is undefined")
    if a < 0 and not math.isinf(b) and b != math.floor(b):
        raise InvalidArgumentForPowerFunction("a negative number raised to a non-integer power yields a complex result")
    try:
        power = math.pow(a, b)
    except OverflowError:
        raise NumericValueOutOfRange("value out of range: overflow") from None
    except ValueError:
        return math.inf
    if power == 0 and a != 0 and not math.isinf(a) and not math.isinf(b):
        raise NumericValueOutOfRange("value out of range: underflow")
    return power


@udf("float8", to="float8")
def cbrt(a: float) -> float:
    """Returns the C library's cube root; the last digit may be wrong: 3.0000000000000004 for 27."""
    return a if a == 0 or not math.isfinite(a) else math.copysign(_positive_cbrt(abs(a)), a)


def _positive_cbrt(a: float) -> float:
    return float(math.cbrt(a)) if hasattr(math, "cbrt") else a ** (1 / 3)  # Python 3.11 has cbrt()


def _check_unit(x: float) -> None:
    if not -1 <= x <= 1:
        raise NumericValueOutOfRange("input is out of range")


def _check_finite(x: float) -> None:
    if math.isinf(x):
        raise NumericValueOutOfRange("input is out of range")


# --- radians -------------------------------------------------------------------------------------


def _in_radians(name: str, x: float) -> float:
    """Calls a function of Python's math module, with PostgreSQL's results outside of its domain."""
    if math.isnan(x):
        return x
    match name:
        case "sin" | "cos" | "tan":
            _check_finite(x)
        case "cot":
            _check_finite(x)
            tangent = math.tan(x)
            return 1.0 / tangent if tangent else math.copysign(math.inf, tangent)
        case "asin" | "acos":
            _check_unit(x)
        case "acosh" if x < 1:
            raise NumericValueOutOfRange("input is out of range")
        case "atanh":
            _check_unit(x)
            if abs(x) == 1:
                return math.copysign(math.inf, x)
        case "sinh" | "cosh":
            try:
                return float(getattr(math, name)(x))
            except OverflowError:
                return math.copysign(math.inf, x) if name == "sinh" else math.inf
    return float(getattr(math, name)(x))


for _name in "sin cos tan cot asin acos atan sinh cosh tanh asinh acosh atanh".split():

    def _radians_udf(x: float, name: str = _name) -> float:
        return _in_radians(name, x)

    udf("float8", to="float8", name=_name)(_radians_udf)


@udf("float8", "float8", to="float8")
def atan2(y: float, x: float) -> float:
    return math.atan2(y, x)


# --- degrees -------------------------------------------------------------------------------------


def _sin_0_to_30(x: float) -> float:
    """Computes the sine of 0 to 30 degrees; exactly 0.5 at 30."""
    return math.sin(x * RADIANS_PER_DEGREE) / math.sin(30 * RADIANS_PER_DEGREE) / 2.0


def _cos_0_to_60(x: float) -> float:
    """Computes the cosine of 0 to 60 degrees; exactly 0.5 at 60."""
    return 1.0 - (1.0 - math.cos(x * RADIANS_PER_DEGREE)) / (1.0 - math.cos(60 * RADIANS_PER_DEGREE)) / 2.0


def _sin_0_to_90(x: float) -> float:
    return _sin_0_to_30(x) if x <= 30 else _cos_0_to_60(90 - x)


def _cos_0_to_90(x: float) -> float:
    return _cos_0_to_60(x) if x <= 60 else _sin_0_to_30(90 - x)


TAN_45 = _sin_0_to_90(45) / _cos_0_to_90(45)
COT_45 = _cos_0_to_90(45) / _sin_0_to_90(45)


class _HalfTurn(NamedTuple):
    """An angle reduced to 0 to 180 degrees, and the sign of the original sine."""

    angle: float
    sign: float

    @property
    def quadrant(self) -> _HalfTurn:
        """Returns the angle from 0 to 90 degrees with the same tangent, and the tangent's sign."""
        return _HalfTurn(180 - self.angle, -self.sign) if self.angle > 90 else self


def _half_turn(x: float) -> _HalfTurn:
    angle, sign = math.fmod(x, 360.0), 1.0
    if angle < 0:
        angle, sign = -angle, -1.0
    return _HalfTurn(360 - angle, -sign) if angle > 180 else _HalfTurn(angle, sign)


def sind(x: float) -> float:
    angle, sign = _half_turn(x)
    return sign * _sin_0_to_90(180 - angle if angle > 90 else angle)


def cosd(x: float) -> float:
    angle, _ = _half_turn(x)
    return -_cos_0_to_90(180 - angle) if angle > 90 else _cos_0_to_90(angle)


def tand(x: float) -> float:
    angle, sign = _half_turn(x).quadrant
    tangent = sign * ((_sin_0_to_90(angle) / _cos_0_to_90(angle)) / TAN_45 if angle != 90 else math.inf)
    return 0.0 if tangent == 0 else tangent


def cotd(x: float) -> float:
    angle, sign = _half_turn(x).quadrant
    infinity = math.copysign(math.inf, angle)
    cotangent = sign * ((_cos_0_to_90(angle) / _sin_0_to_90(angle)) / COT_45 if angle != 0 else infinity)
    return 0.0 if cotangent == 0 else cotangent


def _asin_0_to_1(x: float) -> float:
    if x <= 0.5:
        return math.asin(x) / math.asin(0.5) * 30.0
    return 90.0 - math.acos(x) / math.acos(0.5) * 60.0


def _acos_0_to_1(x: float) -> float:
    if x <= 0.5:
        return 90.0 - math.asin(x) / math.asin(0.5) * 30.0
    return math.acos(x) / math.acos(0.5) * 60.0


def asind(x: float) -> float:
    _check_unit(x)
    return _asin_0_to_1(x) if x >= 0 else -_asin_0_to_1(-x)


def acosd(x: float) -> float:
    _check_unit(x)
    return _acos_0_to_1(x) if x >= 0 else 90.0 + _asin_0_to_1(-x)


def atand(x: float) -> float:
    return math.atan(x) / math.atan(1.0) * 45.0


def _register_degrees(function: Callable[[float], float], finite: bool) -> None:
    """Registers a function. NaN is its own result; `finite` functions raise 22003 for infinity."""

    def checked(x: float) -> float:
        if math.isnan(x):
            return x
        if finite:
            _check_finite(x)
        return function(x)

    udf("float8", to="float8", name=function.__name__)(checked)


for _function in (sind, cosd, tand, cotd):
    _register_degrees(_function, finite=True)
for _function in (asind, acosd, atand):
    _register_degrees(_function, finite=False)


@udf("float8", "float8", to="float8")
def atan2d(y: float, x: float) -> float:
    return math.atan2(y, x) / math.atan(1.0) * 45.0
