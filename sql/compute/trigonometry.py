"""Functions of floats: powers, roots, and those of angles in radians and degrees.

Source: PostgreSQL 15, src/backend/utils/adt/float.c.
"""

from __future__ import annotations

import math

from lake.errors import NumericValueOutOfRange, of
from sql.compute.registry import own


@own("float8", "float8", to="float8", name="power_float8")
def power(a: float, b: float) -> float:
    if math.isnan(a):
        return 1.0 if b == 0 else a
    if math.isnan(b):
        return 1.0 if a == 1 else b
    if a == 0 and b < 0:
        raise of("2201F", "zero raised to a negative power is undefined")
    if a < 0 and not math.isinf(b) and b != math.floor(b):
        raise of("2201F", "a negative number raised to a non-integer power yields a complex result")
    try:
        found = math.pow(a, b)
    except OverflowError:
        raise NumericValueOutOfRange("value out of range: overflow") from None
    except ValueError:
        return math.inf
    if found == 0 and a != 0 and not math.isinf(a) and not math.isinf(b):
        raise NumericValueOutOfRange("value out of range: underflow")
    return found


@own("float8", to="float8")
def cbrt(a: float) -> float:
    """The C library's, whose last digit is not always right: the cube root of 27 is 3.0000000000000004."""
    return a if a == 0 or not math.isfinite(a) else math.copysign(_cbrt(abs(a)), a)


def _cbrt(a: float) -> float:
    return float(math.cbrt(a)) if hasattr(math, "cbrt") else a ** (1 / 3)


def _domain(value: float) -> None:
    if not -1 <= value <= 1:
        raise NumericValueOutOfRange("input is out of range")


def _finite(value: float) -> None:
    if math.isinf(value):
        raise NumericValueOutOfRange("input is out of range")


def sind(x: float) -> float:
    """Exact where a multiple of 30 degrees makes it so."""
    x = math.fmod(x, 360.0)
    sign = 1.0
    if x < 0:
        x, sign = -x, -1.0
    if x > 180:
        x, sign = 360 - x, -sign
    if x > 90:
        x = 180 - x
    return sign * _sind_quadrant(x)


def _sind_quadrant(x: float) -> float:
    return _sind_0_to_30(x) if x <= 30 else _cosd_0_to_60(90 - x)


def _cosd_quadrant(x: float) -> float:
    return _cosd_0_to_60(x) if x <= 60 else _sind_0_to_30(90 - x)


RADIAN = 0.0174532925199432957692


def _sind_0_to_30(x: float) -> float:
    return math.sin(x * RADIAN) / math.sin(30 * RADIAN) / 2.0


def _cosd_0_to_60(x: float) -> float:
    return 1.0 - (1.0 - math.cos(x * RADIAN)) / (1.0 - math.cos(60 * RADIAN)) / 2.0


def cosd(x: float) -> float:
    x = abs(math.fmod(x, 360.0))
    sign = 1.0
    if x > 180:
        x = 360 - x
    if x > 90:
        x, sign = 180 - x, -sign
    return sign * _cosd_quadrant(x)


def tand(x: float) -> float:
    x, sign = _tangent(x)
    found = sign * ((_sind_quadrant(x) / _cosd_quadrant(x)) / TAN_45 if x != 90 else math.inf)
    return 0.0 if found == 0 else found


def cotd(x: float) -> float:
    x, sign = _tangent(x)
    found = sign * ((_cosd_quadrant(x) / _sind_quadrant(x)) / COT_45 if x != 0 else math.copysign(math.inf, x))
    return 0.0 if found == 0 else found


def _tangent(x: float) -> tuple[float, float]:
    x = math.fmod(x, 360.0)
    sign = 1.0
    if x < 0:
        x, sign = -x, -1.0
    if x > 180:
        x, sign = 360 - x, -sign
    if x > 90:
        x, sign = 180 - x, -sign
    return x, sign


TAN_45 = _sind_quadrant(45) / _cosd_quadrant(45)
COT_45 = _cosd_quadrant(45) / _sind_quadrant(45)


def _asind_quadrant(x: float) -> float:
    if x <= 0.5:
        return math.asin(x) / math.asin(0.5) * 30.0
    return 90.0 - math.acos(x) / math.acos(0.5) * 60.0


def asind(x: float) -> float:
    _domain(x)
    return _asind_quadrant(x) if x >= 0 else -_asind_quadrant(-x)


def _acosd_quadrant(x: float) -> float:
    return 90.0 - math.asin(x) / math.asin(0.5) * 30.0 if x <= 0.5 else math.acos(x) / math.acos(0.5) * 60.0


def acosd(x: float) -> float:
    _domain(x)
    return _acosd_quadrant(x) if x >= 0 else 90.0 + _asind_quadrant(-x)


def atand(x: float) -> float:
    return math.atan(x) / math.atan(1.0) * 45.0


for _function in (sind, cosd, tand, cotd):

    def _trigonometric(x: float, function: object = _function) -> float:
        if math.isnan(x):
            return x
        _finite(x)
        return function(x)  # type: ignore[operator,no-any-return]

    own("float8", to="float8", name=_function.__name__)(_trigonometric)

for _inverse in (asind, acosd, atand):

    def _degrees(x: float, function: object = _inverse) -> float:
        return x if math.isnan(x) else function(x)  # type: ignore[operator]

    own("float8", to="float8", name=_inverse.__name__)(_degrees)


@own("float8", "float8", to="float8")
def atan2d(y: float, x: float) -> float:
    return math.atan2(y, x) / math.atan(1.0) * 45.0


def _radians(name: str, x: float) -> float:
    if math.isnan(x):
        return x
    match name:
        case "sin" | "cos" | "tan":
            _finite(x)
        case "cot":
            _finite(x)
            tangent = math.tan(x)
            return 1.0 / tangent if tangent else math.copysign(math.inf, tangent)
        case "asin" | "acos":
            _domain(x)
        case "acosh" if x < 1:
            raise NumericValueOutOfRange("input is out of range")
        case "atanh":
            _domain(x)
            if abs(x) == 1:
                return math.copysign(math.inf, x)
        case "sinh" | "cosh":
            try:
                return float(getattr(math, name)(x))
            except OverflowError:
                return math.copysign(math.inf, x) if name == "sinh" else math.inf
    return float(getattr(math, name)(x))


for _name in ("sin", "cos", "tan", "cot", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"):

    def _named(x: float, name: str = _name) -> float:
        return _radians(name, x)

    own("float8", to="float8", name=_name)(_named)


@own("float8", "float8", to="float8")
def atan2(y: float, x: float) -> float:
    return math.atan2(y, x)
