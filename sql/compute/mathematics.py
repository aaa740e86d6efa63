"""Functions of exact numbers, and those of floats that C's library decides.

An inexact result of a numeric has 16 digits behind the point (lake.types.NUMERIC_SCALE), where PostgreSQL's number of digits follows the
value.

Source: PostgreSQL 15, src/backend/utils/adt/{numeric,float}.c.
"""

from __future__ import annotations

import math
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation, Overflow

from lake.errors import DivisionByZero, NumericValueOutOfRange, of
from sql.compute.registry import own

WIDE = Context(prec=500)
EXACT = Context(prec=120, Emax=100_000, Emin=-100_000)


def overflow() -> Exception:
    return NumericValueOutOfRange("value out of range: overflow")


def field_overflow() -> Exception:
    return NumericValueOutOfRange("numeric field overflow")


@own("numeric", "numeric", to="numeric")
def numeric_power(a: Decimal, b: Decimal) -> Decimal:
    if not a and b < 0:
        raise of("2201F", "zero raised to a negative power is undefined")
    whole = b == b.to_integral_value()
    if a < 0 and not whole:
        raise of("2201F", "a negative number raised to a non-integer power yields a complex result")
    if not b or a == 1:
        return Decimal(1)
    if not a:
        return Decimal(0)
    try:
        found = EXACT.power(a, b)
    except (Overflow, InvalidOperation):
        raise field_overflow() from None
    return _within(found)


def _within(value: Decimal) -> Decimal:
    """22003 if it has no room; what is very small is 0."""
    if value and value.adjusted() > 38:
        raise field_overflow()
    return Decimal(0) if value and value.adjusted() < -60 else value


@own("numeric", to="numeric")
def numeric_sqrt(a: Decimal) -> Decimal:
    if a < 0:
        raise of("2201F", "cannot take square root of a negative number")
    return EXACT.sqrt(a)


@own("numeric", to="numeric")
def numeric_exp(a: Decimal) -> Decimal:
    if a > 100:
        raise field_overflow()
    return _within(EXACT.exp(a)) if a > -200 else Decimal(0)


def _positive(a: Decimal) -> None:
    if a <= 0:
        raise of("2201E", f"cannot take logarithm of {'a negative number' if a else 'zero'}")


@own("numeric", to="numeric")
def numeric_ln(a: Decimal) -> Decimal:
    _positive(a)
    return EXACT.ln(a)


@own("numeric", "numeric", to="numeric")
def numeric_log(base: Decimal, a: Decimal) -> Decimal:
    _positive(base)
    _positive(a)
    divisor = EXACT.ln(base)
    if not divisor:
        raise DivisionByZero("division by zero")
    return EXACT.divide(EXACT.ln(a), divisor)


@own("numeric", to="numeric")
def numeric_log10(a: Decimal) -> Decimal:
    _positive(a)
    return EXACT.log10(a)


@own("numeric", "numeric", to="numeric")
def numeric_div(a: Decimal, b: Decimal) -> Decimal:
    if not b:
        raise DivisionByZero("division by zero")
    return EXACT.divide_int(a, b)


@own("numeric", "numeric", to="numeric")
def numeric_gcd(a: Decimal, b: Decimal) -> Decimal:
    scale = max(-int(a.as_tuple().exponent), -int(b.as_tuple().exponent), 0)
    return Decimal(math.gcd(int(a.scaleb(scale, EXACT)), int(b.scaleb(scale, EXACT)))).scaleb(-scale, EXACT)


@own("numeric", "numeric", to="numeric")
def numeric_lcm(a: Decimal, b: Decimal) -> Decimal:
    if not a or not b:
        return Decimal(0)
    return abs(EXACT.multiply(a, EXACT.divide_int(b, numeric_gcd(a, b))))


@own("int8", to="numeric")
def factorial(n: int) -> Decimal:
    if n < 0:
        raise NumericValueOutOfRange("factorial of a negative number is undefined")
    if n > 33:  # the last below 1e38
        raise field_overflow()
    return Decimal(math.factorial(n))


@own("int8", "int8", to="int8")
def gcd_int8(a: int, b: int) -> int:
    return _int8(math.gcd(a, b))


@own("int8", "int8", to="int8")
def lcm_int8(a: int, b: int) -> int:
    return _int8(math.lcm(a, b))


def _int8(value: int) -> int:
    if value >= 2**63:
        raise NumericValueOutOfRange("bigint out of range")
    return value


@own("int4", "int4", to="int4")
def gcd_int4(a: int, b: int) -> int:
    return _int4(math.gcd(a, b))


@own("int4", "int4", to="int4")
def lcm_int4(a: int, b: int) -> int:
    return _int4(math.lcm(a, b))


def _int4(value: int) -> int:
    if value >= 2**31:
        raise NumericValueOutOfRange("integer out of range")
    return value


@own("numeric", to="int4")
def min_scale(a: Decimal) -> int:
    return max(0, -int(EXACT.normalize(a).as_tuple().exponent)) if a else 0


@own("numeric", "numeric", "numeric", "int4", to="int4", name="width_bucket_numeric")
def bucket(value: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    _buckets(count, low == high)
    if low < high:
        return 0 if value < low else count + 1 if value >= high else int((value - low) * count // (high - low)) + 1
    return 0 if value > low else count + 1 if value <= high else int((low - value) * count // (low - high)) + 1


def _buckets(count: int, equal: bool) -> None:
    if count <= 0:
        raise of("2201G", "count must be greater than zero")
    if equal:
        raise of("2201G", "lower bound cannot equal upper bound")


@own("float8", "float8", "float8", "int4", to="int4", name="width_bucket_float8")
def float_bucket(value: float, low: float, high: float, count: int) -> int:
    if any(map(math.isnan, (value, low, high))):
        raise of("2201G", "operand, lower bound, and upper bound cannot be NaN")
    if math.isinf(low) or math.isinf(high):
        raise of("2201G", "lower and upper bounds must be finite")
    _buckets(count, low == high)
    if low < high:
        found = 0 if value < low else count + 1 if value >= high else int(count * ((value - low) / (high - low))) + 1
    else:
        found = 0 if value > low else count + 1 if value <= high else int(count * ((low - value) / (low - high))) + 1
    if found >= 2**31:
        raise NumericValueOutOfRange("integer out of range")
    return found


@own("numeric", "int4", to="numeric")
def numeric_round(a: Decimal, digits: int) -> Decimal:
    return a.quantize(Decimal(1).scaleb(-max(-200, min(digits, 200))), rounding=ROUND_HALF_UP, context=WIDE)


@own("numeric", "int4", to="numeric")
def numeric_trunc(a: Decimal, digits: int) -> Decimal:
    return a.quantize(Decimal(1).scaleb(-max(-200, min(digits, 200))), rounding=ROUND_DOWN, context=WIDE)


def _shifts(type: str, bits: int) -> None:
    width = 64 if bits == 64 else 32
    sign = 1 << bits - 1

    def left(a: int, count: int) -> int:
        return (((a << count % width) + sign) & ((1 << bits) - 1)) - sign

    def right(a: int, count: int) -> int:
        return a >> count % width

    own(type, "int4", to=type, name=f"shift_left_{type}")(left)
    own(type, "int4", to=type, name=f"shift_right_{type}")(right)


for _type, _bits in (("int2", 16), ("int4", 32), ("int8", 64)):
    _shifts(_type, _bits)

# --- floats ----------------------------------------------------------------------------------------------------------------------


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
        raise overflow() from None
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
    found = sign * ((_cosd_quadrant(x) / _sind_quadrant(x)) / COT_45 if x != 0 else math.inf)
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
