"""Tests the reference implementation against PostgreSQL, and DuckDB against both, with random queries."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import duckdb
import psycopg
import pytest

from tailgate.lake import sortable
from tailgate.lake.catalog import Catalog, Change, Source
from tailgate.lake.errors import TailgateError
from tailgate.lake.types import WEIGHT
from tailgate.sql.bind import bind_query
from tailgate.sql.numeric_types import MAINTAINED
from tailgate.sql.plan import Relation
from tailgate.sql.render.duckdb import render
from tailgate.sql.render.duckdb_functions import error_of, install
from testing.reference.evaluation import evaluate
from testing.reference.values import NAN
from testing.worlds import World

WORLDS, QUERIES, STEPS = 25, 8, 5
TINY = 1e-12  # PostgreSQL's variances of equal floats may be this large, where ours are zero


def plain(value: Any) -> Any:
    """Returns a value without what may differ.

    These are the display scales of numerics, because any of those that are equal may be shown, and the last
    digits of floats, which PostgreSQL's variances lose.
    """
    if isinstance(value, dict):  # DuckDB's form of a numeric with a display scale
        value = sortable.loaded(*value.values())
    if isinstance(value, Decimal):
        digits = f"{value:f}"
        return digits.rstrip("0").rstrip(".") if "." in digits else digits
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    if isinstance(value, float):
        if abs(value) < TINY:
            return 0.0
        return NAN if value != value else float(f"{value:.8g}")
    return value


def run_query(db: psycopg.Connection[Any], query: str) -> tuple[list[Any], str | None]:
    """Runs a query. Returns its rows and None, or no rows and its SQLSTATE."""
    try:
        return db.execute(query).fetchall(), None
    except psycopg.Error as e:
        return [], e.sqlstate


def loaded(world: World) -> duckdb.DuckDBPyConnection:
    """Loads the world's rows into DuckDB, in the form of the gateway's mirrors."""
    connection = duckdb.connect()
    install(connection)
    for table in world.tables:
        weight = (WEIGHT,) if table.key is None else ()
        columns = [*(f"c{i} {c.type.duckdb}" for i, c in enumerate(table.columns)), *(f"{w} BIGINT" for w in weight)]
        connection.execute(f"CREATE TABLE r{table.id} ({', '.join(columns)})")
        rows = [row + (n,) * len(weight) for row, n in world.rows[table.id].items()]
        if rows:
            connection.executemany(f"INSERT INTO r{table.id} VALUES ({', '.join('?' * len(columns))})", rows)
    return connection


def ad_hoc(connection: duckdb.DuckDBPyConnection, relation: Relation) -> list[Any] | None:
    """Runs a plan in DuckDB. Returns None if it fails, as it may evaluate more rows than others."""
    try:
        return connection.execute(render(relation)).fetchall()
    except duckdb.Error as e:
        if not error_of(e).sqlstate.startswith("22"):
            raise
        return None


@pytest.mark.parametrize("number", range(WORLDS))
def test_reference_is_postgresql(postgres: str, seed: int, number: int) -> None:
    world = World(seed * 1000 + number)
    put = tuple(Source(t.id, t.name, t.columns, t.key, stored=True) for t in world.tables)
    catalog = Catalog().apply(Change(put=put))
    compared = 0
    with psycopg.connect(postgres, autocommit=True) as db:
        for table in world.tables:
            columns = ", ".join(f"{c.name} {c.type}" for c in table.columns)
            db.execute(f"CREATE TEMP TABLE {table.name} ({columns})")
        for step in range(STEPS):
            for table, row, weight in world.change(8):
                marks = ", ".join(["%s"] * len(row))
                if weight > 0:
                    db.cursor().executemany(f"INSERT INTO {table.name} VALUES ({marks})", [row] * weight)
                else:
                    same = " AND ".join(f"{c.name} IS NOT DISTINCT FROM %s::{c.type}" for c in table.columns)
                    one = f"SELECT ctid FROM {table.name} WHERE {same} LIMIT 1"
                    db.execute(f"DELETE FROM {table.name} WHERE ctid = ({one})", row)
            connection = loaded(world) if step == STEPS - 1 else None
            for _ in range(QUERIES):
                query = world.query(determined=True)
                try:
                    plan, refused = bind_query(query, catalog, view=True, numeric_rules=MAINTAINED).plan, None
                except TailgateError as e:
                    plan, refused = None, e.sqlstate
                result, failed = run_query(db, query)
                if plan is None:
                    assert failed == refused, query
                    continue
                expected = evaluate(plan, world.rows)
                if failed == "0A000":
                    continue  # a FULL JOIN that PostgreSQL does not support
                if failed is not None:
                    # PostgreSQL fails as a whole, and may evaluate rows that the result does not
                    # need.
                    assert failed.startswith("22"), (query, failed)
                    continue
                if expected.errors:
                    continue  # PostgreSQL may have evaluated fewer rows
                compared += 1
                rows = Counter(tuple(map(plain, row)) for row in expected.rows.elements())
                assert Counter(tuple(map(plain, row)) for row in result) == rows, query
                answered = ad_hoc(connection, plan) if connection is not None else None
                assert answered is None or Counter(tuple(map(plain, row)) for row in answered) == rows, query
    assert compared > 10
