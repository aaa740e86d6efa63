"""Transaction blocks that change the catalog, in a real engine: existing views get the rows, and new views are filled."""

from __future__ import annotations

import psycopg
import pytest

from tests.statements.conftest import World

pytestmark = pytest.mark.spark


def test_views_and_rows_in_one_block(world: World, sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer text, amount int)")
    sql.execute("INSERT INTO orders SELECT g, 'c' || g % 3, g FROM generate_series(1, 30) g")
    sql.execute("CREATE MATERIALIZED VIEW spent AS SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer")
    with sql.transaction():
        sql.execute("INSERT INTO orders VALUES (31, 'c9', 7)")
        sql.execute("CREATE TABLE customers AS SELECT DISTINCT customer, upper(customer) AS name FROM orders")
        sql.execute("CREATE MATERIALIZED VIEW named AS SELECT name, amount FROM customers JOIN spent USING (customer)")
        sql.execute("CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM named")
        sql.execute("ALTER TABLE orders ADD COLUMN note text DEFAULT 'none'")
        sql.execute("ALTER TABLE orders RENAME TO purchases")
        sql.execute("INSERT INTO purchases VALUES (32, 'c8', 8, 'late')")
        sql.execute("CREATE INDEX ON named (name)")
    expected = [("C0", 165), ("C1", 145), ("C2", 155), ("C9", 7)]
    assert sql.execute("SELECT name, amount FROM named ORDER BY 1").fetchall() == expected
    assert sql.execute("SELECT n FROM counted").fetchall() == [(4,)]
    assert sql.execute("SELECT amount FROM spent WHERE customer = 'c8'").fetchall() == [(8,)]
    sql.execute("INSERT INTO customers VALUES ('c8', 'C8')")
    assert sql.execute("SELECT n FROM counted").fetchall() == [(5,)]
    world.engine.stop()
    world.engine.start()
    with sql.transaction():
        sql.execute("UPDATE purchases SET amount = 9 WHERE id = 32")
        sql.execute("DROP MATERIALIZED VIEW counted")
        sql.execute("CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n, sum(amount) AS amount FROM named")
    assert sql.execute("SELECT n, amount::int FROM counted").fetchall() == [(5, 481)]
    assert sql.execute("SELECT note, count(*) FROM purchases GROUP BY 1 ORDER BY 1").fetchall() == [("late", 1), ("none", 31)]
    with pytest.raises(psycopg.errors.ActiveSqlTransaction), sql.transaction():
        sql.execute("CREATE OR REPLACE MATERIALIZED VIEW counted AS SELECT 1 AS n FROM named")
    with sql.transaction():
        sql.execute("DROP TABLE customers CASCADE")
    with pytest.raises(psycopg.errors.UndefinedTable):
        sql.execute("SELECT * FROM named")
    assert sql.execute("SELECT amount FROM spent WHERE customer = 'c8'").fetchall() == [(9,)]
