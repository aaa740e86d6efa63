"""ALTER TABLE … ADD COLUMN and concurrent writes, and a crash: each row has the new column's value, or the column does not exist."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from tailgate.lake.folder import Lake
from tests.tables.world import Engine, Served, World, engine_process


def test_a_block_that_began_before_is_refused(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as first, psycopg.connect(world.dsn, autocommit=True) as second:
        first.execute("CREATE TABLE t (a int)")
        first.execute("BEGIN")
        first.execute("INSERT INTO t VALUES (1)")
        second.execute("ALTER TABLE t ADD COLUMN b int NOT NULL DEFAULT 2")
        with pytest.raises(errors.SerializationFailure):
            first.execute("COMMIT")
        first.execute("INSERT INTO t VALUES (1)")
        assert first.execute("SELECT * FROM t").fetchall() == [(1, 2)]


def test_rows_that_are_not_readable_yet_get_the_value(tmp_path: Path) -> None:
    world = World(tmp_path / "lake", gateways=2)
    try:
        with (
            psycopg.connect(world.gateways[0].dsn, autocommit=True) as first,
            psycopg.connect(world.gateways[1].dsn, autocommit=True) as second,
        ):
            first.execute("CREATE TABLE t (a int)")
            world.together()
            world.engine.pause()
            first.execute("SET synchronous_commit = off")
            first.execute("INSERT INTO t VALUES (1)")
            altering = threading.Thread(target=second.execute, args=("ALTER TABLE t ADD COLUMN b int DEFAULT 2",))
            altering.start()
            altering.join(1.0)
            assert altering.is_alive()  # it waits for the row
            world.engine.resume()
            altering.join(60)
            assert second.execute("SELECT * FROM t").fetchall() == [(1, 2)]
    finally:
        world.close()


def test_a_table_with_dropped_columns_is_not_followed_by_readers_of_all_columns(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as c:
        c.execute("CREATE TABLE t (a int, secret text)")
        c.execute("INSERT INTO t VALUES (1, 'x')")
        c.execute("ALTER TABLE t DROP COLUMN secret")
        with pytest.raises(errors.FeatureNotSupported, match="dropped columns"):
            c.execute("CREATE SUBSCRIPTION s FROM t")
        assert c.execute("SELECT * FROM t").fetchall() == [(1,)]
        assert c.execute("SHOW COLUMNS FROM t").fetchall() == [("a", True, "integer")]
        c.execute("CREATE TABLE u (a int)")
        c.execute("CREATE SUBSCRIPTION s FROM u")
        c.execute("ALTER TABLE u ADD COLUMN b int")
        with pytest.raises(errors.DependentObjectsStillExist):
            c.execute("ALTER TABLE u DROP COLUMN a CASCADE")


@pytest.mark.parametrize("rest", ["", " WHERE id > 0", " ORDER BY id LIMIT 5"], ids=["projected", "filtered", "other"])
def test_a_followed_view_does_not_have_a_later_column(world: World, rest: str) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as c, psycopg.connect(world.dsn, autocommit=True) as following:
        c.execute("CREATE TABLE orders (id int PRIMARY KEY, customer text)")
        c.execute("INSERT INTO orders VALUES (1, 'ann')")
        c.execute(f"CREATE VIEW customers AS SELECT * FROM orders{rest}")  # type: ignore[call-overload]
        c.execute("ALTER TABLE orders ADD COLUMN amount int NOT NULL DEFAULT 5")
        c.execute("INSERT INTO orders VALUES (2, 'bob', 7)")
        following.execute("BEGIN; DECLARE tail CURSOR FOR TAIL customers")
        assert sorted(row[1:] for row in following.execute("FETCH 2 FROM tail").fetchall()) == [(1, 1, "ann"), (1, 2, "bob")]
        c.execute("DELETE FROM orders WHERE id = 1")
        assert [row[1:] for row in following.execute("FETCH 1 FROM tail").fetchall()] == [(-1, 1, "ann")]


def test_killed_while_a_column_is_added(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    running = Engine(Lake.open(lake.path))
    served = Served(lake)
    rows: list[tuple[object, ...]] = []
    try:
        with psycopg.connect(served.dsn, autocommit=True) as sql:
            sql.execute("CREATE TABLE t (a int)")
            sql.execute("INSERT INTO t VALUES (1), (1)")
        for number, step in enumerate(("entry.link:2", "entry.linked:2")):
            running.close()
            child = engine_process(lake.path, step)
            child.wait_ready(child.announced, timedelta(seconds=60))
            with psycopg.connect(served.dsn, autocommit=True) as sql, pytest.raises(psycopg.Error):
                sql.execute(f"ALTER TABLE t ADD COLUMN c{number} int DEFAULT {number}")
            assert child.wait(timedelta(seconds=60)) is not None, step
            running = Engine(Lake.open(lake.path))
            served.reach(running.writer.newest.time)
        with psycopg.connect(served.dsn, autocommit=True) as sql:
            cursor = sql.execute("SELECT * FROM t")
            assert [c.name for c in cursor.description or ()] == ["a", "c1"]
            rows = cursor.fetchall()
    finally:
        served.close()
        running.close()
    assert rows == [(1, 1), (1, 1)]


def test_a_cast_to_a_longer_type_does_not_rewrite_the_table(world: World) -> None:
    """Django writes USING for each change of a type."""
    with psycopg.connect(world.dsn, autocommit=True) as c:
        c.execute("CREATE TABLE t (a varchar(5), b text)")
        c.execute("INSERT INTO t VALUES ('abcde', 'x')")
        c.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
        c.execute('ALTER TABLE t ALTER COLUMN a TYPE varchar(9) USING "a"::varchar(9), ALTER b TYPE varchar USING b::varchar')
        c.execute("INSERT INTO t VALUES ('abcdefghi', 'y')")
        for using in ("a::varchar(3)", "upper(a)", "b::varchar(3)", "a::text"):
            with pytest.raises(errors.FeatureNotSupported, match="rewriting a table"):
                c.execute(f"ALTER TABLE t ALTER COLUMN a TYPE varchar(3) USING {using}".encode())
