"""CREATE OR REPLACE: a replacement is backfilled and switches together with its dependents.

Followers get the difference.
"""

from __future__ import annotations

import psycopg
import pytest

from tests.statements.conftest import World

pytestmark = pytest.mark.spark


@pytest.fixture
def orders(sql: psycopg.Connection) -> psycopg.Connection:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer text, amount int)")
    sql.execute("INSERT INTO orders VALUES (1, 'ann', 10), (2, 'bob', 20), (3, 'ann', 30)")
    sql.execute("CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")
    sql.execute("CREATE VIEW large AS SELECT customer, total FROM totals WHERE total > 25")
    sql.execute("CREATE MATERIALIZED VIEW larger AS SELECT customer, total + 1 AS more FROM large")
    return sql


def rows(connection: psycopg.Connection, relation: str) -> list[tuple[object, ...]]:
    return sorted(connection.execute(f"SELECT * FROM {relation}").fetchall())  # type: ignore[call-overload,no-any-return]


def test_a_materialized_view_and_its_readers_switch_at_one_time(orders: psycopg.Connection, world: World) -> None:
    with world.connect() as follower, follower.transaction():
        follower.execute("DECLARE c CURSOR FOR TAIL totals WITH (SNAPSHOT = false)")
        follower.execute("FETCH 0 c")
        id = world.lake.catalog().relation("totals").id
        orders.execute(
            "CREATE OR REPLACE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) * 2 AS total FROM orders GROUP BY customer"
        )
        assert rows(orders, "totals") == [("ann", 80), ("bob", 40)]
        assert rows(orders, "large") == [("ann", 80), ("bob", 40)]
        assert rows(orders, "larger") == [("ann", 81), ("bob", 41)]
        assert world.lake.catalog().relation("totals").id == id
        changes = follower.execute("FETCH 4 c WITH (timeout = '10s')").fetchall()
        assert len({time for time, *_ in changes}) == 1
        assert sorted(row[1:] for row in changes) == [(-1, "ann", 40), (-1, "bob", 20), (1, "ann", 80), (1, "bob", 40)]
    orders.execute("UPDATE orders SET amount = 0 WHERE id = 3")
    assert rows(orders, "larger") == [("bob", 41)]
    assert rows(orders, "totals") == [("ann", 20), ("bob", 40)]


def test_a_plain_view_below_a_materialized_one(orders: psycopg.Connection) -> None:
    orders.execute("CREATE OR REPLACE VIEW large AS SELECT customer, total, total > 25 AS much FROM totals")
    assert rows(orders, "large") == [("ann", 40, True), ("bob", 20, False)]
    assert rows(orders, "larger") == [("ann", 41), ("bob", 21)]
    orders.execute("INSERT INTO orders VALUES (4, 'cem', 1)")
    assert rows(orders, "larger") == [("ann", 41), ("bob", 21), ("cem", 2)]


def test_other_columns(orders: psycopg.Connection, world: World) -> None:
    with pytest.raises(psycopg.errors.DependentObjectsStillExist) as error:
        orders.execute("CREATE OR REPLACE MATERIALIZED VIEW totals AS SELECT customer, count(*) AS n FROM orders GROUP BY 1")
    assert error.value.diag.message_detail == "view large depends on materialized view totals"
    orders.execute("CREATE OR REPLACE MATERIALIZED VIEW larger AS SELECT 'x' AS kind, count(*) AS n FROM large")
    assert rows(orders, "larger") == [("x", 1)]
    assert rows(orders, "larger_errors") == []
    orders.execute("UPDATE orders SET amount = 26 WHERE id = 2")
    assert rows(orders, "larger") == [("x", 2)]
    names = [i.name for i in world.lake.catalog().items.values()]
    assert len(names) == len(set(names))


def test_statements_that_postgresql_refuses(orders: psycopg.Connection) -> None:
    for statement, sqlstate, message in (
        ("VIEW large AS SELECT customer FROM totals", "42P16", "cannot drop columns from view"),
        ("VIEW large AS SELECT customer, total AS t FROM totals", "42P16", 'cannot change name of view column "total" to "t"'),
        (
            "VIEW large AS SELECT customer, total::text AS total FROM totals",
            "42P16",
            'cannot change data type of view column "total" from bigint to text',
        ),
        ("VIEW totals AS SELECT 1 AS x", "42809", '"totals" is not a view'),
        ("MATERIALIZED VIEW totals AS SELECT customer, more AS total FROM larger", "42P17", "infinite recursion detected in rules"),
    ):
        with pytest.raises(psycopg.Error) as error:
            orders.execute(f"CREATE OR REPLACE {statement}")  # type: ignore[call-overload]
        assert (error.value.sqlstate, error.value.diag.message_primary[: len(message)]) == (sqlstate, message)  # type: ignore[index]
    assert rows(orders, "larger") == [("ann", 41)]


def test_or_replace_creates_a_missing_view(sql: psycopg.Connection) -> None:
    sql.execute("CREATE OR REPLACE VIEW one AS SELECT 1 AS x")
    sql.execute("CREATE OR REPLACE VIEW one AS SELECT 2 AS x, 3 AS y")
    assert rows(sql, "one") == [(2, 3)]
