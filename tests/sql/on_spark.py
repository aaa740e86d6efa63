"""The catalogue's rows on Spark: as one query over a table of arguments, whole or a row at a time.

python -m tests.sql.on_spark DSN JAR SEED SHARE      prints where Spark and PostgreSQL differ, and fails if they do
"""

from __future__ import annotations

import random
import sys
from typing import Any

import psycopg
import pyarrow as pa

from lake.types import Type
from sql import plan
from sql.functions.catalogue import ROWS
from sql.spark import expression
from tests.sql.oracle import Answer, Case, agree, bound, case_of, expressions, normal, on_postgres, stored, unstored

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


def session(jar: str) -> Any:
    """With the settings that the engine gives its own."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.extraClassPath": jar,
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.decimalOperations.allowPrecisionLoss": "false",
        # else the optimizer computes rows that are constant, and not generated code
        "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    jvm: Any = spark._jvm
    jvm.tailgate.Functions.register(spark._jsparkSession)
    return spark


def main(dsn: str, jar: str, seed: int, share: int) -> int:
    rows = [r for r in ROWS if r.spark and r.kind != "aggregate" and r.volatility == "immutable"]
    spark = session(jar)
    wrong = 0
    with psycopg.connect(dsn, autocommit=True) as server:
        server.execute("SET TimeZone = 'UTC'")
        chosen = random.Random(seed).sample(rows, len(rows) // share)
        for case in [*expressions(seed), *(case_of(row, seed) for row in chosen)]:
            _, query = bound(case)
            _, expected = on_postgres(server, case, query.columns[0].type)
            for i, found in on_spark(spark, case, query, expected):
                if not agree(case.function, expected[i], found):
                    print(f"{case.function}: {case.expression} of {case.rows[i]} is {expected[i]}, not {found}")
                    wrong += 1
    spark.stop()
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])) > 0)
