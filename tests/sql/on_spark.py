"""The catalogue's rows on Spark: as one query over a table of arguments, whole or a row at a time."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lake.types import Type
from sql import plan
from sql.spark import expression
from tests.sql.oracle import Answer, Case, normal, stored, unstored

ERRORS_MAX = 2  # of a case's failing rows, asked one by one: each is a query of its own


def arguments(spark: Any, case: Case) -> None:
    """Makes `arguments` with columns c0 (the row's number), c1, …"""
    columns = [pa.array(range(len(case.rows)), pa.int32())]
    for n, type in enumerate(case.types):
        columns.append(pa.array([stored(row[n], type) for row in case.rows], type.arrow))
    table = pa.table(columns, names=[f"c{i}" for i in range(len(columns))])
    spark.createDataFrame(table).createOrReplaceTempView("arguments")


def scalar_of(query: plan.Query) -> plan.Scalar:
    assert isinstance(query.plan, plan.Project)
    return query.plan.expressions[0]


def on_spark(spark: Any, case: Case, query: plan.Query, expected: list[Answer]) -> list[tuple[int, Answer]]:
    """Answers by row: of all that PostgreSQL has a value for, and of some that it refuses."""
    arguments(spark, case)
    type = query.columns[0].type
    text = expression(scalar_of(query))
    good = [i for i, answer in enumerate(expected) if answer[0] == "value"]
    bad = [i for i, answer in enumerate(expected) if answer[0] == "error"][:ERRORS_MAX]
    found: list[tuple[int, Answer]] = []
    if good:
        try:
            rows = _ask(spark, f"SELECT c0, {text} AS x FROM arguments WHERE c0 IN ({', '.join(map(str, good))})", type)
            found += [(i, ("value", value)) for i, value in rows]
        except Exception:  # noqa: BLE001  # which row it was, one by one
            bad = good + bad
    for i in bad:
        try:
            found += [(j, ("value", v)) for j, v in _ask(spark, f"SELECT c0, {text} AS x FROM arguments WHERE c0 = {i}", type)]
        except Exception as error:  # noqa: BLE001
            found.append((i, ("error", sqlstate_of(error))))
    return found


def _ask(spark: Any, text: str, type: Type) -> list[tuple[int, Any]]:
    table = spark.sql(text).toArrow()
    values = table["x"].cast(type.arrow) if type.name not in ("interval",) else table["x"]
    return [(i, normal(unstored(v, type))) for i, v in zip(table["c0"].to_pylist(), values.to_pylist(), strict=True)]


def sqlstate_of(error: Exception) -> str:
    """What the engine makes of Spark's innermost error."""
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context
    cause: Any = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    if cause is None:
        return type(error).__name__
    while cause.getCause() is not None:
        cause = cause.getCause()
    methods = context._jvm.java.lang.Class.forName("tailgate.Errors").getDeclaredMethods()
    of = next(m for m in methods if m.getName() == "of" and m.getParameterCount() == 1)
    of.setAccessible(True)
    arguments = context._gateway.new_array(context._jvm.java.lang.Object, 1)
    arguments[0] = cause
    return str(of.invoke(None, arguments).sqlstate())
