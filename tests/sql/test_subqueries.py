"""Tests thousands of random subqueries: DuckDB's rows for the decorrelated plan are PostgreSQL's."""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import psycopg
import pytest

from tailgate.lake.catalog import Catalog, Change, Table
from tailgate.lake.errors import TailgateError
from tailgate.lake.types import Field, Type
from tailgate.sql.bind import bind_query
from tailgate.sql.render.duckdb import render
from tailgate.sql.render.duckdb_functions import error_of, install
from tests.engine.plan.mutations import DECORRELATION, Mutation, broken
from tests.sql.random_subqueries import TABLES, Row, Writer, rows

QUERIES = int(os.environ.get("TAILGATE_SUBQUERIES", "60"))
WORLDS = 5  # sets of rows; the queries are distributed among them
RARE = (  # rare in random queries
    """SELECT q.a, (SELECT count(*) FROM (SELECT s.a FROM s WHERE s.a = q.a UNION ALL
       SELECT t.a FROM t WHERE t.a IS NOT DISTINCT FROM q.a) AS x) AS n FROM r AS q""",
    "SELECT q.a, (SELECT max(x.n) FROM (SELECT count(*) AS n FROM t WHERE t.a = q.a AND t.e = q.a GROUP BY t.e) AS x) AS n FROM r AS q",
    "SELECT q.a, (SELECT s.b FROM s WHERE s.a = q.a) AS n FROM r AS q",
    "SELECT q.a, (SELECT t.e FROM t WHERE t.a = q.a AND t.e > 2) AS n FROM r AS q",
    "SELECT q.a, (SELECT coalesce(x.n, 0) FROM (SELECT s.a, count(*) AS n FROM s GROUP BY s.a) AS x WHERE x.a = q.a) AS n FROM r AS q",
    "SELECT q.a, (SELECT coalesce(x.c, q.c) FROM r AS x WHERE x.id = q.b) AS n FROM r AS q",
    "SELECT q.a, q.a IN (SELECT s.a FROM s WHERE s.b = 1000) AS n FROM r AS q",
    "SELECT q.a, q.a IN (SELECT s.a FROM s WHERE s.b = q.b + 1000) AS n FROM r AS q",
    "SELECT q.a, q.a NOT IN (SELECT s.a FROM s WHERE s.d = q.c) AS n FROM r AS q",
)
FULL: dict[str, list[Row]] = {
    "r": [(0, 0, "x"), (1, None, "y"), (None, 1, "x"), (2, 2, None), (1, 1, "x")],
    "s": [(0, 1, "x"), (0, 1, "y"), (1, None, "x"), (None, 3, "y")],
    "t": [(0, 0), (0, 1), (1, 1), (None, 2), (2, 3)],
}


def make_catalog() -> Catalog:
    catalog = Catalog()
    for name, columns in TABLES.items():
        fields = (Field("id", Type("int4"), False), *(Field(c, Type(t)) for c, t in columns))
        catalog = catalog.apply(Change((Table(catalog.next_id, name, fields, (0,), stored=True),)))
    return catalog


CATALOG = make_catalog()


