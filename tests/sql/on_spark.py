"""The catalogue's rows on Spark: as one query over a table of arguments, whole or a row at a time.

python -m tests.sql.on_spark DSN JAR SEED SHARE      prints where Spark and PostgreSQL differ, and fails if they do
"""

from __future__ import annotations

import random
import re
import sys
from dataclasses import replace
from typing import Any

import psycopg
import pyarrow as pa

from lake.errors import FeatureNotSupported, TailgateError
from lake.types import Type
from sql import plan
from sql.functions.catalogue import ROWS
from sql.spark import expression
from tests.sql.oracle import NAMES, Answer, Case, agree, bound, case_of, expressions, normal, on_postgres, stored, unstored

LITERAL_ROWS = 6  # of a case that takes literals only
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
    return str(context._jvm.tailgate.errors.SparkErrors.of(cause).sqlstate())


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
    jvm.tailgate.functions.Functions.register(spark._jsparkSession)
    return spark


def _askable(case: Case) -> list[Case]:
    """The case; or, where a view takes literals only, some of its rows each with them."""
    if not case.expression:
        return []
    try:
        expression(scalar_of(bound(case)[1]))
        return [case]
    except FeatureNotSupported:
        return [_with_literals(case, row) for row in case.rows[:LITERAL_ROWS] if None not in row]


def _with_literals(case: Case, row: tuple[str | None, ...]) -> Case:
    def literal(match: re.Match[str]) -> str:
        index = NAMES.index(match[0])
        return "'" + str(row[index]).replace("'", "''") + f"'::{case.types[index]}"

    text = re.sub(r"\b[b-g]\b", literal, case.expression) if "::" not in case.expression else case.expression
    return replace(case, expression=text, rows=(row,))


def _differences(spark: Any, server: psycopg.Connection[Any], case: Case) -> int:
    try:
        _, query = bound(case)
        expression(scalar_of(query))
    except TailgateError as error:
        if error.sqlstate not in ("0A000", "2201B", "22023"):
            print(f"{case.function}: {case.expression}: {error.sqlstate} {error.message}")
            return 1
        return 0  # refused by name, or a literal that is none
    _, expected = on_postgres(server, case, query.columns[0].type)
    wrong = 0
    for i, found in on_spark(spark, case, query, expected):
        if not agree(case.function, expected[i], found):
            print(f"{case.function}: {case.expression} of {case.rows[i]} is {expected[i]}, not {found}", flush=True)
            wrong += 1
    return wrong


def main(dsn: str, jar: str, seed: int, share: int) -> int:
    rows = [r for r in ROWS if r.spark and r.kind not in ("aggregate", "set") and r.volatility == "immutable"]
    spark = session(jar)
    wrong = 0
    with psycopg.connect(dsn, autocommit=True) as server:
        server.execute("SET TimeZone = 'UTC'")
        chosen = random.Random(seed).sample(rows, len(rows) // share)
        for case in [*expressions(seed), *(case_of(row, seed) for row in chosen)]:
            for one in _askable(case):
                wrong += _differences(spark, server, one)
    spark.stop()
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])) > 0)
