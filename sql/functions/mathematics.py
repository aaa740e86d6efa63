"""Functions of numbers. Those of floats are the engines' own C or Java libraries: the last digit may differ where the note says so."""

from __future__ import annotations

from collections.abc import Callable

from sql.functions.arithmetic import INTEGERS, OVERFLOW, UNDERFLOW, common_scale, same_scale, whole
from sql.functions.entry import Function, duckdb_error, own, spark_error, strict

LAST_DIGIT = "the last digit may differ"
NEGATIVE_ROOT = "cannot take square root of a negative number"
F, N = "float8", "numeric"


def _row(
    name: str, arguments: tuple[str, ...], result: object, spark: str, duckdb: str, note: str = "", kind: str = "function"
) -> Function:
    return Function(name, arguments, result, spark, duckdb, kind, note=note)  # type: ignore[arg-type]


def _logarithm(name: str, spark: str, duckdb: str) -> Function:
    guards = "WHEN {0} = 0 THEN %s WHEN {0} < 0 THEN %s"
    texts = ("2201E", "cannot take logarithm of zero"), ("2201E", "cannot take logarithm of a negative number")
    sparks = guards % tuple(spark_error(*t) for t in texts)
    duckdbs = guards % tuple(duckdb_error(*t) for t in texts)
    return _row(name, (F,), F, f"(CASE {sparks} ELSE {spark}({{0}}) END)", f"(CASE {duckdbs} ELSE {duckdb}({{0}}) END)", LAST_DIGIT)


TRIGONOMETRIC = (
    "sin cos tan cot asin acos atan sinh cosh tanh asinh acosh atanh sind cosd tand cotd asind acosd atand".split()
)  # fmt: skip
TRUNC_SPARK = (
    "(CASE WHEN isnan({0}) OR abs({0}) >= 9007199254740992 THEN {0} WHEN abs({0}) < 1 THEN {0} * 0"
    " WHEN {0} < 0 THEN -floor(-{0}) ELSE CAST(floor({0}) AS DOUBLE) END)"
)
ROUNDED_DUCKDB = "CAST(tg_numeric_round(CAST({0} AS VARCHAR), {1}) AS {type})"


def _finite(call: str, raised: Callable[[str, str], str]) -> str:
    """An infinite result of a finite number is an error."""
    infinite = "double('Infinity')" if raised is spark_error else "'Infinity'::DOUBLE"
    return f"(CASE WHEN abs({call}) = {infinite} AND abs({{0}}) <> {infinite} THEN {raised('22003', OVERFLOW)} ELSE {call} END)"


def _small(call: str, raised: Callable[[str, str], str]) -> str:
    """Zero of what is not zero is an error."""
    return f"(CASE WHEN {call} = 0 AND {{0}} <> 0 THEN {raised('22003', UNDERFLOW)} ELSE {call} END)"


def _shifts() -> list[Function]:
    """A shift's count wraps at the number's width, as the processor does; a smallint is shifted as an integer and cut."""
    return [own(s, (t, "int4"), t, f"shift_{way}_{t}", "operator") for t in INTEGERS for s, way in (("<<", "left"), (">>", "right"))]


