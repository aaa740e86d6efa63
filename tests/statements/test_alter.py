"""New names and comments: dependents continue, and their definitions show the new names."""

from __future__ import annotations

import psycopg
import pytest

from tests.statements.conftest import World

pytestmark = pytest.mark.spark


@pytest.fixture
def orders(sql: psycopg.Connection) -> psycopg.Connection:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, amount int)")
    sql.execute("INSERT INTO orders VALUES (1, 10), (2, 20)")
    sql.execute(
        "CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS n, sum(orders.amount) AS total FROM public.orders WHERE orders.id > 0"
    )
    sql.execute("CREATE VIEW shown AS WITH orders AS (SELECT 1 AS one) SELECT t.total, one FROM totals AS t, orders")
    return sql


def test_a_new_name_is_everybodys(orders: psycopg.Connection, world: World) -> None:
    orders.execute("ALTER TABLE orders RENAME TO \"Sales 'n' more\"")
    orders.execute("ALTER MATERIALIZED VIEW totals RENAME TO sums")
    orders.execute("INSERT INTO \"Sales 'n' more\" VALUES (3, 30)")
    assert orders.execute("SELECT * FROM sums").fetchall() == [(3, 60)]
    assert orders.execute("SELECT * FROM shown").fetchall() == [(60, 1)]
    assert orders.execute("SELECT * FROM sums_errors").fetchall() == []
    ((_, text),) = orders.execute("SHOW CREATE MATERIALIZED VIEW sums").fetchall()
    assert text == (
        "CREATE MATERIALIZED VIEW sums AS SELECT count(*) AS n, sum(orders.amount) AS total "
        "FROM \"Sales 'n' more\" AS orders WHERE orders.id > 0"
    )
    with pytest.raises(psycopg.errors.UndefinedTable):
        orders.execute("SELECT * FROM totals")
    orders.execute("CREATE OR REPLACE MATERIALIZED VIEW sums AS SELECT count(*) AS n, max(amount)::bigint AS total FROM \"Sales 'n' more\"")
    assert orders.execute("SELECT * FROM shown").fetchall() == [(30, 1)]


def test_what_is_refused(orders: psycopg.Connection) -> None:
    for statement, sqlstate, message in (
        ("ALTER VIEW totals RENAME TO x", "42809", '"totals" is not a view'),
        ("ALTER TABLE totals RENAME TO orders", "42P07", 'relation "orders" already exists'),
        ("ALTER TABLE nothing RENAME TO x", "42P01", 'relation "nothing" does not exist'),
        ("ALTER TABLE totals_errors RENAME TO x", "42P16", '"totals_errors" belongs to materialized view "totals"'),
        ("ALTER TABLE orders SET SCHEMA other", "3F000", 'schema "other" does not exist'),
        ("ALTER TABLE orders DROP COLUMN x", "42703", 'column "x" of relation "orders" does not exist'),
        ("ALTER TABLE orders ALTER CONSTRAINT orders_pkey DEFERRABLE", "0A000", "ALTER TABLE … ALTER CONSTRAINT is not supported"),
        ("COMMENT ON COLUMN orders.x IS 'no'", "42703", 'column "x" of relation "orders" does not exist'),
        ("COMMENT ON ROLE nobody IS 'no'", "42704", 'role "nobody" does not exist'),
    ):
        with pytest.raises(psycopg.Error) as error:
            orders.execute(statement)  # type: ignore[call-overload]
        assert (error.value.sqlstate, error.value.diag.message_primary) == (sqlstate, message)
    orders.execute("ALTER TABLE IF EXISTS nothing RENAME TO x")
    orders.execute("ALTER TABLE orders SET SCHEMA public")


def test_comments(orders: psycopg.Connection) -> None:
    orders.execute("COMMENT ON TABLE orders IS 'what was sold'")
    orders.execute("COMMENT ON COLUMN orders.amount IS 'in cents'")
    query = "SELECT obj_description('orders'::regclass, 'pg_class'), col_description('orders'::regclass, 2)"
    assert orders.execute(query).fetchone() == ("what was sold", "in cents")
    orders.execute("ALTER TABLE orders RENAME TO sales")
    assert orders.execute(query.replace("orders", "sales")).fetchone() == ("what was sold", "in cents")
    orders.execute("COMMENT ON COLUMN sales.amount IS NULL")
    assert orders.execute(query.replace("orders", "sales")).fetchone() == ("what was sold", None)


def test_comments_on_constraints(orders: psycopg.Connection) -> None:
    orders.execute(
        "CREATE TABLE parts (id int PRIMARY KEY, code text CONSTRAINT one_code UNIQUE, n int CONSTRAINT positive CHECK (n > 0),"
        " whole int CONSTRAINT of_whole REFERENCES parts)"
    )
    names = ["of_whole", "one_code", "parts_pkey", "positive"]
    for name in names:
        orders.execute(f"COMMENT ON CONSTRAINT {name} ON parts IS '{name}!'")
    query = "SELECT conname, obj_description(oid, 'pg_constraint') FROM pg_constraint WHERE conrelid = 'parts'::regclass ORDER BY 1"
    assert orders.execute(query).fetchall() == [(n, f"{n}!") for n in names]
    described = "SELECT count(*) FROM pg_description WHERE classoid = 'pg_constraint'::regclass AND objoid >= 16384"
    assert orders.execute(described).fetchone() == (4,)
    orders.execute("ALTER TABLE parts RENAME CONSTRAINT positive TO above_zero")
    orders.execute("COMMENT ON CONSTRAINT one_code ON parts IS NULL")
    orders.execute("ALTER TABLE parts DROP CONSTRAINT of_whole, ADD CONSTRAINT of_whole FOREIGN KEY (whole) REFERENCES parts")
    expected = [("above_zero", "positive!"), ("of_whole", None), ("one_code", None), ("parts_pkey", "parts_pkey!")]
    assert orders.execute(query).fetchall() == expected
    for text, sqlstate in (
        ("COMMENT ON CONSTRAINT nothing ON parts IS 'x'", "42704"),
        ("COMMENT ON CONSTRAINT x ON nothing IS 'x'", "42P01"),
    ):
        with pytest.raises(psycopg.Error) as error:
            orders.execute(text)
        assert error.value.sqlstate == sqlstate
    orders.execute("DROP TABLE parts")


def test_the_history_of_a_relation_is_set_and_reset(orders: psycopg.Connection) -> None:
    orders.execute("ALTER TABLE orders SET (RETAIN HISTORY FOR '2 hours')")
    orders.execute("ALTER MATERIALIZED VIEW totals SET (RETAIN HISTORY FOR '1 day')")
    orders.execute("ALTER MATERIALIZED VIEW totals RESET (RETAIN HISTORY)")
    orders.execute("CREATE TEMPORARY VIEW mine AS SELECT 1 AS one")
    for relation in ("shown", "mine"):
        with pytest.raises(psycopg.errors.WrongObjectType, match=f'"{relation}" is not stored'):
            orders.execute(f"ALTER TABLE {relation} SET (RETAIN HISTORY FOR '1 day')")
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="RETAIN HISTORY FOR"):
        orders.execute("ALTER TABLE orders SET (RETAIN HISTORY FOR '31 days')")
    orders.execute("INSERT INTO orders VALUES (3, 30)")
    assert orders.execute("SELECT * FROM totals").fetchall() == [(3, 60)]
