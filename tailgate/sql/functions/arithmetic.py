"""Arithmetic operators.

Spark and DuckDB return infinity for a floating-point overflow, where PostgreSQL raises an error, so the
templates check for it. All values of a numeric column have one scale
(`sql.numeric_types`).

The numeric templates need `spark.sql.decimalOperations.allowPrecisionLoss = false`.
"""

from __future__ import annotations

from tailgate.sql.functions.entry import Function, ResultType, duckdb_error, spark_error, strict, udf
from tailgate.sql.numeric_types import common_scale, product_scale, quotient_scale, remainder_scale, same_scale

INTEGERS = ("int2", "int4", "int8")
FLOATS = ("float4", "float8")
SPARK = {"int2": "SMALLINT", "int4": "INT", "int8": "BIGINT", "float4": "FLOAT", "float8": "DOUBLE"}
# of general numerics in DuckDB: a quotient's scale is computed once, and used several times
DIVISION = (
    "list_transform(list_transform([{'a': %s, 'b': %s}],"
    " lambda tg_q: {'a': tg_q.a, 'b': tg_q.b, 's': tg_general_quotient_scale(tg_q.a, tg_q.b)}),"
    " lambda tg_q: tg_general_divide_any(tg_q.a, tg_q.b, tg_q.s))[1]"
)
DUCKDB = {"int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT", "float4": "FLOAT", "float8": "DOUBLE"}


def _operator(sign: str, type: str, spark: str, duckdb: str, right: str | None = None, result: str | None = None) -> Function:
    return Function(sign, (type, right or type), result or type, spark, duckdb, "operator")


def _integers() -> list[Function]:
    rows = []
    for t in INTEGERS:
        cast = f"CAST(%s AS {SPARK[t]})" if t != "int8" else "(%s)"
        for sign in "+-*":
            rows.append(_operator(sign, t, f"({{0}} {sign} {{1}})", f"({{0}} {sign} {{1}})"))
        rows += [
            _operator("/", t, cast % "{0} div {1}", "tg_divide({0}, {1})"),
            _operator("%", t, "({0} % {1})", "tg_modulo({0}, {1})"),
            _operator("&", t, "({0} & {1})", "({0} & {1})"),
            _operator("|", t, "({0} | {1})", "({0} | {1})"),
            _operator("#", t, "({0} ^ {1})", "xor({0}, {1})"),
            Function("-", (t,), t, "(- {0})", f"(CAST(0 AS {DUCKDB[t]}) - {{0}})", "prefix"),  # DuckDB's error of - does not name the type
            Function("@", (t,), t, "abs({0})", "abs({0})", "prefix"),
            Function("~", (t,), t, "(~ {0})", f"CAST(~ {{0}} AS {DUCKDB[t]})", "prefix"),
            Function("abs", (t,), t, "abs({0})", "abs({0})"),
            Function("mod", (t, t), t, "({0} % {1})", "tg_modulo({0}, {1})"),
        ]
    return rows


OVERFLOW = "value out of range: overflow"
UNDERFLOW = "value out of range: underflow"


def _floats() -> list[Function]:
    rows = []
    for left in FLOATS:
        for right in FLOATS:
            t = "float4" if left == right == "float4" else "float8"
            for sign, macro in (("+", "add"), ("-", "subtract"), ("*", "multiply"), ("/", "fdivide")):
                result = f"CAST({{0}} {sign} {{1}} AS {SPARK[t]})"
                infinite = "abs(%s) = double('Infinity')"
                checks = (
                    f"WHEN {infinite % result} AND NOT {infinite % '{0}'} AND NOT {infinite % '{1}'} THEN {spark_error('22003', OVERFLOW)}"
                )
                if sign == "*":
                    checks += f" WHEN {result} = 0 AND {{0}} <> 0 AND {{1}} <> 0 THEN {spark_error('22003', UNDERFLOW)}"
                if sign == "/":
                    checks = f"WHEN {{1}} IS NULL THEN NULL WHEN isnan({{0}}) THEN CAST('NaN' AS {SPARK[t]}) {checks}"
                    checks += f" WHEN {result} = 0 AND {{0}} <> 0 AND NOT {infinite % '{1}'} THEN {spark_error('22003', UNDERFLOW)}"
                spark = f"(CASE {checks} ELSE {result} END)"
                rows.append(_operator(sign, left, spark, f"CAST(tg_{macro}({{0}}, {{1}}) AS {DUCKDB[t]})", right, t))
    for t in FLOATS:
        rows += [
            Function("-", (t,), t, "(- {0})", "(- {0})", "prefix"),
            Function("@", (t,), t, "abs({0})", "abs({0})", "prefix"),
            Function("abs", (t,), t, "abs({0})", "abs({0})"),
        ]
    return rows


