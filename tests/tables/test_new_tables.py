"""CREATE TABLE … AS and SELECT … INTO: one transaction, with all rows or without the table."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from tailgate.lake.folder import Lake
from tests.tables.world import Engine, Served, World, engine_process

ROWS = 20_000


def test_parameters(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as sql:
        created = sql.execute("CREATE TABLE t AS SELECT g AS a, %s::text AS b FROM generate_series(1, %s::int) g", ("x", 3), prepare=True)
        assert created.statusmessage == "SELECT 3"
        assert sql.execute("SELECT * FROM t ORDER BY a").fetchall() == [(1, "x"), (2, "x"), (3, "x")]


def test_undeclared_numerics_have_room(world: World) -> None:
    """The table takes what PostgreSQL's column takes, and not only numbers with the scale of the query's result."""
    with psycopg.connect(world.dsn, autocommit=True) as sql:
        sql.execute("CREATE TABLE n AS SELECT sum(g) AS a, sum(g::numeric(10, 2)) AS b FROM generate_series(1::bigint, 3) g")
        sql.execute("INSERT INTO n VALUES (2.5, 1.125)")
        assert sorted(sql.execute("SELECT a::text::float8, b::text::float8 FROM n").fetchall()) == [(2.5, 1.125), (6, 6)]


def test_read_only_blocks_are_refused(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as sql:
        sql.execute("BEGIN READ ONLY")
        with pytest.raises(errors.ReadOnlySqlTransaction, match="cannot execute SELECT INTO"):
            sql.execute("SELECT 1 AS a INTO t")
        sql.execute("ROLLBACK")
        with pytest.raises(errors.UndefinedTable):
            sql.execute("SELECT * FROM t")


def test_a_query_string_sees_its_own_rows(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as sql:
        sql.execute("CREATE TABLE t (a int)")
        sql.execute("INSERT INTO t VALUES (1); CREATE TABLE copy AS SELECT * FROM t; INSERT INTO copy VALUES (2)")
        assert sorted(sql.execute("SELECT * FROM copy").fetchall()) == [(1,), (2,)]


def test_rows_that_are_not_readable_yet_are_included(tmp_path: Path) -> None:
    """A row that is durable but not committed conflicts: the query is evaluated again when it is readable."""
    world = World(tmp_path / "lake", gateways=2)
    try:
        with (
            psycopg.connect(world.gateways[0].dsn, autocommit=True) as first,
            psycopg.connect(world.gateways[1].dsn, autocommit=True) as second,
        ):
            first.execute("CREATE TABLE t (a int)")
            first.execute("INSERT INTO t VALUES (1)")
            world.together()
            world.engine.pause()
            first.execute("SET synchronous_commit = off")
            first.execute("INSERT INTO t VALUES (2)")
            creating = threading.Thread(target=second.execute, args=("CREATE TABLE copy AS SELECT a FROM t",))
            creating.start()
            creating.join(1.0)
            assert creating.is_alive()  # without a conflict the table would be there, with one row
            world.engine.resume()
            creating.join(60)
            assert sorted(second.execute("SELECT a FROM copy").fetchall()) == [(1,), (2,)]
    finally:
        world.close()


def test_killed_while_the_table_is_created(tmp_path: Path) -> None:
    """After a crash the table has all rows or does not exist."""
    lake = Lake.create(tmp_path / "lake")
    running = Engine(Lake.open(lake.path))
    served = Served(lake)
    tables: dict[str, int | None] = {}
    try:
        for step in ("entry.half:2", "entry.link:2", "entry.linked:2", "catalog.entry:1"):
            running.close()
            child = engine_process(lake.path, step)
            child.wait_ready(child.announced, timedelta(seconds=60))
            name = step.partition(":")[0].replace(".", "_")
            with psycopg.connect(served.dsn, autocommit=True) as sql, pytest.raises(psycopg.Error):
                sql.execute(f"CREATE TABLE {name} AS SELECT g AS a, g || ' rows' AS b FROM generate_series(1, {ROWS}) g")
            assert child.wait(timedelta(seconds=60)) is not None, step
            running = Engine(Lake.open(lake.path))
            served.reach(running.writer.newest.time)
            with psycopg.connect(served.dsn, autocommit=True) as sql:
                try:
                    tables[name] = sql.execute(f"SELECT count(*) FROM {name}").fetchone()[0]  # type: ignore[index]
                except errors.UndefinedTable:
                    tables[name] = None
    finally:
        served.close()
        running.close()
    assert tables == {"entry_half": None, "entry_link": None, "entry_linked": ROWS, "catalog_entry": ROWS}
