"""Functions of numbers. Those of floats are the engines' own C or Java libraries: the last digit may differ where the note says so."""

from __future__ import annotations

from sql.functions.arithmetic import OVERFLOW, UNDERFLOW, same_scale, whole
from sql.functions.entry import Function, duckdb_error, spark_error

LAST_DIGIT = "the last digit may differ"
NEGATIVE_ROOT = "cannot take square root of a negative number"
F, N = "float8", "numeric"


def _row(name: str, arguments: tuple[str, ...], result: object, spark: str, duckdb: str, note: str = "") -> Function:
    return Function(name, arguments, result, spark, duckdb, note=note)  # type: ignore[arg-type]


def _logarithm(name: str, spark: str, duckdb: str) -> Function:
    guards = "WHEN {0} = 0 THEN %s WHEN {0} < 0 THEN %s"
    texts = ("2201E", "cannot take logarithm of zero"), ("2201E", "cannot take logarithm of a negative number")
    sparks = guards % tuple(spark_error(*t) for t in texts)
    duckdbs = guards % tuple(duckdb_error(*t) for t in texts)
    return _row(name, (F,), F, f"(CASE {sparks} ELSE {spark}({{0}}) END)", f"(CASE {duckdbs} ELSE {duckdb}({{0}}) END)", LAST_DIGIT)


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
    # chosen by PostgreSQL, refused here
    _row("trunc", (F,), F, "", ""),
    _row("round", (N, "int4"), same_scale, "", ""),
    _row("trunc", (N, "int4"), same_scale, "", ""),
    *(_row(name, (N,), N, "", "") for name in ("sqrt", "exp", "ln", "log", "log10")),
    *(_row(name, (t, t), t, "", "") for name in ("power", "pow") for t in (F, N)),
    Function("^", (F, F), F, kind="operator"),
)  # fmt: skip
