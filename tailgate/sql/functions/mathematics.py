"""Functions of numbers.

Floating-point functions use the C or Java library of the engine. The last digit may differ if the
entry's note says so.
"""

from __future__ import annotations

from collections.abc import Callable

from tailgate.sql.functions.arithmetic import INTEGERS, OVERFLOW, UNDERFLOW
from tailgate.sql.functions.entry import Function, Kind, ResultType, duckdb_error, spark_error, strict, udf
from tailgate.sql.numeric_types import common_scale, factorial, largest_scale, rounded, trimmed, whole

LAST_DIGIT = "the last digit may differ"
NEGATIVE_ROOT = "cannot take square root of a negative number"
F, N = "float8", "numeric"


def _row(
    name: str, arguments: tuple[str, ...], result: str | ResultType, spark: str, duckdb: str, note: str = "", kind: Kind = "function"
) -> Function:
    return Function(name, arguments, result, spark, duckdb, kind, note=note)


def _rounding(name: str, spark: str, duckdb: str) -> Function:
    """Returns round() or trunc() with a number of digits. `spark`, `duckdb`: the templates if that is a constant."""
    any_number = f"CAST(tg_numeric_{name}({{0}}, {{1}}, {{precision}}, {{scale}}) AS {{type}})"
    any_duckdb = f"CAST(tg_numeric_{name}(CAST({{0}} AS VARCHAR), {{1}}) AS {{type}})"
    return Function(name, (N, "int4"), "numeric", any_number, any_duckdb, exact=(spark, duckdb))


def _logarithm(name: str, spark: str, duckdb: str) -> Function:
    def template(function: str, error: Callable[[str, str], str]) -> str:
        zero, negative = (error("2201E", f"cannot take logarithm of {x}") for x in ("zero", "a negative number"))
        return f"(CASE WHEN {{0}} = 0 THEN {zero} WHEN {{0}} < 0 THEN {negative} ELSE {function}({{0}}) END)"

    return _row(name, (F,), F, template(spark, spark_error), template(duckdb, duckdb_error), LAST_DIGIT)


TRIGONOMETRIC = (
    "sin cos tan cot asin acos atan sinh cosh tanh asinh acosh atanh sind cosd tand cotd asind acosd atand".split()
)  # fmt: skip
TRUNC_SPARK = (
    "(CASE WHEN isnan({0}) OR abs({0}) >= 9007199254740992 THEN {0} WHEN abs({0}) < 1 THEN {0} * 0"
    " WHEN {0} < 0 THEN -floor(-{0}) ELSE CAST(floor({0}) AS DOUBLE) END)"
)


def _checked_overflow(call: str, error: Callable[[str, str], str]) -> str:
    """Returns a template that raises an error if the result is infinite and the argument is not."""
    infinity = "double('Infinity')" if error is spark_error else "'Infinity'::DOUBLE"
    overflow = f"abs({call}) = {infinity} AND abs({{0}}) <> {infinity}"
    return f"(CASE WHEN {overflow} THEN {error('22003', OVERFLOW)} ELSE {call} END)"


def _checked_underflow(call: str, error: Callable[[str, str], str]) -> str:
    """Returns a template that raises an error if the result is zero and the argument is not."""
    return f"(CASE WHEN {call} = 0 AND {{0}} <> 0 THEN {error('22003', UNDERFLOW)} ELSE {call} END)"


def _shifts() -> list[Function]:
    """Returns the shift operators; the count wraps at the width, a smallint's at 32."""
    directions = (("<<", "left"), (">>", "right"))
    return [udf(s, (t, "int4"), t, f"shift_{d}_{t}", "operator") for t in INTEGERS for s, d in directions]


# Spark's floor() and ceil() of a double return a bigint
FLOOR_SPARK = "(CASE WHEN rint({0}) > {0} THEN rint({0}) - 1 ELSE rint({0}) END)"
CEIL_SPARK = f"(- {FLOOR_SPARK.replace('{0}', '(- {0})')})"  # of -0.5 it is -0
SIGN = "CAST(CASE WHEN isnan({0}) THEN 0 WHEN {0} > 0 THEN 1 WHEN {0} < 0 THEN -1 WHEN {0} = 0 THEN 0 END AS %s)"
CHECKED_SQRT = "(CASE WHEN {0} < 0 THEN %s ELSE sqrt({0}) END)"
SQRT = CHECKED_SQRT % spark_error("2201F", NEGATIVE_ROOT), CHECKED_SQRT % duckdb_error("2201F", NEGATIVE_ROOT)
EXP_SPARK = (
    "(CASE WHEN isnan({0}) THEN {0}"
    f" WHEN exp({{0}}) = double('Infinity') AND {{0}} < double('Infinity') THEN {spark_error('22003', OVERFLOW)}"
    f" WHEN exp({{0}}) = 0 AND {{0}} > double('-Infinity') THEN {spark_error('22003', UNDERFLOW)} ELSE exp({{0}}) END)"
)
EXP_DUCKDB = (
    f"(CASE WHEN isinf(exp({{0}})) AND NOT isinf({{0}}) THEN {duckdb_error('22003', OVERFLOW)}"
    f" WHEN exp({{0}}) = 0 AND NOT isinf({{0}}) THEN {duckdb_error('22003', UNDERFLOW)} ELSE exp({{0}}) END)"
)

