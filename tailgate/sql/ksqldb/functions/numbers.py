"""Functions of numbers. As in Java, a DOUBLE that is not defined is NaN, and one that is too large is an infinity.

Source: ksqlDB 0.29, documentation, "Scalar functions", section "Numeric functions".
"""

from __future__ import annotations

from collections.abc import Sequence

from tailgate.sql.ksqldb import types as t
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.functions.entry import Function

EARTH_RADIUS_KM, EARTH_RADIUS_MILES = 6371, 3959
EXPONENT_MIN, EXPONENT_MAX = -745, 709.78  # of e: beyond, the result is 0 or an infinity
DEGREES = 57.29577951308232  # of a radian, as in Java
NAN, INFINITY = "CAST('NaN' AS double precision)", "CAST('Infinity' AS double precision)"


def _double(name: str, template: str, does: str, arguments: int = 1, *, may_fail: bool = False) -> Function:
    return Function(name, (t.DOUBLE,) * arguments, t.DOUBLE, template, does, may_fail=may_fail)


def _whole(decimal: Sequence[TypeName]) -> TypeName:
    """Returns the type of a DECIMAL that is rounded to a whole number."""
    precision, scale = decimal[0].numbers or (t.PRECISION_MAX, 0)
    return TypeName("decimal", (precision - scale + (1 if scale else 0), 0)) if decimal[0].numbers else t.DECIMAL


def _roundings(name: str, does: str) -> list[Function]:
    """Returns CEIL or FLOOR: of each type of number, with a result of the same type."""
    return [
        *(Function(name, (kind,), kind, "{0}", does) for kind in (t.INT, t.BIGINT)),
        Function(name, (t.DECIMAL,), _whole, f"{name}({{0}})", does),
        Function(name, (t.DOUBLE,), t.DOUBLE, f"{name}({{0}})", does),
    ]


def _logarithm(value: str) -> str:
    return f"CASE WHEN {value} > 0 THEN ln({value}) WHEN {value} = 0 THEN - {INFINITY} WHEN {value} < 0 THEN {NAN} END"


def _with_base(base: str, value: str) -> str:
    """Returns a logarithm: NaN for a base that is not positive or 1, or a negative value."""
    undefined = f"{base} <= 0 OR {base} = 1 OR {value} < 0"
    return f"CASE WHEN {undefined} THEN {NAN} WHEN {value} = 0 THEN - {INFINITY} ELSE ln({value}) / ln({base}) END"


def _distance(radius: str) -> str:
    """Returns the great-circle distance of two points, by the haversine formula; NULL for points that do not exist."""
    return (
        "CASE WHEN greatest(abs({0}), abs({2})) <= 90 AND greatest(abs({1}), abs({3})) <= 180"
        f" AND {{0}} + {{1}} + {{2}} + {{3}} IS NOT NULL THEN 2 * {radius} * asin(sqrt(least(1,"
        " power(sin(radians({2} - {0}) / 2), 2)"
        " + cos(radians({0})) * cos(radians({2})) * power(sin(radians({3} - {1}) / 2), 2)))) END"
    )


_UNIT = (
    f"(CASE WHEN upper({{4}}) LIKE 'KM%' OR upper({{4}}) LIKE 'KILO%' THEN {EARTH_RADIUS_KM}"
    f" WHEN upper({{4}}) LIKE 'MI%' THEN {EARTH_RADIUS_MILES} END)"
)
_SERIES = "The numbers from the first to the second argument as an array."
_ROUND = "The number rounded, half up, to a whole number or to a number of decimal places."
_TRUNC = "The number truncated to a whole number or to a number of decimal places."
_DISTANCE = "The distance of two points, given by latitude and longitude in degrees, in KM or miles."


def _series(kind: TypeName) -> list[Function]:
    result = TypeName("array", arguments=(kind,))
    return [
        Function("generate_series", (kind, kind), result, "ksqldb_generate_series({0}, {1}, CASE WHEN {0} <= {1} THEN 1 ELSE -1 END)",
                 _SERIES, may_fail=True),
        Function("generate_series", (kind, kind, t.INT), result, "ksqldb_generate_series({0}, {1}, {2})", _SERIES, may_fail=True),
    ]  # fmt: skip


def _simple(names: str, undefined: str = "") -> list[Function]:
    """Returns functions of a DOUBLE that PostgreSQL has under the same name. `undefined`: the condition of NaN, if any."""
    lines = (line.strip().partition(": ") for line in names.strip().splitlines())
    template = f"CASE WHEN {undefined} THEN {NAN} ELSE %s({{0}}) END" if undefined else "%s({0})"
    return [_double(name, template % name, does, may_fail=True) for name, _, does in lines]


