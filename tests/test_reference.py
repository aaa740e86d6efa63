"""The reference itself against PostgreSQL: what it says a random query means, PostgreSQL says too; and so does DuckDB of the bound plan."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import duckdb
import psycopg
import pytest

from lake.catalog import Catalog, Change, Item
from lake.errors import TailgateError
from lake.types import WEIGHT
from sql.bind import bind_query
from sql.duckdb import render
from sql.duckdb_functions import error_of, install
from sql.plan import Relation
from tests.reference import NAN, evaluate
from tests.worlds import World

WORLDS, QUERIES, STEPS = 25, 8, 5
TINY = 1e-12  # what PostgreSQL's variances of equal floats leave, where ours are zero


def plain(value: Any) -> Any:
    """Without what a numeric shows beyond its value, for PostgreSQL's division has other digits behind the point than ours; floats without
    the digits that PostgreSQL's variances lose."""
    if isinstance(value, Decimal):
        return float(f"{value:.12g}")
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    if isinstance(value, float):
        if abs(value) < TINY:
            return 0.0
        return NAN if value != value else float(f"{value:.8g}")
    return value


def asked(db: psycopg.Connection[Any], query: str) -> tuple[list[Any], str | None]:
    """The rows of a query, or the SQLSTATE with which it failed."""
    try:
        return db.execute(query).fetchall(), None
    except psycopg.Error as e:
        return [], e.sqlstate


def loaded(world: World) -> duckdb.DuckDBPyConnection:
    """The world's rows as the gateway's mirrors hold them."""
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
    """The rows of a plan; None if it fails, which it may for rows that others do not ask."""
    try:
        return connection.execute(render(relation)).fetchall()
    except duckdb.Error as e:
        if not error_of(e).sqlstate.startswith("22"):
            raise
        return None


@pytest.mark.parametrize("number", range(WORLDS))
def test_reference_is_postgresql(postgres: str, seed: int, number: int) -> None:
    world = World(seed * 1000 + number)
    put = tuple(Item(t.id, "source", t.name, t.columns, t.key, stored=True) for t in world.tables)
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
                    plan, refused = bind_query(query, catalog, view=True).plan, None
                except TailgateError as e:
                    plan, refused = None, e.sqlstate
                found, failed = asked(db, query)
                if plan is None:
                    assert failed == refused, query
                    continue
                expected = evaluate(plan, world.rows)
                if failed == "0A000":
                    continue  # a FULL JOIN that PostgreSQL cannot do
                if failed is not None:
                    # it fails as a whole, and also where it asks more rows than those that are in the end
                    assert failed.startswith("22"), (query, failed)
                    continue
                if expected.errors:
                    continue  # it may have asked fewer rows
                compared += 1
                rows = Counter(tuple(map(plain, row)) for row in expected.rows.elements())
                assert Counter(tuple(map(plain, row)) for row in found) == rows, query
                answered = ad_hoc(connection, plan) if connection is not None else None
                assert answered is None or Counter(tuple(map(plain, row)) for row in answered) == rows, query
    assert compared > 10
