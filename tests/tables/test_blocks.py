"""Transaction blocks that change the catalog: other sessions see all of a block or nothing, also if the engine is killed.

`blocks.sql` compares what one session sees with PostgreSQL.
"""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tailgate.gateway.execute.monitoring import system_relations
from tailgate.gateway.execute.tables import changes
from tailgate.lake.folder import Lake
from tests.tables.world import Engine, Served, World, engine_process

STEPS = (
    "block.entered:1",  # the rows are in the inbox, and not committed
    "entry.half:2",  # halfway through writing the log entry; the first one is that of the epoch
    "entry.link:2",  # before its link
    "entry.linked:2",  # after its link
)
COMMITTED = ("entry.linked:2",)  # steps after which the block is committed


def connect(world: World) -> psycopg.Connection[Any]:
    return psycopg.connect(world.dsn, autocommit=True)


def names(connection: psycopg.Connection[Any]) -> list[str]:
    return [name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")]


def test_other_sessions_see_nothing_before_the_commit(world: World) -> None:
    with connect(world) as first, connect(world) as second:
        first.execute("CREATE TABLE t (a int)")
        first.execute("BEGIN")
        first.execute("CREATE TABLE u AS SELECT 1 AS b")
        first.execute("INSERT INTO t VALUES (1)")
        first.execute("ALTER TABLE t RENAME TO t_old")
        assert names(second) == ["t"]
        assert second.execute("SELECT * FROM t").fetchall() == []
        first.execute("COMMIT")
        assert names(second) == ["t_old", "u"]
        assert second.execute("SELECT a, b FROM t_old, u").fetchall() == [(1, 1)]


def test_two_blocks_create_the_same_name(world: World) -> None:
    with connect(world) as first, connect(world) as second:
        for connection in (first, second):
            connection.execute("BEGIN")
            connection.execute("CREATE TABLE t (a int)")
            connection.execute("INSERT INTO t VALUES (1)")
        first.execute("COMMIT")
        with pytest.raises(errors.DuplicateTable, match='relation "t" already exists'):
            second.execute("COMMIT")
        assert second.execute("SELECT * FROM t").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE t",
        "ALTER TABLE t RENAME TO w",
        "ALTER TABLE t ADD COLUMN n int",
        "CREATE VIEW v AS SELECT a FROM t",
        "COMMENT ON TABLE t IS 'x'",
    ],
)
@pytest.mark.parametrize("change", ["DROP TABLE t", "ALTER TABLE t RENAME TO u", "ALTER TABLE t ADD COLUMN m int"])
def test_an_object_changed_meanwhile(world: World, change: str, statement: str) -> None:
    with connect(world) as first, connect(world) as second:
        first.execute("CREATE TABLE t (a int)")
        first.execute("BEGIN")
        first.execute(change)
        first.execute("CREATE TABLE other (a int)")
        second.execute(statement)
        with pytest.raises(errors.SerializationFailure):
            first.execute("COMMIT")
        assert "other" not in names(first)
        first.execute("CREATE TABLE other (a int)")


def test_a_view_over_a_table_that_is_dropped_meanwhile(world: World) -> None:
    with connect(world) as first, connect(world) as second:
        first.execute("CREATE TABLE t (a int)")
        first.execute("BEGIN")
        first.execute("CREATE VIEW v AS SELECT a FROM t")
        second.execute("DROP TABLE t")
        with pytest.raises(errors.SerializationFailure):
            first.execute("COMMIT")
        with pytest.raises(errors.UndefinedTable):
            first.execute("SELECT * FROM v")


@pytest.mark.parametrize("rows", ["", "INSERT INTO t VALUES (1)"])
@pytest.mark.parametrize(
    "statement", ["CREATE TABLE u AS SELECT a FROM t", "INSERT INTO t VALUES (2)", "INSERT INTO other SELECT a FROM t"]
)
def test_a_table_that_is_replaced_meanwhile(world: World, statement: str, rows: str) -> None:
    """Rows of the table that has gone must not be committed together with a change of the new table."""
    with connect(world) as first, connect(world) as second:
        first.execute(f"CREATE TABLE t (a int); CREATE TABLE other (a int); {rows}")
        first.execute("BEGIN")
        first.execute(statement)
        second.execute("DROP TABLE t; CREATE TABLE t (a int)")
        first.execute("ALTER TABLE t RENAME TO w")
        with pytest.raises(errors.SerializationFailure):
            first.execute("COMMIT")
        assert names(first) == ["other", "t"]