ROWS = (
    Function("abs", (t.INT,), t.INT, "ksqldb_wrapped(abs(CAST({0} AS bigint)))", "The absolute value."),
    Function("abs", (t.BIGINT,), t.BIGINT, "ksqldb_bigint_of_numeric(abs(CAST({0} AS numeric)))", "The absolute value."),
    *(Function("abs", (kind,), "same", "abs({0})", "The absolute value.") for kind in (t.DECIMAL, t.DOUBLE)),
    *_roundings("ceil", "The smallest whole number that is not less."),
    *_roundings("floor", "The greatest whole number that is not greater."),
    *_simple("""
        atan: The arc tangent, in radians.
        cbrt: The cube root.
        cosh: The hyperbolic cosine.
        radians: Degrees as radians.
        sinh: The hyperbolic sine.
        tanh: The hyperbolic tangent.
    """),
    *_simple("""
        cos: The cosine of an angle in radians.
        sin: The sine of an angle in radians.
        tan: The tangent of an angle in radians.
    """, f"abs({{0}}) = {INFINITY}"),
    _double("degrees", f"ksqldb_double_times({{0}}, {DEGREES})", "Radians as degrees."),
    _double("acos", f"CASE WHEN abs({{0}}) <= 1 THEN acos({{0}}) WHEN abs({{0}}) > 1 THEN {NAN} END", "The arc cosine, in radians."),
    _double("asin", f"CASE WHEN abs({{0}}) <= 1 THEN asin({{0}}) WHEN abs({{0}}) > 1 THEN {NAN} END", "The arc sine, in radians."),
    _double("atan2", "atan2({0}, {1})", "The arc tangent of the quotient of the arguments, in radians.", 2),
    _double("cot", "CASE WHEN {0} = 0 THEN ksqldb_quotient(1, {0}) ELSE 1 / tan({0}) END", "The cotangent of an angle in radians."),
    _double("exp", f"CASE WHEN {{0}} > {EXPONENT_MAX} THEN {INFINITY} WHEN {{0}} < {EXPONENT_MIN} THEN 0 ELSE exp({{0}}) END",
            "The exponential."),
    _double("ln", _logarithm("{0}"), "The natural logarithm."),
    _double("log", _with_base("CAST(10 AS double precision)", "{0}"), "The logarithm to the base 10, or to the first argument."),
    _double("log", _with_base("{0}", "{1}"), "The logarithm to the base 10, or to the first argument.", 2),
    Function("pi", (), t.DOUBLE, "pi()", "The number π."),
    _double("power", "ksqldb_power({0}, {1})", "The first argument raised to the power of the second.", 2),
    _double("sqrt", f"CASE WHEN {{0}} >= 0 THEN sqrt({{0}}) WHEN {{0}} < 0 THEN {NAN} END", "The square root."),
    Function("sign", ("number",), t.INT, "CAST(sign({0}) AS integer)", "-1, 0 or 1."),
    *(Function("round", (kind,), kind, "{0}", _ROUND) for kind in (t.INT, t.BIGINT)),
    Function("round", (t.DOUBLE,), t.BIGINT, "ksqldb_bigint_of_double(floor({0} + 0.5))", _ROUND),
    Function("round", (t.DOUBLE, t.INT), t.DOUBLE, "ksqldb_round({0}, {1})", _ROUND),
    Function("round", (t.DECIMAL,), _whole, "floor({0} + 0.5)", _ROUND),
    Function("round", (t.DECIMAL, t.INT), "same", "(floor({0} * power(10, {1}) + 0.5) / power(10, {1}))", _ROUND, may_fail=True),
    *(Function("trunc", (kind,), kind, "{0}", _TRUNC) for kind in (t.INT, t.BIGINT)),
    Function("trunc", (t.DOUBLE,), t.BIGINT, "ksqldb_bigint_of_double({0})", _TRUNC),
    Function("trunc", (t.DOUBLE, t.INT), t.DOUBLE, "CAST(trunc(CAST({0} AS numeric), {1}) AS double precision)", _TRUNC, may_fail=True),
    Function("trunc", (t.DECIMAL,), _whole, "trunc({0})", _TRUNC),
    Function("trunc", (t.DECIMAL, t.INT), "same", "trunc({0}, {1})", _TRUNC, may_fail=True),
    Function("random", (), t.DOUBLE, "", "A random number from 0 to 1.", volatile=True),
    _double("geo_distance", _distance(str(EARTH_RADIUS_KM)), _DISTANCE, 4),
    Function("geo_distance", (*(t.DOUBLE,) * 4, t.VARCHAR), t.DOUBLE, _distance(_UNIT), _DISTANCE),
    *_series(t.INT),
    *_series(t.BIGINT),
)  # fmt: skip
