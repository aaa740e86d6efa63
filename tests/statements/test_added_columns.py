"""ALTER TABLE … ADD COLUMN with views above the table, which keep the columns that they know, also after a restart."""

from __future__ import annotations

import psycopg
import pytest

from tests.statements.conftest import World

pytestmark = pytest.mark.spark


def test_views_keep_their_columns(world: World, sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer text)")
    sql.execute("INSERT INTO orders VALUES (1, 'ann'), (2, 'bob'), (3, 'ann')")
    sql.execute("CREATE MATERIALIZED VIEW counts AS SELECT customer, count(*) AS n FROM orders GROUP BY customer")
    sql.execute("CREATE MATERIALIZED VIEW copies AS SELECT * FROM orders")
    sql.execute("ALTER TABLE orders ADD COLUMN amount int NOT NULL DEFAULT 5, ADD COLUMN note text")
    assert sql.execute("SELECT * FROM orders ORDER BY id").fetchall() == [(1, "ann", 5, None), (2, "bob", 5, None), (3, "ann", 5, None)]
    sql.execute("CREATE MATERIALIZED VIEW sums AS SELECT sum(amount) AS amount FROM orders")
    sql.execute("UPDATE orders SET amount = 6, customer = 'bob' WHERE id = 3")
    sql.execute("INSERT INTO orders VALUES (4, 'cid', 7, 'new')")
    expected = [("ann", 1), ("bob", 2), ("cid", 1)]
    assert sql.execute("SELECT * FROM counts ORDER BY customer").fetchall() == expected
    assert sql.execute("SELECT * FROM copies ORDER BY id").fetchall() == [(1, "ann"), (2, "bob"), (3, "bob"), (4, "cid")]
    assert sql.execute("SELECT amount FROM sums").fetchall() == [(23,)]
    world.engine.stop()
    world.engine.start()
    assert [row[1] for row in sql.execute("SHOW MATERIALIZED VIEWS").fetchall() if row[0] in ("counts", "copies", "sums")] == [
        "running"
    ] * 3
    sql.execute("DELETE FROM orders WHERE id = 1")
    assert sql.execute("SELECT * FROM counts ORDER BY customer").fetchall() == expected[1:]
    assert sql.execute("SELECT * FROM copies ORDER BY id").fetchall() == [(2, "bob"), (3, "bob"), (4, "cid")]
    assert sql.execute("SELECT amount FROM sums").fetchall() == [(18,)]
    assert sql.execute("SELECT note FROM orders WHERE id = 4").fetchall() == [("new",)]


def test_a_column_with_another_type_survives_a_restart(world: World, sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE typed (id int PRIMARY KEY, amount text)")
    sql.execute("INSERT INTO typed VALUES (1, '10'), (2, '20')")
    sql.execute("CREATE VIEW ids AS SELECT id FROM typed")
    sql.execute("ALTER TABLE typed ALTER COLUMN amount TYPE int USING amount::int + 1, ADD COLUMN n serial")
    sql.execute("CREATE MATERIALIZED VIEW totals AS SELECT sum(amount) AS amount FROM typed")
    sql.execute("INSERT INTO typed VALUES (3, 30)")
    assert sql.execute("SELECT amount FROM totals").fetchall() == [(62,)]
    world.engine.stop()
    world.engine.start()
    sql.execute("DELETE FROM typed WHERE id = 1")
    assert sql.execute("SELECT * FROM typed ORDER BY id").fetchall() == [(2, 21, 2), (3, 30, 3)]
    assert sql.execute("SELECT id FROM ids ORDER BY id").fetchall() == [(2,), (3,)]
    assert sql.execute("SELECT amount FROM totals").fetchall() == [(51,)]
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="materialized view totals"):
        sql.execute("ALTER TABLE typed ALTER COLUMN n TYPE bigint")