@pytest.fixture(scope="module")
def server(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET statement_timeout = '20s'")
        for name, columns in TABLES.items():
            connection.execute(f"CREATE TEMPORARY TABLE {name} (id int, {', '.join(f'{c} {t}' for c, t in columns)})")  # type: ignore[arg-type]
        yield connection


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    install(connection)
    for item in CATALOG.items.values():
        connection.execute(f"CREATE TABLE r{item.id} ({', '.join(f'c{i} {c.type.duckdb}' for i, c in enumerate(item.columns))})")
    yield connection
    connection.close()


def fill(server: psycopg.Connection[Any], engine: duckdb.DuckDBPyConnection, tables: dict[str, list[Row]]) -> None:
    for item in CATALOG.items.values():
        server.execute(f"TRUNCATE {item.name}")  # type: ignore[arg-type]
        engine.execute(f"DELETE FROM r{item.id}")
        for number, row in enumerate(tables[item.name]):
            values = (number, *row)
            server.execute(f"INSERT INTO {item.name} VALUES ({', '.join(['%s'] * len(values))})", values)  # type: ignore[arg-type]
            engine.execute(f"INSERT INTO r{item.id} VALUES ({', '.join(['?'] * len(values))})", values)


def theirs(server: psycopg.Connection[Any], text: str) -> Any:
    try:
        return Counter(server.execute(text).fetchall())  # type: ignore[arg-type]
    except psycopg.Error as error:
        return error.sqlstate


def ours(engine: duckdb.DuckDBPyConnection, text: str) -> Any:
    limit = threading.Timer(5, engine.interrupt)
    limit.start()
    try:
        return Counter(engine.execute(render(bind_query(text, CATALOG).plan)).fetchall())
    except duckdb.Error as error:
        return error_of(error).sqlstate
    except TailgateError as error:
        return error.sqlstate
    finally:
        limit.cancel()


def verdict(expected: Any, got: Any, errors: bool) -> str:
    """Compares two results. Returns 'same', 'other', 'not compared' or 'early'.

    'early' means that an expression failed for a row for which PostgreSQL's subquery returns no
    row; see docs/sql/subqueries.md.
    """
    if "57014" in (expected, got):  # one of them ran out of time
        return "not compared"
    if errors and isinstance(expected, str) and isinstance(got, str):
        return "not compared"  # the order of evaluation of failing expressions is not specified
    if errors and isinstance(got, Counter) and isinstance(expected, str):
        return "not compared"  # an expression that need not be evaluated need not fail
    if errors and isinstance(got, str) and got.startswith("22"):
        return "early"
    return "same" if got == expected else "other"


@pytest.mark.parametrize("errors", [False, True], ids=["values", "errors"])
@pytest.mark.parametrize("world", range(WORLDS))
def test_random(server: psycopg.Connection[Any], engine: duckdb.DuckDBPyConnection, seed: int, world: int, errors: bool) -> None:
    source = random.Random(f"{seed} {world} {errors}")
    fill(server, engine, rows(source))
    verdicts = Counter[str]()
    for _ in range(QUERIES // WORLDS // 2):
        text = Writer(source, errors=errors, whole=True).query()
        expected, got = theirs(server, text), ours(engine, text)
        outcome = verdict(expected, got, errors)
        assert outcome != "other", text
        verdicts[outcome] += 1
    assert verdicts["early"] < 2 + verdicts["same"] / 10


@pytest.mark.parametrize("text", RARE)
def test_rare(server: psycopg.Connection[Any], engine: duckdb.DuckDBPyConnection, text: str) -> None:
    fill(server, engine, FULL)
    assert theirs(server, text) == ours(engine, text)


@pytest.fixture(scope="module")
def answered_queries(
    server: psycopg.Connection[Any], engine: duckdb.DuckDBPyConnection
) -> list[tuple[dict[str, list[Row]], list[tuple[str, Any]]]]:
    """Returns rows, and queries over them on which Tailgate and PostgreSQL agree, with PostgreSQL's results."""
    fill(server, engine, FULL)
    out = [(FULL, [(text, theirs(server, text)) for text in RARE])]
    for world in range(4):
        source = random.Random(f"broken {world}")
        tables = rows(source)
        fill(server, engine, tables)
        texts = [Writer(source, depth=1 + world % 2, whole=True).query() for _ in range(250)]
        usable = [(t, a) for t in texts if (a := theirs(server, t)) != "57014" and verdict(a, ours(engine, t), False) == "same"]
        out.append((tables, usable))
    return out


@pytest.mark.long
@pytest.mark.parametrize("mutation", DECORRELATION, ids=str)
def test_a_broken_decorrelation_is_caught(
    mutation: Mutation,
    server: psycopg.Connection[Any],
    engine: duckdb.DuckDBPyConnection,
    answered_queries: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    count = 0
    for tables, queries in answered_queries:
        fill(server, engine, tables)
        for text, expected in queries:
            count += 1
            with broken(mutation):
                try:
                    same = verdict(expected, ours(engine, text), False) != "other"
                except Exception:  # noqa: BLE001  # no plan at all
                    same = False
            if not same:
                with capsys.disabled():
                    print(f"\n| {mutation} | {count} |", end="")
                return
    pytest.fail(f"not caught by {count} queries: {mutation.old} → {mutation.new}")