def _numerics() -> list[Function]:
    n = "numeric"
    plain = "CAST({0} %s {1} AS {type})"
    remainder = "CAST(tg_decimal_remainder(CAST({0} AS VARCHAR), CAST({1} AS VARCHAR)) AS {type})"
    # DuckDB's type of an operand may have more digits, for which it would compute with floats
    exact_remainder = plain % "%", "tg_remainder(CAST({0} AS DECIMAL({precision0},{scale0})), CAST({1} AS DECIMAL({precision1},{scale1})))"

    def operator(sign: str, result: ResultType) -> Function:
        exact = plain % sign, f"({{long0}} {sign} {{1}})"
        return Function(sign, (n, n), result, exact[0], f"CAST({exact[1]} AS {{type}})", "operator", exact=exact)

    return [
        operator("+", common_scale),
        operator("-", common_scale),
        operator("*", product_scale),
        Function("/", (n, n), quotient_scale, "CAST(CAST({0} AS DECIMAL(38,{scale0})) / CAST({1} AS {divisor}) AS {type})",
                 "CAST(tg_numeric_divide({0}, {1}, {scale0}, {scale1}, {scale}) AS {type})", "operator"),
        Function("%", (n, n), remainder_scale, plain % "%", remainder, "operator", exact=exact_remainder),
        Function("mod", (n, n), remainder_scale, plain % "%", remainder, exact=exact_remainder),
        Function("-", (n,), same_scale, "CAST(- {0} AS {type})", "(- {0})", "prefix"),
        Function("@", (n,), same_scale, "CAST(abs({0}) AS {type})", "abs({0})", "prefix"),
        Function("abs", (n,), same_scale, "CAST(abs({0}) AS {type})", "abs({0})"),
    ]  # fmt: skip


def _money() -> list[Function]:
    m, f = "money", "float8"
    rows = [_operator(sign, m, f"({{0}} {sign} {{1}})", f"({{0}} {sign} {{1}})") for sign in "+-"]
    for t in INTEGERS:
        rows += [
            _operator("*", m, "({0} * CAST({1} AS BIGINT))", "({0} * CAST({1} AS BIGINT))", t),
            Function("*", (t, m), m, "(CAST({0} AS BIGINT) * {1})", "(CAST({0} AS BIGINT) * {1})", "operator"),
            _operator("/", m, "({0} div CAST({1} AS BIGINT))", "tg_divide({0}, CAST({1} AS BIGINT))", t),
        ]
    for t in FLOATS:
        rows += [
            udf("*", (m, t), m, "money_times", "operator"),
            udf("*", (t, m), m, "money_times", "operator", order=(1, 0)),
            udf("/", (m, t), m, "money_over", "operator"),
        ]
    words = udf("cash_words", (m,), "text")
    extremes = (Function(f"cash{word}", (m, m), m, *(strict(f"{call}({{0}}, {{1}})", 2),) * 2) for word, call in EXTREMES)
    return [*rows, udf("/", (m, m), f, "money_ratio", "operator"), words, *extremes]


EXTREMES = ("larger", "greatest"), ("smaller", "least")


def _signs() -> list[Function]:
    rows = [Function("+", (t,), t, "{0}", "{0}", "prefix") for t in (*INTEGERS, *FLOATS)]
    return [*rows, Function("+", ("numeric",), same_scale, "CAST({0} AS {type})", "{0}", "prefix")]


ROWS = (*_integers(), *_floats(), *_numerics(), *_money(), *_signs())


def _checked(sign: str, checks: str = "") -> str:
    result = f"(a {sign} b)"
    overflow = f"WHEN isinf{result} AND NOT isinf(a) AND NOT isinf(b) THEN {duckdb_error('22003', OVERFLOW)}"
    return f"CASE {checks}{overflow} %sELSE {result} END"


_DIVISOR_ZERO = f"WHEN a IS NULL THEN NULL WHEN b = 0 THEN {duckdb_error('22012', 'division by zero')}"
_FLOAT_DIVISOR_ZERO = f"WHEN b = 0 AND NOT isnan(a) THEN {duckdb_error('22012', 'division by zero')} "
_UNDERFLOW = f"WHEN (a %s b) = 0 AND a <> 0 AND %s THEN {duckdb_error('22003', UNDERFLOW)} "
MACROS = (
    f"tg_divide(a, b) AS CASE {_DIVISOR_ZERO} ELSE a // b END",
    f"tg_modulo(a, b) AS CASE {_DIVISOR_ZERO} WHEN b = -1 THEN a - a ELSE a % b END",
    f"tg_remainder(a, b) AS CASE {_DIVISOR_ZERO} ELSE a % b END",
    f"tg_add(a, b) AS {_checked('+') % ''}",
    f"tg_subtract(a, b) AS {_checked('-') % ''}",
    f"tg_multiply(a, b) AS {_checked('*') % (_UNDERFLOW % ('*', 'b <> 0'))}",
    f"tg_fdivide(a, b) AS {_checked('/', _FLOAT_DIVISOR_ZERO) % (_UNDERFLOW % ('/', 'NOT isinf(b)'))}",
)