ROWS = (
    Function("random", (), F, "", "random()", volatility="volatile"),
    _row("round", (F,), F, "rint({0})", "round_even({0}, 0)"),
    _row("round", (N,), rounded, "CAST(round({0}, 0) AS {type})", "CAST(round({0}, 0) AS {type})"),
    _row("ceil", (F,), F, CEIL_SPARK, "ceil({0})"),
    _row("floor", (F,), F, FLOOR_SPARK, "floor({0})"),
    _row("ceiling", (F,), F, CEIL_SPARK, "ceil({0})"),
    *(_row(name, (N,), rounded, f"CAST({spark}({{0}}) AS {{type}})", f"CAST({spark}({{0}}) AS {{type}})")
      for name, spark in (("ceil", "ceil"), ("ceiling", "ceil"), ("floor", "floor"))),
    _row("trunc", (N,), rounded, "CAST(CASE WHEN {0} < 0 THEN ceil({0}) ELSE floor({0}) END AS {type})", "CAST(trunc({0}) AS {type})"),
    _row("sign", (F,), F, SIGN % "DOUBLE", SIGN % "DOUBLE"),
    _row("sign", (N,), whole, "CAST(sign({0}) AS {type})", "CAST(sign({0}) AS {type})"),
    _row("sqrt", (F,), F, *SQRT),
    _row("exp", (F,), F, EXP_SPARK, EXP_DUCKDB, LAST_DIGIT),
    _logarithm("ln", "ln", "ln"),
    _logarithm("log", "log10", "log10"),
    _logarithm("log10", "log10", "log10"),
    _row("pi", (), F, "pi()", "pi()"),
    _row("trunc", (F,), F, TRUNC_SPARK, "trunc({0})"),
    _rounding("round", "CAST({0} AS {type})", "CAST({0} AS {type})"),
    _rounding("trunc", "CAST(tg_numeric_trunc({0}, {1}, {precision}, {scale}) AS {type})", "CAST(trunc({0}, {1}) AS {type})"),
    *(udf(name, (N,), N, f"numeric_{name}") for name in ("sqrt", "exp", "ln")),
    *(udf(name, (N,), N, "numeric_log10") for name in ("log", "log10")),
    udf("log", (N, N), N, "numeric_log"),
    *(udf(name, (N, N), N, "numeric_power") for name in ("power", "pow")),
    *(udf(name, (F, F), F, "power_float8", note=LAST_DIGIT) for name in ("power", "pow")),
    udf("^", (N, N), N, "numeric_power", "operator"),
    udf("^", (F, F), F, "power_float8", "operator", note=LAST_DIGIT),
    _row("|/", (F,), F, *SQRT, kind="prefix"),
    udf("||/", (F,), F, "cbrt", "prefix", note=LAST_DIGIT),
    udf("cbrt", (F,), F, note=LAST_DIGIT),
    udf("div", (N, N), whole, "numeric_div"),
    *(udf(name, (t, t), t, f"{name}_{t}") for name in ("gcd", "lcm") for t in ("int4", "int8")),
    udf("gcd", (N, N), common_scale, "numeric_gcd"),
    udf("lcm", (N, N), largest_scale, "numeric_lcm"),
    udf("factorial", ("int8",), factorial),
    _row("scale", (N,), "int4", strict("{scale0}", 1), strict("{scale0}::INTEGER", 1)),
    udf("min_scale", (N,), "int4"),
    _row("trim_scale", (N,), trimmed, "{0}", "{0}"),
    udf("width_bucket", (N, N, N, "int4"), "int4", "width_bucket_numeric"),
    udf("width_bucket", (F, F, F, "int4"), "int4", "width_bucket_float8"),
    _row("degrees", (F,), F, _checked_overflow("degrees({0})", spark_error), _checked_overflow("degrees({0})", duckdb_error), LAST_DIGIT),
    _row("radians", (F,), F, _checked_underflow("radians({0})", spark_error), _checked_underflow("radians({0})", duckdb_error), LAST_DIGIT),
    *(udf(name, (F,), F, note=LAST_DIGIT) for name in TRIGONOMETRIC),
    *(udf(name, (F, F), F, note=LAST_DIGIT) for name in ("atan2", "atan2d")),
    *_shifts(),
    Function("num_nulls", ("any",), "int4", "({nulls})", "CAST(({nulls}) AS INTEGER)", strict=False, variadic=True),
    Function("num_nonnulls", ("any",), "int4", "({nonnulls})", "CAST(({nonnulls}) AS INTEGER)", strict=False, variadic=True),
)  # fmt: skip
