"""EXPLAIN of queries: ANALYZE executes them, FORMAT JSON is a document, and options have PostgreSQL's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.tables.world import World

SCHEMA = "CREATE TABLE goods (id int PRIMARY KEY, name text); INSERT INTO goods SELECT g, 'n' || g FROM generate_series(1, 9) AS g"
OPTIONS = (
    "(WAL) SELECT 1",
    "(TIMING) SELECT 1",
    "(nonsense) SELECT 1",
    "(FORMAT pretty) SELECT 1",
    "(ANALYZE perhaps) SELECT 1",
    "(COSTS 7) SELECT 1",
    "(ANALYZE) SELECT 1 / 0",
    "(FORMAT JSON) SELECT * FROM nosuch",
)


@pytest.fixture(scope="module")
def sql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection[Any]]:
    world = World(Path(tmp_path_factory.mktemp("explain")) / "lake")
    try:
        with psycopg.connect(world.dsn, autocommit=True) as connection:
            connection.execute(SCHEMA)
            yield connection
    finally:
        world.close()


def lines(sql: psycopg.Connection[Any], statement: str, *values: object) -> list[str]:
    return [line for (line,) in sql.execute(statement, values or None).fetchall()]


def test_analyze(sql: psycopg.Connection[Any]) -> None:
    shown = lines(sql, "EXPLAIN (ANALYZE, BUFFERS) SELECT name FROM goods WHERE id > 3")
    assert re.fullmatch(r"Project: \[name\] \(actual time=\d+\.\d{3}\.\.\d+\.\d{3} rows=6 loops=1\)", shown[0])
    assert shown[1:3] == ["└─ Filter: id > 3", "   └─ Scan: goods"]
    assert [re.sub(r"[\d.]+", "0", line) for line in shown[3:]] == ["Planning Time: 0 ms", "Execution Time: 0 ms"]
    shown = lines(sql, "EXPLAIN (ANALYZE on, TIMING off, SUMMARY off, COSTS off) SELECT name FROM goods WHERE id > 3")
    assert shown == ["Project: [name] (actual rows=6 loops=1)", "└─ Filter: id > 3", "   └─ Scan: goods"]
    assert lines(sql, "EXPLAIN ANALYZE VERBOSE VALUES (1), (2)")[0].endswith("rows=2 loops=1)")
    assert lines(sql, "EXPLAIN (ANALYZE off) SELECT name FROM goods") == ["Project: [name]", "└─ Scan: goods"]
    assert [re.sub(r"[\d.]+", "0", line) for line in lines(sql, "EXPLAIN (SUMMARY) VALUES (1)")][1:] == ["Planning Time: 0 ms"]


def test_parameters(sql: psycopg.Connection[Any]) -> None:
    shown = lines(sql, "EXPLAIN (ANALYZE, TIMING off, SUMMARY off) SELECT name FROM goods WHERE id > %s", 7)
    assert shown[0] == "Project: [name] (actual rows=2 loops=1)"
    assert lines(sql, "EXPLAIN SELECT name FROM goods WHERE id = %s", 7)[-1] == "   └─ Scan: goods"


def test_it_executes(sql: psycopg.Connection[Any]) -> None:
    sql.execute("CREATE SEQUENCE counter")
    lines(sql, "EXPLAIN SELECT nextval('counter')")
    lines(sql, "EXPLAIN ANALYZE SELECT nextval('counter')")
    assert sql.execute("SELECT nextval('counter')").fetchone() == (2,)


def test_json(sql: psycopg.Connection[Any]) -> None:
    cursor = sql.execute("EXPLAIN (FORMAT JSON) SELECT name FROM goods WHERE id > 3")
    assert cursor.description is not None
    assert [(column.name, column.type_code) for column in cursor.description] == [("QUERY PLAN", 114)]
    scan = {"Node Type": "Scan", "Relation Name": "goods"}
    filtered = {"Node Type": "Filter", "Detail": "id > 3", "Plans": [scan]}
    plan = {"Node Type": "Project", "Detail": "[name]", "Plans": [filtered]}
    assert cursor.fetchall() == [([{"Plan": plan}],)]
    ((document,),) = sql.execute("EXPLAIN (ANALYZE, FORMAT JSON) SELECT name FROM goods WHERE id > 3").fetchall()
    (explained,) = document
    assert set(explained) == {"Plan", "Planning Time", "Execution Time"}
    actual = {key: explained["Plan"].pop(key) for key in list(explained["Plan"]) if key.startswith("Actual")}
    assert explained["Plan"] == plan
    assert set(actual) == {"Actual Startup Time", "Actual Total Time", "Actual Rows", "Actual Loops"}
    assert (actual["Actual Rows"], actual["Actual Loops"]) == (6, 1)
    assert 0 < actual["Actual Startup Time"] <= actual["Actual Total Time"] == explained["Execution Time"]


@pytest.mark.parametrize("statement", OPTIONS)
def test_errors(sql: psycopg.Connection[Any], postgres: str, statement: str) -> None:
    errors = []
    with psycopg.connect(postgres, autocommit=True) as theirs:
        for connection in (theirs, sql):
            with pytest.raises(psycopg.Error) as error:
                connection.execute(f"EXPLAIN {statement}".encode())
            errors.append((error.value.sqlstate, error.value.diag.message_primary, error.value.diag.statement_position))
    assert errors[0] == errors[1]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("EXPLAIN (FORMAT JSON) MATERIALIZED VIEW goods", r"EXPLAIN \(JSON\) of a view is not supported"),
        ("EXPLAIN (FORMAT XML) SELECT 1", r"EXPLAIN \(FORMAT XML\) is not supported"),
        ("EXPLAIN ANALYZE DELETE FROM goods", r"EXPLAIN \(ANALYZE\) of DELETE is not supported"),
        ("EXPLAIN ANALYZE SELECT * FROM pg_class", "EXPLAIN of a query of the system catalog is not supported"),
    ],
)
def test_refused(sql: psycopg.Connection[Any], statement: str, message: str) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported, match=message):
        sql.execute(statement.encode())