def test_a_text_of_several_statements(world: World) -> None:
    """Outside a block, a statement that changes the catalog commits the statements before it; later statements read at a new time."""
    with connect(world) as connection:
        connection.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
        connection.execute("INSERT INTO t VALUES (2); CREATE TABLE u AS SELECT a FROM t; INSERT INTO u SELECT a + 10 FROM t")
        assert connection.execute("SELECT a FROM u ORDER BY a").fetchall() == [(1,), (2,), (11,), (12,)]


def test_a_schema_that_is_dropped_meanwhile(world: World) -> None:
    with connect(world) as first, connect(world) as second:
        first.execute("CREATE SCHEMA s")
        first.execute("BEGIN")
        first.execute("CREATE TABLE s.t (a int)")
        second.execute("DROP SCHEMA s")
        with pytest.raises(errors.SerializationFailure):
            first.execute("COMMIT")
        first.execute("CREATE SCHEMA s")
        first.execute("BEGIN")
        first.execute("DROP SCHEMA s")
        second.execute("CREATE TABLE s.t (a int)")
        with pytest.raises(errors.SerializationFailure):
            first.execute("COMMIT")
        assert second.execute("SELECT * FROM s.t").fetchall() == []


def test_privileges_on_different_objects_do_not_conflict(world: World) -> None:
    with connect(world) as first, connect(world) as second:
        first.execute("CREATE ROLE reader")
        for number, connection in enumerate((first, second)):
            connection.execute("BEGIN")
            connection.execute(f"CREATE TABLE t{number} (a int)")
            connection.execute(f"GRANT SELECT ON t{number} TO reader")
        first.execute("COMMIT")
        second.execute("COMMIT")
        query = "SELECT has_table_privilege('reader', 't0', 'SELECT'), has_table_privilege('reader', 't1', 'SELECT')"
        assert first.execute(query).fetchall() == [(True, True)]


def test_rows_conflict_as_in_other_blocks(world: World) -> None:
    with connect(world) as first, connect(world) as second:
        first.execute("CREATE TABLE t (a int PRIMARY KEY)")
        first.execute("BEGIN")
        first.execute("INSERT INTO t VALUES (1)")
        first.execute("CREATE TABLE u (a int)")
        second.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(errors.SerializationFailure):
            first.execute("COMMIT")
        assert names(first) == ["t"]
        first.execute("BEGIN")
        first.execute("INSERT INTO t VALUES (2)")
        first.execute("CREATE TABLE u (a int)")
        first.execute("COMMIT")
        with pytest.raises(errors.UniqueViolation):  # the rows of the block count for later writes
            second.execute("INSERT INTO t VALUES (2)")