# Spark's own floor and ceil of a double are bigints
FLOOR_SPARK = "(CASE WHEN rint({0}) > {0} THEN rint({0}) - 1 ELSE rint({0}) END)"
CEIL_SPARK = "(CASE WHEN rint({0}) < {0} THEN rint({0}) + 1 ELSE rint({0}) END)"
SIGN = "CAST(CASE WHEN isnan({0}) THEN 0 WHEN {0} > 0 THEN 1 WHEN {0} < 0 THEN -1 WHEN {0} = 0 THEN 0 END AS %s)"
SQRT_GUARD = "(CASE WHEN {0} < 0 THEN %s ELSE sqrt({0}) END)"
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
    _row("round", (F,), F, "rint({0})", "round_even({0}, 0)"),
    _row("round", (N,), whole, "CAST(round({0}, 0) AS {type})", "CAST(round({0}, 0) AS {type})"),
    _row("ceil", (F,), F, CEIL_SPARK, "ceil({0})"),
    _row("floor", (F,), F, FLOOR_SPARK, "floor({0})"),
    _row("ceiling", (F,), F, CEIL_SPARK, "ceil({0})"),
    *(_row(name, (N,), whole, f"CAST({spark}({{0}}) AS {{type}})", f"CAST({spark}({{0}}) AS {{type}})")
      for name, spark in (("ceil", "ceil"), ("ceiling", "ceil"), ("floor", "floor"))),
    _row("trunc", (N,), whole, "CAST(CASE WHEN {0} < 0 THEN ceil({0}) ELSE floor({0}) END AS {type})", "CAST(trunc({0}) AS {type})"),
    _row("sign", (F,), F, SIGN % "DOUBLE", SIGN % "DOUBLE"),
    _row("sign", (N,), whole, "CAST(sign({0}) AS {type})", "CAST(sign({0}) AS {type})"),
    _row("sqrt", (F,), F, SQRT_GUARD % spark_error("2201F", NEGATIVE_ROOT), SQRT_GUARD % duckdb_error("2201F", NEGATIVE_ROOT)),
    _row("exp", (F,), F, EXP_SPARK, EXP_DUCKDB, LAST_DIGIT),
    _logarithm("ln", "ln", "ln"),
    _logarithm("log", "log10", "log10"),
    _logarithm("log10", "log10", "log10"),
    _row("pi", (), F, "pi()", "pi()"),
    _row("trunc", (F,), F, TRUNC_SPARK, "trunc({0})"),
    _row("round", (N, "int4"), "numeric", "CAST(tg_numeric_round({0}, {1}, {precision}, {scale}) AS {type})", ROUNDED_DUCKDB),
    _row("trunc", (N, "int4"), "numeric", "CAST(tg_numeric_trunc({0}, {1}, {precision}, {scale}) AS {type})",
         "CAST(tg_numeric_trunc(CAST({0} AS VARCHAR), {1}) AS {type})"),
    *(own(name, (N,), N, f"numeric_{name}") for name in ("sqrt", "exp", "ln")),
    *(own(name, (N,), N, "numeric_log10") for name in ("log", "log10")),
    own("log", (N, N), N, "numeric_log"),
    *(own(name, (N, N), N, "numeric_power") for name in ("power", "pow")),
    *(own(name, (F, F), F, "power_float8", note=LAST_DIGIT) for name in ("power", "pow")),
    own("^", (N, N), N, "numeric_power", "operator"),
    own("^", (F, F), F, "power_float8", "operator", note=LAST_DIGIT),
    _row("|/", (F,), F, SQRT_GUARD % spark_error("2201F", NEGATIVE_ROOT), SQRT_GUARD % duckdb_error("2201F", NEGATIVE_ROOT), kind="prefix"),
    own("||/", (F,), F, "cbrt", "prefix", note=LAST_DIGIT),
    own("cbrt", (F,), F, note=LAST_DIGIT),
    own("div", (N, N), whole, "numeric_div"),
    *(own(name, (t, t), t, f"{name}_{t}") for name in ("gcd", "lcm") for t in ("int4", "int8")),
    own("gcd", (N, N), common_scale, "numeric_gcd"),
    own("lcm", (N, N), common_scale, "numeric_lcm"),
    own("factorial", ("int8",), whole),
    _row("scale", (N,), "int4", strict("{scale0}", 1), strict("{scale0}::INTEGER", 1)),
    own("min_scale", (N,), "int4"),
    _row("trim_scale", (N,), same_scale, "{0}", "{0}", note="the scale stays the column's"),
    own("width_bucket", (N, N, N, "int4"), "int4", "width_bucket_numeric"),
    own("width_bucket", (F, F, F, "int4"), "int4", "width_bucket_float8"),
    _row("degrees", (F,), F, _finite("degrees({0})", spark_error), _finite("degrees({0})", duckdb_error), LAST_DIGIT),
    _row("radians", (F,), F, _small("radians({0})", spark_error), _small("radians({0})", duckdb_error), LAST_DIGIT),
    *(own(name, (F,), F, note=LAST_DIGIT) for name in TRIGONOMETRIC),
    *(own(name, (F, F), F, note=LAST_DIGIT) for name in ("atan2", "atan2d")),
    *_shifts(),
    Function("num_nulls", ("any",), "int4", "({nulls})", "CAST(({nulls}) AS INTEGER)", strict=False, variadic=True),
    Function("num_nonnulls", ("any",), "int4", "({nonnulls})", "CAST(({nonnulls}) AS INTEGER)", strict=False, variadic=True),
)  # fmt: skip
