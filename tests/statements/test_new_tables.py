"""A table that CREATE TABLE … AS has filled is a table like others: views over it have its rows and follow it, also after a restart."""

from __future__ import annotations

import psycopg
import pytest

from tests.statements.conftest import World

pytestmark = pytest.mark.spark


def test_views_over_a_filled_table(world: World, sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric(8, 2))")
    sql.execute("INSERT INTO orders SELECT g, 'c' || g % 3, g FROM generate_series(1, 30) g")
    sql.execute("CREATE MATERIALIZED VIEW spent AS SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer")
    assert sql.execute("CREATE TABLE copies AS SELECT customer, amount FROM spent").statusmessage == "SELECT 3"
    sql.execute("CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS n, sum(amount) AS amount FROM copies")
    assert sql.execute("SELECT n, amount::int FROM totals").fetchall() == [(3, 465)]
    sql.execute("INSERT INTO copies VALUES ('c9', 5)")
    assert sql.execute("SELECT n, amount::int FROM totals").fetchall() == [(4, 470)]
    world.engine.stop()
    world.engine.start()
    sql.execute("DELETE FROM copies WHERE customer = 'c1'")
    assert sql.execute("SELECT n, amount::int FROM totals").fetchall() == [(3, 325)]
    assert sql.execute("SELECT customer FROM copies ORDER BY 1").fetchall() == [("c0",), ("c2",), ("c9",)]
