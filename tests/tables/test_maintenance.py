"""REFRESH MATERIALIZED VIEW, VACUUM, LOCK TABLE and others: their waits, and privileges."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors

from tests.tables.world import World
from tests.wire.answers import answer


@pytest.fixture
def sql(world: World) -> Iterator[psycopg.Connection]:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, n int)")
        connection.execute("CREATE MATERIALIZED VIEW mv AS SELECT n FROM t")
        yield connection


def test_refresh_waits_for_rows_that_are_durable(world: World, sql: psycopg.Connection) -> None:
    """With synchronous_commit = off, a write answers before its tick."""
    sql.execute("SET synchronous_commit = off")
    world.engine.pause()
    sql.execute("INSERT INTO t VALUES (1, 2)")
    sql.execute("SET statement_timeout = 300")
    with pytest.raises(errors.QueryCanceled):
        sql.execute("REFRESH MATERIALIZED VIEW mv")
    world.engine.resume()
    sql.execute("SET statement_timeout = 0")
    assert sql.execute("REFRESH MATERIALIZED VIEW mv").statusmessage == "REFRESH MATERIALIZED VIEW"
    assert sql.execute("SELECT * FROM t").fetchall() == [(1, 2)]


def test_refresh_concurrently_needs_a_unique_index(sql: psycopg.Connection) -> None:
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match=r'cannot refresh materialized view "public\.mv" concurrently'):
        sql.execute("REFRESH MATERIALIZED VIEW CONCURRENTLY mv")
    sql.execute("CREATE UNIQUE INDEX ON mv (n)")
    sql.execute("REFRESH MATERIALIZED VIEW CONCURRENTLY mv WITH DATA")
    with pytest.raises(errors.SyntaxError, match="CONCURRENTLY and WITH NO DATA options cannot be used together"):
        sql.execute("REFRESH MATERIALIZED VIEW CONCURRENTLY mv WITH NO DATA")
    with pytest.raises(errors.FeatureNotSupported, match="WITH NO DATA is not supported"):
        sql.execute("REFRESH MATERIALIZED VIEW mv WITH NO DATA")
    sql.execute("BEGIN READ ONLY")
    with pytest.raises(errors.ReadOnlySqlTransaction):
        sql.execute("REFRESH MATERIALIZED VIEW mv")


@pytest.mark.parametrize(("mode", "conflicts"), [("ROW EXCLUSIVE", False), ("SHARE", True), ("ACCESS EXCLUSIVE", True)])
def test_a_lock_that_excludes_writers_is_checked_by_commit(world: World, sql: psycopg.Connection, mode: str, conflicts: bool) -> None:
    sql.execute("CREATE TABLE log (n int)")
    with psycopg.connect(world.dsn, autocommit=True) as other:
        sql.execute("BEGIN")
        sql.execute(f"LOCK TABLE t IN {mode} MODE")
        other.execute("INSERT INTO t VALUES (1, 1)")
        sql.execute("INSERT INTO log VALUES (1)")
        if conflicts:
            with pytest.raises(errors.SerializationFailure):
                sql.execute("COMMIT")
        else:
            sql.execute("COMMIT")
    assert sql.execute("SELECT count(*) FROM log").fetchone() == (0 if conflicts else 1,)


def test_locks_are_shown(world: World, postgres: str, sql: psycopg.Connection) -> None:
    locks = (
        "SELECT locktype, mode, granted, relation = 'locked'::regclass, pid = pg_backend_pid() FROM pg_locks "
        "WHERE locktype = 'virtualxid' OR relation = 'locked'::regclass ORDER BY mode"
    )
    steps = (
        *("DROP TABLE IF EXISTS locked", "CREATE TABLE locked (n int)", locks, "BEGIN", locks, "LOCK TABLE locked IN SHARE MODE", locks),
        *("INSERT INTO locked VALUES (1)", locks, "SAVEPOINT s", "LOCK TABLE locked", locks),
        *("ROLLBACK TO s", locks, "LOCK TABLE locked", locks, "COMMIT", locks, "DROP TABLE locked"),
    )
    with psycopg.connect(postgres, autocommit=True) as theirs:
        theirs.execute("SET client_min_messages = error")
        for step in steps:
            assert answer(sql, step) == answer(theirs, step), step


def test_privileges(world: World, sql: psycopg.Connection) -> None:
    sql.execute("CREATE ROLE ann LOGIN SUPERUSER")
    sql.execute("CREATE ROLE bob LOGIN")
    sql.execute("CREATE INDEX t_n ON t (n)")
    with psycopg.connect(world.dsn.replace("user=ann", "user=bob"), autocommit=True) as other:
        for statement, message in (
            ("REFRESH MATERIALIZED VIEW mv", "must be owner of materialized view mv"),
            ("REINDEX TABLE t", "must be owner of table t"),
            ("REINDEX INDEX t_n", "must be owner of index t_n"),
            ("REINDEX SCHEMA public", "must be owner of schema public"),
            ("REINDEX DATABASE shop", "must be owner of database shop"),
            ("CLUSTER t USING t_n", "must be owner of table t"),
            ("CHECKPOINT", "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT"),
        ):
            with pytest.raises(errors.InsufficientPrivilege, match=message):
                other.execute(statement)
        notices: list[str] = []
        other.add_notice_handler(lambda diagnostic: notices.append(f"{diagnostic.severity}: {diagnostic.message_primary}"))
        assert other.execute("VACUUM t, t_n").statusmessage == "VACUUM"
        assert other.execute("ANALYZE t").statusmessage == "ANALYZE"
        assert notices == [
            'WARNING: skipping "t" --- only table or database owner can vacuum it',
            'WARNING: skipping "t_n" --- only table or database owner can vacuum it',
            'WARNING: skipping "t" --- only table or database owner can analyze it',
        ]
        for granted, allowed, refused in (
            ("SELECT", "ACCESS SHARE", "ROW EXCLUSIVE"),
            ("INSERT", "ROW EXCLUSIVE", "SHARE"),
            ("UPDATE", "ACCESS EXCLUSIVE", None),
        ):
            sql.execute(f"GRANT {granted} ON t TO bob")
            with other.transaction():
                other.execute(f"LOCK TABLE t IN {allowed} MODE")
            if refused is not None:
                with pytest.raises(errors.InsufficientPrivilege, match="permission denied for table t"), other.transaction():
                    other.execute(f"LOCK TABLE t IN {refused} MODE")
