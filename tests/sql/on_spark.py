"""Entries of the function catalogue on Spark, over a table of arguments or one row of it.

`tests.sql.corpus_on_spark` runs them.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa

from tailgate.lake.errors import FeatureNotSupported, TailgateError
from tailgate.lake.tables.moments import numbers
from tailgate.lake.types import Type
from tailgate.sql import plan
from tailgate.sql.functions.catalogue import ROWS
from tailgate.sql.functions.entry import Function
from tailgate.sql.render.spark import expression
from tailgate.sql.tables.definition import type_name
from tests.sql import numerics
from tests.sql.arguments import of_enum
from tests.sql.oracle import (
    EXTENSIONS,
    NAMES,
    Case,
    Result,
    agree,
    bound,
    case_of,
    dated,
    expressions,
    normal,
    number,
    on_postgres,
    pgcrypto,
    unstored,
)

LITERAL_ROWS = 6  # rows of a case whose arguments must be literals
NUMERIC_EXPRESSIONS = 40
ERRORS_MAX = 2  # failing rows of a case; each needs a query


def create_arguments(spark: Any, case: Case) -> None:
    """Creates the view `arguments` with columns c0 (the row's number), c1, …"""
    columns = [pa.array(range(len(case.rows)), pa.int32())]
    for n, type in enumerate(case.types):
        columns.append(pa.array([number(row[n], type) for row in case.rows], type.arrow))
    table = pa.table(columns, names=[f"c{i}" for i in range(len(columns))])
    spark.createDataFrame(table).createOrReplaceTempView("arguments")


def scalar_of(query: plan.Query) -> plan.Scalar:
    assert isinstance(query.plan, plan.Project)
    return query.plan.expressions[0]


def on_spark(spark: Any, case: Case, query: plan.Query, expected: list[Result]) -> list[tuple[int, Result]]:
    """Returns results by row: of each row with a value in PostgreSQL, and of some with an error."""
    create_arguments(spark, case)
    type = query.columns[0].type
    text = expression(scalar_of(query))
    valid = [i for i, result in enumerate(expected) if result[0] == "value"]
    single = [i for i, result in enumerate(expected) if result[0] == "error"][:ERRORS_MAX]
    results: list[tuple[int, Result]] = []
    if valid:
        try:
            rows = _evaluate(spark, f"SELECT c0, {text} AS x FROM arguments WHERE c0 IN ({', '.join(map(str, valid))})", type)
            results += [(i, ("value", value)) for i, value in rows]
        except Exception:  # noqa: BLE001  # the failing row is found below
            single = valid + single
    for i in single:
        try:
            rows = _evaluate(spark, f"SELECT c0, {text} AS x FROM arguments WHERE c0 = {i}", type)
            results += [(i, ("value", value)) for i, value in rows]
        except Exception as error:  # noqa: BLE001
            results.append((i, ("error", sqlstate_of(error))))
    return results


def _evaluate(spark: Any, text: str, type: Type) -> list[tuple[int, Any]]:
    table = spark.sql(text).toArrow()
    values = table["x"].cast(type.arrow) if type.name not in ("interval",) else table["x"]
    return [(i, normal(dated(unstored(v, type), type))) for i, v in zip(table["c0"].to_pylist(), numbers(values).to_pylist(), strict=True)]


def sqlstate_of(error: Exception) -> str:
    """Returns the SQLSTATE that the engine derives from Spark's innermost error."""
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context
    cause: Any = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    if cause is None:
        return type(error).__name__
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(context._jvm.tailgate.errors.SparkErrors.of(cause).sqlstate())


def session(folder: Path) -> Any:
    """Returns the engine's session."""
    from tailgate.engine.runtime.spark import session as engine

    spark = engine.start(folder, 1)
    spark.sparkContext.setLogLevel("OFF")
    # with this rule the optimizer evaluates constant rows, instead of generated code
    spark.conf.set("spark.sql.optimizer.excludedRules", "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation")
    return spark


def _with_literals_if_needed(case: Case) -> list[Case]:
    """Returns the case or, if views require literals, a case with literals for some rows."""
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
        return "'" + str(row[index]).replace("'", "''") + f"'::{type_name(case.types[index])}"

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
        return 0  # not supported, or an invalid literal
    _, expected = on_postgres(server, case, query.columns[0].type)
    wrong = 0
    for i, result in on_spark(spark, case, query, expected):
        if not agree(case.function, expected[i], result):
            print(f"{case.function}: {case.expression} of {case.rows[i]} is {expected[i]}, not {result}", flush=True)
            wrong += 1
    return wrong


def _numeric_differences(spark: Any, server: psycopg.Connection[Any], seed: int) -> int:
    """Compares expressions of declared numerics, all in one query if none of them fails."""
    source = random.Random(seed)
    rows = numerics.random_rows(source, 20)
    bound_expressions = numerics.random_expressions(source, NUMERIC_EXPRESSIONS)
    expected = numerics.on_postgres(server, rows, [text for text, _ in bound_expressions])
    spark.createDataFrame(numerics.table(rows)).createOrReplaceTempView(numerics.RELATION)
    compared = [
        (text, query, values) for (text, query), values in zip(bound_expressions, expected, strict=True) if isinstance(values, list)
    ]
    columns = ", ".join(f"CAST({expression(scalar_of(query))} AS STRING) AS x{i}" for i, (_, query, _) in enumerate(compared))
    table = spark.sql(f"SELECT {columns} FROM {numerics.RELATION} ORDER BY n").toArrow()
    wrong = 0
    for (text, _, values), column in zip(compared, table.columns, strict=True):
        if column.to_pylist() != values:
            print(f"{text} is {values}, not {column.to_pylist()}", flush=True)
            wrong += 1
    return wrong


def differences(spark: Any, dsn: str, seed: int, share: int) -> int:
    """Prints differences from PostgreSQL, and returns their number. Evaluates one entry or other expression in `share`."""
    kinds = ("aggregate", "set")
    rows = [r for r in ROWS if r.spark and r.kind not in kinds and r.volatility == "immutable" and r.name not in EXTENSIONS]
    rows = [r for r in rows if not of_enum(r)]
    wrong = 0
    with psycopg.connect(dsn, autocommit=True) as server, pgcrypto(server):
        server.execute("SET TimeZone = 'UTC'")
        evaluated: list[Case | Function] = [*expressions(seed), *rows]
        for one in random.Random(seed).sample(evaluated, len(evaluated) // share):
            case = case_of(one, seed) if isinstance(one, Function) else one
            for variant in _with_literals_if_needed(case):
                wrong += _differences(spark, server, variant)
        wrong += _numeric_differences(spark, server, seed)
    return wrong
