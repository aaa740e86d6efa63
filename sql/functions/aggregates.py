"""Aggregates. In maintained views the engine keeps them up to date by name; the templates are what DuckDB computes.

Result types as PostgreSQL: sums of integers are wider than what is summed, averages of integers and numerics are numerics.
"""

from __future__ import annotations

from lake.types import Type
from sql.functions.arithmetic import quotient_scale, same_scale, whole
from sql.functions.entry import Function, ResultType


def _aggregate(name: str, arguments: tuple[str, ...], result: str | ResultType, spark: str, duckdb: str) -> Function:
    return Function(name, arguments, result, spark, duckdb, "aggregate", strict=False)


def _average(types: tuple[Type, ...]) -> Type:
    return quotient_scale((whole(types),))


ORDERED = "int2 int4 int8 float4 float8 numeric text bpchar date time timestamp timestamptz oid".split()

ROWS = (
    _aggregate("count", (), "int8", "count(*)", "count(*)"),
    _aggregate("count", ("any",), "int8", "count({0})", "count({0})"),
    _aggregate("sum", ("int2",), "int8", "sum({0})", "CAST(sum({0}) AS BIGINT)"),
    _aggregate("sum", ("int4",), "int8", "sum({0})", "CAST(sum({0}) AS BIGINT)"),
    _aggregate("sum", ("int8",), whole, "sum(CAST({0} AS DECIMAL(38,0)))", "CAST(sum({0}) AS DECIMAL(38,0))"),
    _aggregate("sum", ("numeric",), same_scale, "sum({0})", "CAST(sum({0}) AS {type})"),
    _aggregate("sum", ("float4",), "float4", "CAST(sum({0}) AS FLOAT)", "CAST(sum({0}) AS FLOAT)"),
    _aggregate("sum", ("float8",), "float8", "sum({0})", "sum({0})"),
    _aggregate("sum", ("interval",), "interval", "", ""),
    *(
        _aggregate(
            "avg",
            (t,),
            quotient_scale if t == "numeric" else _average,
            "avg({0})",
            f"CAST(tg_numeric_divide(CAST(sum({{0}}) AS DECIMAL(38,{s})), count({{0}}), {s}, 0, {{scale}}) AS {{type}})",
        )
        for t, s in (("int2", "0"), ("int4", "0"), ("int8", "0"), ("numeric", "{scale0}"))
    ),
    _aggregate("avg", ("float4",), "float8", "avg({0})", "avg(CAST({0} AS DOUBLE))"),
    _aggregate("avg", ("float8",), "float8", "avg({0})", "avg({0})"),
    _aggregate("avg", ("interval",), "interval", "", ""),
    *(
        _aggregate(name, (t,), same_scale if t == "numeric" else t, f"{name}({{0}})", f"{name}({{0}})")
        for name in ("min", "max")
        for t in ORDERED
    ),
    *(_aggregate(name, ("interval",), "interval", "", "") for name in ("min", "max")),
)
