"""EXPLAIN ANALYZE: state and counters of operators, also after an engine restart."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest

from tests.statements.conftest import World

pytestmark = pytest.mark.spark

SHARE = re.compile(r"([0-9.]+) % of the ticks")


def figures(connection: psycopg.Connection[Any], view: str) -> list[tuple[int, int, int, int, float]]:
    """Returns for each operator: rows and bytes of state, rows in and out, milliseconds."""
    lines = [line for (line,) in connection.execute(f"EXPLAIN ANALYZE MATERIALIZED VIEW {view}").fetchall()]  # type: ignore[call-overload]
    result = []
    for line in lines:
        if match := re.search(
            r"state: (\d+) entr(?:y|ies), about (\d+) bytes; last \d+ ticks: (\d+) changes in, (\d+) out, ([0-9.]+) ms, [0-9.]+ % of",
            line,
        ):
            result.append((*map(int, match.groups()[:4]), float(match[5])))
    return result  # type: ignore[return-value]


def state(connection: psycopg.Connection[Any], view: str) -> list[int]:
    return [rows for rows, *_ in figures(connection, view)]


def test_state_is_counted(sql: psycopg.Connection[Any], world: World) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
    sql.execute("CREATE TABLE customers (id int PRIMARY KEY, city text)")
    sql.execute("INSERT INTO customers SELECT n, 'city ' || n % 3 FROM generate_series(1, 10) AS g(n)")
    sql.execute("INSERT INTO orders SELECT n, n % 10 + 1, n FROM generate_series(1, 100) AS g(n)")
    sql.execute(
        "CREATE MATERIALIZED VIEW v AS SELECT c.city, sum(o.amount) AS total, max(o.amount) AS most "
        "FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.city"
    )
    # three groups; for max one value per order; both sides of the join
    assert state(sql, "v") == [103, 110]
    (reduce, join) = figures(sql, "v")
    assert (join[2], join[3], reduce[2]) == (110, 100, 100)
    assert 110 * 20 < join[1] < 110 * 200
    assert 0 < join[4] < 60_000
    shares = [float(share) for (line,) in sql.execute("EXPLAIN ANALYZE MATERIALIZED VIEW v").fetchall() for share in SHARE.findall(line)]
    assert len(shares) == 2 and all(0 <= share <= 100 for share in shares) and sum(shares) > 0
    sql.execute("DELETE FROM orders WHERE id <= 40")
    sql.execute("UPDATE customers SET city = 'city 9' WHERE id = 1")
    assert state(sql, "v") == [64, 70]
    sql.execute("DELETE FROM orders")
    assert state(sql, "v") == [0, 10]
    world.engine.stop()
    world.engine.start()
    sql.execute("INSERT INTO orders VALUES (1, 1, 1)")
    assert state(sql, "v") == [2, 11]
    with pytest.raises(psycopg.errors.WrongObjectType, match='"orders" is not a materialized view'):
        sql.execute("EXPLAIN (ANALYZE) MATERIALIZED VIEW orders")
    plain = [line for (line,) in sql.execute("EXPLAIN MATERIALIZED VIEW v").fetchall()]
    assert not any("state:" in line for line in plain)


def test_every_operator_counts(sql: psycopg.Connection[Any]) -> None:
    sql.execute("CREATE TABLE t (id int PRIMARY KEY, k int, n int)")
    sql.execute("CREATE TABLE u (id int PRIMARY KEY, k int, n int)")
    views = {
        "left_join": "SELECT t.id, u.n FROM t LEFT JOIN u ON t.k = u.k AND t.n < u.n",
        "semi": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
        "sets": "SELECT k FROM t EXCEPT SELECT k FROM u",
        "ordered": "SELECT id FROM t ORDER BY n LIMIT 2",
        "ranked": "SELECT id, rank() OVER (PARTITION BY k ORDER BY n) AS r FROM t",
        "listed": "SELECT k, string_agg(n::text, ',' ORDER BY n) AS l FROM t GROUP BY k",
        "once": "SELECT DISTINCT k FROM t",
    }
    for name, query in views.items():
        sql.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")  # type: ignore[call-overload]
    sql.execute("INSERT INTO t SELECT n, n % 4, n FROM generate_series(1, 20) AS g(n)")
    sql.execute("INSERT INTO u SELECT n, n % 3, n * 2 FROM generate_series(1, 12) AS g(n)")
    for name in views:
        assert all(rows > 0 for rows in state(sql, name)), name
        assert state(sql, name), name
    sql.execute("DELETE FROM t")
    sql.execute("DELETE FROM u")
    for name in views:
        assert set(state(sql, name)) == {0}, (name, figures(sql, name))