def test_a_table_that_is_dropped_while_a_statement_of_a_block_begins(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    unchanged = system_relations.changes

    async def after_drop(*arguments: Any) -> Any:
        """Drops the table between the binding of the statement and its snapshot."""
        monkeypatch.undo()
        await asyncio.to_thread(drop)
        return await unchanged(*arguments)

    def drop() -> None:
        with connect(world) as other:
            other.execute("DROP TABLE t")

    with connect(world) as connection:
        connection.execute("CREATE TABLE t (n int)")
        connection.execute("BEGIN")
        monkeypatch.setattr(system_relations, "changes", after_drop)
        with pytest.raises(errors.SerializationFailure):
            connection.execute("CREATE TABLE copy AS SELECT n FROM t")


def test_many_sessions_create_rename_and_drop_the_same_names(world: World) -> None:
    """Each block replaces a table by a new one, as dbt does. Every block is committed once or fails with 40001 or 42P07."""
    with connect(world) as connection:
        connection.execute("CREATE TABLE t AS SELECT 0 AS n")
    committed: list[int] = []
    unexpected: list[BaseException] = []

    def replace(number: int) -> None:
        with connect(world) as connection:
            for _ in range(4):
                try:
                    with connection.transaction():
                        connection.execute("CREATE TABLE t_tmp AS SELECT n + 1 AS n FROM t")
                        connection.execute("ALTER TABLE t RENAME TO t_old")
                        connection.execute("ALTER TABLE t_tmp RENAME TO t")
                        connection.execute("DROP TABLE t_old")
                    committed.append(number)
                except (errors.SerializationFailure, errors.DuplicateTable):
                    pass
                except BaseException as error:  # noqa: BLE001  # reported below
                    unexpected.append(error)

    threads = [threading.Thread(target=replace, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not unexpected
    with connect(world) as connection:
        assert names(connection) == ["t"]
        assert connection.execute("SELECT n FROM t").fetchall() == [(len(committed),)]
    assert committed


def test_what_a_block_may_not_contain(world: World) -> None:
    with connect(world) as connection:
        connection.execute("CREATE TABLE t (a int)")
        for statement in ("CREATE ROLE r", "CREATE SUBSCRIPTION s FROM t", "CREATE SECRET x AS 'y'", "DROP SOURCE t", "DROP ROLE r"):
            with pytest.raises(errors.ActiveSqlTransaction), connection.transaction():
                connection.execute(statement)
        with connection.transaction():
            connection.execute("CREATE TABLE u (a int)")
            with pytest.raises(errors.FeatureNotSupported), connection.transaction():
                connection.execute("TAIL u")


def test_what_a_query_of_several_statements_commits_first(world: World) -> None:
    """A statement that a block may not contain commits those before it, and is not undone with those after it."""
    with connect(world) as connection:
        with pytest.raises(errors.DivisionByZero):
            connection.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1); CREATE ROLE r; CREATE TABLE u (a int); SELECT 1 / 0")
        assert names(connection) == ["t"]
        assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]
        connection.execute("DROP ROLE r; CREATE TABLE u (a int)")
        with pytest.raises(errors.UndefinedObject):
            connection.execute("CREATE TABLE w (a int); DROP ROLE r; CREATE TABLE x (a int)")
        assert names(connection) == ["t", "u", "w"]


def test_killed_at_every_step_of_a_commit(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    running = Engine(Lake.open(lake.path))
    served = Served(lake)
    try:
        with psycopg.connect(served.dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (a int PRIMARY KEY)")
        for number, step in enumerate(STEPS):
            running.close()
            child = engine_process(lake.path, step)
            child.wait_ready(child.announced, timedelta(seconds=60))
            with psycopg.connect(served.dsn, autocommit=True) as connection:
                connection.execute("BEGIN")
                connection.execute("INSERT INTO t VALUES (%s)", (number,))
                connection.execute(f"CREATE TABLE u{number} AS SELECT * FROM t")
                connection.execute(f"CREATE VIEW v{number} AS SELECT * FROM u{number}")
                with pytest.raises((psycopg.OperationalError, errors.SystemError)):
                    connection.execute("COMMIT")
            assert child.wait(timedelta(seconds=120)) is not None, step
            running = Engine(Lake.open(lake.path))
            with psycopg.connect(served.dsn, autocommit=True) as connection:
                connection.execute("INSERT INTO t VALUES (%s)", (100 + number,))  # also waits for the new engine's entries
                is_there = connection.execute("SELECT count(*) FROM t WHERE a = %s", (number,)).fetchone() == (1,)
                assert is_there == (step in COMMITTED), step
                assert (f"u{number}" in names(connection)) == is_there
                if is_there:
                    assert (number,) in connection.execute(f"SELECT a FROM v{number}").fetchall()
    finally:
        served.close()
        running.close()


def test_a_table_that_is_committed_while_a_block_creates_another(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of CREATE TABLE AS belong to the table of the block."""
    with connect(world) as first, connect(world) as second:
        define = changes.define

        async def defined_late(session: Any, bound: Any, text: str) -> Any:
            await asyncio.to_thread(second.execute, "CREATE TABLE other (a text)")
            return await define(session, bound, text)

        monkeypatch.setattr(changes, "define", defined_late)
        first.execute("BEGIN")
        first.execute("CREATE TABLE own AS SELECT 1 AS n")
        first.execute("COMMIT")
        assert first.execute("SELECT n FROM own").fetchall() == [(1,)]
        assert first.execute("SELECT * FROM other").fetchall() == []
