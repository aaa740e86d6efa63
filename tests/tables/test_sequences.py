"""Sequences: no value is given twice when processes end, and calls that cannot be counted are refused."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.gateway.writes.sequence_ranges import RANGE_MAX
from tailgate.lake.catalog import Sequence
from tailgate.lake.folder import Lake
from tests.tables.world import Engine, Served, World, engine_process


def connected(served: Served) -> psycopg.Connection[Any]:
    return psycopg.connect(served.dsn, autocommit=True)


def taken(connection: psycopg.Connection[Any], count: int) -> list[int]:
    return [connection.execute("SELECT nextval('s')").fetchone()[0] for _ in range(count)]  # type: ignore[index]


def test_gateways_have_different_values(tmp_path: Path) -> None:
    world = World(tmp_path / "lake", gateways=2)
    values: dict[int, list[int]] = {}
    try:
        with connected(world.gateways[0]) as sql:
            sql.execute("CREATE SEQUENCE s")
        world.together()

        def write(number: int) -> None:
            with connected(world.gateways[number % 2]) as sql:
                values[number] = taken(sql, 150)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        every = [value for of_session in values.values() for value in of_session]
        assert len(every) == len(set(every)) == 600
        assert all(of_session == sorted(of_session) for of_session in values.values())
        assert max(every) < 600 + 4 * RANGE_MAX
    finally:
        world.close()


def test_setval_ends_the_ranges_of_other_gateways(tmp_path: Path) -> None:
    world = World(tmp_path / "lake", gateways=2)
    try:
        with connected(world.gateways[0]) as first, connected(world.gateways[1]) as second:
            first.execute("CREATE SEQUENCE s")
            world.together()
            taken(second, 1)
            first.execute("SELECT setval('s', 5000)")
            world.together()
            assert taken(second, 1) == [5001]
    finally:
        world.close()


def test_killed_while_values_are_reserved(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    running = Engine(Lake.open(lake.path))
    values: list[int] = []
    served = Served(lake)
    try:
        with connected(served) as sql:
            sql.execute("CREATE SEQUENCE s")
            values += taken(sql, 40)  # two ranges
        for step in ("entry.link:2", "entry.linked:2"):
            served.close()  # a gateway forgets its range
            running.close()
            child = engine_process(lake.path, step)
            child.wait_ready(child.announced, timedelta(seconds=60))
            served = Served(lake)
            with connected(served) as sql, pytest.raises(psycopg.Error):
                taken(sql, 1)
            assert child.wait(timedelta(seconds=60)) is not None, step
            running = Engine(Lake.open(lake.path))
            with connected(served) as sql:
                values += taken(sql, 3)
        assert len(values) == len(set(values)) == 46
        assert values == sorted(values)
    finally:
        served.close()
        running.close()


REFUSED = (
    "SELECT nextval('s') FROM t ORDER BY n",
    "SELECT nextval('s') FROM t LIMIT 1",
    "SELECT DISTINCT nextval('s') FROM t",
    "SELECT nextval('s'), last_value FROM s",
    "SELECT setval('s', max(n) + nextval('s')) FROM t",
    "SELECT * FROM t WHERE n = currval('s' || '')",
    "INSERT INTO t SELECT nextval('s') FROM t WHERE n = currval('s')",
    "INSERT INTO t VALUES (nextval('s')), (nextval('s')) RETURNING currval('s')",
    "INSERT INTO t SELECT nextval('s') FROM t RETURNING lastval()",
    "UPDATE keyed SET n = nextval('s') RETURNING currval('s')",
    "WITH i AS (INSERT INTO t VALUES (nextval('s')) RETURNING n) SELECT * FROM keyed WHERE n = currval('s')",
    "TAIL (SELECT n FROM t WHERE n = currval('s'))",
    "CREATE VIEW v AS SELECT n FROM t WHERE n = currval('s')",
    "CREATE MATERIALIZED VIEW v AS SELECT n FROM t WHERE n = currval('s')",
    "CREATE FUNCTION f() RETURNS bigint LANGUAGE SQL AS 'SELECT n FROM t WHERE n = currval(''s'')'",
    "CREATE ENDPOINT e GET '/e' AS SELECT n FROM t WHERE n = currval('s')",
    "SELECT (SELECT nextval('s'))",
    "SELECT CASE WHEN random() < 2 THEN nextval('s') END",
    "SELECT CASE WHEN true THEN setval('s', 1) END",
    "SELECT coalesce(nextval('s'), nextval('s'))",
    "SELECT coalesce(NULL, setval('s', 1))",
    "SELECT 1 ORDER BY nextval('s')",
    "CREATE VIEW v AS SELECT nextval('s')",
    "CREATE TABLE other (n int CHECK (n < nextval('s')))",
    "INSERT INTO t VALUES (1) RETURNING nextval('s')",
    "UPDATE t SET n = nextval('s')",
    "DELETE FROM t WHERE n = nextval('s')",
    "TAIL (SELECT nextval('s'))",
    "TAIL (SELECT setval('s', n) FROM t)",
    "TAIL (SELECT last_value FROM s)",
    "CREATE VIEW v AS SELECT last_value FROM s",
    "CREATE MATERIALIZED VIEW v AS SELECT t.n FROM t, s WHERE n = last_value",
    "CREATE FUNCTION f() RETURNS bigint LANGUAGE SQL AS 'SELECT last_value FROM s'",
    "CREATE ENDPOINT e GET '/e' AS SELECT last_value FROM s",
    "VALUES (nextval('s')), (nextval('s')) ORDER BY 1",
    "SELECT nextval('s') UNION ALL SELECT 1",
    "CREATE ENDPOINT e GET '/e' AS SELECT nextval('s')",
    "CREATE ENDPOINT e POST '/e' AS INSERT INTO t VALUES (nextval('s' || '')) RETURNING n",
    "CREATE FUNCTION f() RETURNS bigint LANGUAGE SQL AS 'SELECT nextval(''s'')'",
    "CREATE UNLOGGED SEQUENCE other",
)


def test_calls_that_cannot_be_counted_are_refused(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as sql:
        sql.execute("CREATE SEQUENCE s")
        sql.execute("CREATE TABLE t (n bigint)")
        sql.execute("CREATE TABLE keyed (id int PRIMARY KEY, n bigint)")
        sql.execute("SELECT nextval('s')")
        sql.execute("INSERT INTO t VALUES (0), (0)")
        before = world.engine.writer.catalog
        for text in REFUSED:
            try:
                sql.execute(text.encode())
            except psycopg.errors.FeatureNotSupported:
                continue
            except psycopg.Error as error:
                raise AssertionError(text) from error
            raise AssertionError(text)
        assert world.engine.writer.catalog == before
        assert sql.execute("SELECT nextval('s')").fetchone() == (2,)


def test_truncate_restarts_identity_in_one_entry(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as sql, psycopg.connect(world.dsn, autocommit=True) as other:
        sql.execute("CREATE TABLE t (id serial, n int)")
        sql.execute("INSERT INTO t (n) VALUES (1), (2)")
        newest = world.engine.writer.newest.n
        sql.execute("TRUNCATE t RESTART IDENTITY")
        assert world.engine.writer.newest.n == newest + 1
        assert other.execute("INSERT INTO t (n) VALUES (3) RETURNING id").fetchone() == (1,)
        sql.execute("BEGIN")
        sql.execute("TRUNCATE t RESTART IDENTITY")
        sql.execute("ROLLBACK")
        assert other.execute("INSERT INTO t (n) VALUES (4) RETURNING id").fetchone() == (2,)
        sql.execute("TRUNCATE t CONTINUE IDENTITY")
        assert other.execute("INSERT INTO t (n) VALUES (5) RETURNING id").fetchone() == (3,)
        sql.execute("CREATE TABLE plain (n int)")
        sql.execute("INSERT INTO plain VALUES (1)")
        sql.execute("TRUNCATE plain RESTART IDENTITY")
        assert sql.execute("SELECT count(*) FROM plain").fetchone() == (0,)


def test_an_added_column_moves_no_other_sequence(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as sql:
        sql.execute("CREATE TABLE t (a int NOT NULL)")
        sql.execute("INSERT INTO t VALUES (10), (20), (30)")
        sql.execute("BEGIN")
        sql.execute("ALTER TABLE t ALTER a ADD GENERATED BY DEFAULT AS IDENTITY, ADD COLUMN b int GENERATED BY DEFAULT AS IDENTITY")
        assert sql.execute("INSERT INTO t DEFAULT VALUES RETURNING a, b").fetchone() == (1, 4)
        sql.execute("COMMIT")
        assert sql.execute("INSERT INTO t DEFAULT VALUES RETURNING a, b").fetchone() == (2, 5)


def test_values_after_alter_sequence_are_not_given_twice(tmp_path: Path) -> None:
    world = World(tmp_path / "lake", gateways=2)
    try:
        with connected(world.gateways[0]) as first, connected(world.gateways[1]) as second:
            first.execute("CREATE SEQUENCE s")
            world.together()
            before = taken(second, 3)
            first.execute("BEGIN")
            first.execute("ALTER SEQUENCE s CYCLE")
            inside = taken(first, 2)
            first.execute("COMMIT")
            world.together()
            values = [*before, *inside, *taken(second, 3), *taken(first, 3)]
            assert len(set(values)) == len(values)
            first.execute("BEGIN")
            first.execute("ALTER SEQUENCE s NO CYCLE")
            taken(second, RANGE_MAX)  # reserves more values
            with pytest.raises(psycopg.errors.SerializationFailure):
                first.execute("COMMIT")
    finally:
        world.close()


def test_an_identity_column_needs_no_privilege(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as sql:
        for text in (
            "CREATE ROLE ann SUPERUSER LOGIN",
            "CREATE ROLE clerk LOGIN",
            "CREATE TABLE t (id serial, n int)",
            "CREATE TABLE i (id int GENERATED ALWAYS AS IDENTITY, n int)",
            "GRANT INSERT ON t, i TO clerk",
            "SET ROLE clerk",
            "INSERT INTO i (n) VALUES (1)",
        ):
            sql.execute(text.encode())
        for text in ("INSERT INTO t (n) VALUES (1)", "SELECT nextval('t_id_seq')", "SELECT currval('i_id_seq')", "DROP SEQUENCE t_id_seq"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                sql.execute(text.encode())
        for text in ("RESET ROLE", "GRANT USAGE ON SEQUENCE t_id_seq TO clerk", "SET ROLE clerk", "INSERT INTO t (n) VALUES (1)"):
            sql.execute(text.encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            sql.execute("SELECT setval('t_id_seq', 5)")


def test_copy_gives_each_row_a_value(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as sql:
        sql.execute("CREATE SEQUENCE s")
        sql.execute("CREATE TABLE t (id int PRIMARY KEY DEFAULT nextval('s'), x text)")
        with sql.cursor().copy("COPY t (x) FROM STDIN") as copy:
            for number in range(2000):
                copy.write_row((f"row {number}",))
        rows = sql.execute("SELECT id, x FROM t ORDER BY id").fetchall()
        assert rows == [(number + 1, f"row {number}") for number in range(2000)]
        assert sql.execute("SELECT currval('s')").fetchone() == (2000,)
        sql.execute("CREATE TABLE c (id int DEFAULT CASE WHEN now() > '2000-01-01' THEN nextval('s') ELSE 0 END, x text)")
        with sql.cursor().copy("COPY c (x) FROM STDIN") as copy:
            copy.write_row(("a",))
            copy.write_row(("b",))
        sql.execute("INSERT INTO c (x) VALUES ('c')")
        assert sql.execute("SELECT id, x FROM c ORDER BY x").fetchall() == [(2001, "a"), (2002, "b"), (2003, "c")]


def test_the_name_may_change(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as sql:
        for text in (
            "CREATE SCHEMA other",
            "CREATE SEQUENCE s",
            "CREATE TABLE t (id int DEFAULT nextval('s'))",
            "ALTER SEQUENCE s RENAME TO r",
            "ALTER SEQUENCE r SET SCHEMA other",
            "ALTER SCHEMA other RENAME TO third",
            "INSERT INTO t VALUES (DEFAULT)",
        ):
            sql.execute(text.encode())
        assert sql.execute("SELECT currval('third.r')").fetchone() == (1,)
        (sequence,) = world.engine.writer.catalog.each(Sequence)
        assert (sequence.name, sequence.position >= 1) == ("r", True)
