"""Every row of the function catalogue over lists of arguments with NULLs and edges: PostgreSQL's types, values and SQLSTATEs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from lake.types import Type
from sql.duckdb_functions import install
from sql.functions.catalogue import ROWS
from sql.functions.entry import Function
from tests.sql.on_spark import on_spark
from tests.sql.oracle import agree, bound, case_of, on_duckdb, on_postgres

JAR = Path(__file__).parents[2] / "engine" / "java" / "target" / "tailgate.jar"
EVALUATED = [r for r in ROWS if r.duckdb and r.volatility == "immutable"]
FAMILIES = ("operator", "prefix", "function", "cast", "aggregate")


@pytest.fixture(scope="module")
def server(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    install(connection)
    yield connection
    connection.close()


def name(type: Type) -> str:
    return str(type) if type.is_array else str(Type(type.name))


@pytest.mark.parametrize("family", FAMILIES)
def test_duckdb(family: str, server: psycopg.Connection[Any], engine: duckdb.DuckDBPyConnection, seed: int) -> None:
    wrong: list[str] = []
    for row in EVALUATED:
        if row.kind == family:
            wrong += differences(row, server, engine, seed)
    assert not wrong, "\n".join(wrong)


def differences(row: Function, server: psycopg.Connection[Any], engine: duckdb.DuckDBPyConnection, seed: int) -> list[str]:
    case = case_of(row, seed)
    _, query = bound(case)
    type, expected = on_postgres(server, case, query.columns[0].type)
    found = []
    if type and type != name(query.columns[0].type):
        found.append(f"{row}: {case.expression} is {type}, not {query.columns[0].type}")
    for i, (theirs, ours) in enumerate(zip(expected, on_duckdb(engine, case, query, expected), strict=True)):
        if not agree(row, theirs, ours):
            found.append(f"{row}: {case.expression} of {case.rows[i] if case.rows else ()} is {theirs}, not {ours}")
    return found


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.skipif(not JAR.exists(), reason="the engine's Java library is not built")
def test_spark(server: psycopg.Connection[Any], seed: int, tmp_path: Path) -> None:
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.extraClassPath", str(JAR))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.ansi.enabled", "true")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.decimalOperations.allowPrecisionLoss", "false")
        # else constant rows are computed by the optimizer and not by generated code
        .config("spark.sql.optimizer.excludedRules", "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation")
        .config("spark.sql.warehouse.dir", str(tmp_path))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    jvm: Any = spark._jvm
    jvm.tailgate.Functions.register(spark._jsparkSession)
    wrong: list[str] = []
    try:
        for row in EVALUATED:
            if not row.spark or row.kind == "aggregate":
                continue
            case = case_of(row, seed)
            _, query = bound(case)
            _, expected = on_postgres(server, case, query.columns[0].type)
            for i, ours in on_spark(spark, case, query, expected):
                if not agree(row, expected[i], ours):
                    wrong.append(f"{row}: {case.expression} of {case.rows[i]} is {expected[i]}, not {ours}")
    finally:
        spark.stop()
    assert not wrong, "\n".join(wrong)


def test_every_row_is_complete() -> None:
    for row in ROWS:
        assert bool(row.duckdb) or not row.spark, f"{row} has a spelling for Spark only"
        assert row.kind != "cast" or len(row.arguments) == 1


def test_no_signature_twice() -> None:
    signatures = [
        (r.kind if r.kind != "aggregate" else "function", r.name, r.arguments, r.result if r.kind == "cast" else None) for r in ROWS
    ]
    assert len(signatures) == len(set(map(str, signatures)))
