"""Temporary tables: COPY, limits, concurrency, and other sessions. `temporary.sql` compares the statements with PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors

from tailgate.gateway.session import temporary_tables
from tests.tables.world import World


@pytest.fixture
def sql(world: World) -> Iterator[psycopg.Connection]:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, n int)")
        connection.execute("INSERT INTO t SELECT g, g * 10 FROM generate_series(1, 5) g")
        yield connection


def test_copy(sql: psycopg.Connection) -> None:
    sql.execute("CREATE TEMP TABLE tmp (id int PRIMARY KEY, name text)")
    cursor = sql.cursor()
    with cursor.copy("COPY tmp FROM STDIN") as copy:
        copy.write_row((1, "a"))
        copy.write_row((2, None))
    with cursor.copy("COPY tmp TO STDOUT") as copy:
        assert sorted(copy.rows()) == [("1", "a"), ("2", None)]
    with pytest.raises(errors.UniqueViolation), cursor.copy("COPY tmp FROM STDIN") as copy:
        copy.write_row((2, "b"))


def test_other_sessions_have_other_tables(world: World, sql: psycopg.Connection) -> None:
    sql.execute("CREATE TEMP TABLE tmp AS SELECT 1 AS a")
    with psycopg.connect(world.dsn, autocommit=True) as other:
        with pytest.raises(errors.UndefinedTable):
            other.execute("SELECT * FROM tmp")
        other.execute("CREATE TEMP TABLE tmp AS SELECT 2 AS a")
        assert other.execute("SELECT * FROM tmp").fetchall() == [(2,)]
    assert sql.execute("SELECT * FROM tmp").fetchall() == [(1,)]
    sql.execute("DISCARD ALL")
    with pytest.raises(errors.UndefinedTable):
        sql.execute("SELECT * FROM tmp")


def test_a_type_with_the_name_of_a_temporary_table(world: World, sql: psycopg.Connection) -> None:
    """Statements about types are executed by the engine."""
    sql.execute("CREATE TYPE tmp AS ENUM ('a', 'b')")
    sql.execute("CREATE TEMP TABLE tmp (a int)")
    sql.execute("COMMENT ON TYPE tmp IS 'of letters'")
    with psycopg.connect(world.dsn, autocommit=True) as other:
        comment = "SELECT obj_description(oid, 'pg_type') FROM pg_type WHERE typname = 'tmp'"
        assert other.execute(comment).fetchall() == [("of letters",)]
        sql.execute("DROP TYPE tmp")
        assert other.execute(comment).fetchall() == []
    assert sql.execute("SELECT * FROM tmp").fetchall() == []


def test_prepared_statements_and_pipelines(sql: psycopg.Connection) -> None:
    sql.execute("CREATE TEMP TABLE tmp (id int PRIMARY KEY, n int)")
    sql.cursor().executemany("INSERT INTO tmp VALUES (%s, %s)", [(i, i * i) for i in range(20)])
    for i in range(8):
        assert sql.execute("SELECT n FROM tmp WHERE id = %s", (i,), prepare=True).fetchone() == (i * i,)
        sql.execute("UPDATE tmp SET n = n + 1 WHERE id = %s", (i,), prepare=True)
    assert sql.execute("SELECT sum(n) FROM tmp").fetchone() == (sum(i * i for i in range(20)) + 8,)
    with sql.pipeline():
        sql.execute("DELETE FROM tmp WHERE id > %s", (5,))
        sql.execute("INSERT INTO t SELECT id + 100, n FROM tmp")
    assert sql.execute("SELECT count(*) FROM t").fetchone() == (11,)


def test_rows_and_definitions_of_both_kinds_in_one_block(sql: psycopg.Connection) -> None:
    with sql.transaction():
        sql.execute("CREATE TEMP TABLE tmp ON COMMIT DROP AS SELECT * FROM t WHERE n > 20")
        sql.execute("CREATE TABLE kept AS SELECT * FROM tmp")
        sql.execute("SAVEPOINT one")
        sql.execute("DELETE FROM tmp")
        with pytest.raises(errors.DivisionByZero):
            sql.execute("INSERT INTO kept SELECT 1 / 0, 1")
        sql.execute("ROLLBACK TO one")
        sql.execute("DELETE FROM t USING tmp WHERE t.id = tmp.id")
        sql.execute("INSERT INTO t (id, n) SELECT id, n + 1 FROM tmp")
    assert sql.execute("SELECT id, n FROM t ORDER BY id").fetchall() == [(1, 10), (2, 20), (3, 31), (4, 41), (5, 51)]
    assert sql.execute("SELECT count(*) FROM kept").fetchone() == (3,)
    with pytest.raises(errors.UndefinedTable):
        sql.execute("SELECT * FROM tmp")


def test_a_block_that_copied_rows_that_have_changed_fails(world: World, sql: psycopg.Connection) -> None:
    """The rows that CREATE TEMPORARY TABLE AS has read are checked by COMMIT if the block writes."""
    with psycopg.connect(world.dsn, autocommit=True) as other:
        sql.execute("CREATE TABLE target (n int)")
        sql.execute("BEGIN")
        sql.execute("CREATE TEMP TABLE tmp AS SELECT n FROM t")
        other.execute("UPDATE t SET n = 0 WHERE id = 1")
        sql.execute("INSERT INTO target SELECT * FROM tmp")
        with pytest.raises(errors.SerializationFailure):
            sql.execute("COMMIT")
        with pytest.raises(errors.UndefinedTable):
            sql.execute("SELECT * FROM tmp")


def test_the_rows_of_a_session_are_limited(sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary_tables, "TEMPORARY_BYTES_MAX", 100_000)
    sql.execute("CREATE TEMP TABLE tmp (a bigint)")
    with pytest.raises(errors.ConfigurationLimitExceeded):
        sql.execute("INSERT INTO tmp SELECT g FROM generate_series(1, 50000) g")
    with pytest.raises(errors.ConfigurationLimitExceeded):
        sql.execute("CREATE TEMP TABLE large AS SELECT g FROM generate_series(1, 50000) g")
    with pytest.raises(errors.UndefinedTable):
        sql.execute("SELECT * FROM large")
    sql.execute("INSERT INTO tmp VALUES (1)")
    assert sql.execute("SELECT * FROM tmp").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE MATERIALIZED VIEW mv AS SELECT * FROM tmp",
        "CREATE TEMP TABLE bad (id int) WITH (RETAIN HISTORY FOR '1 h')",
        "COPY (TAIL tmp) TO STDOUT",
        "COPY (TAIL (SELECT a + 1 FROM tmp)) TO STDOUT",
        "CREATE SUBSCRIPTION s FROM tmp",
        "GRANT SELECT ON tmp TO public",
    ],
)
def test_what_is_refused(sql: psycopg.Connection, statement: str) -> None:
    sql.execute("CREATE TEMP TABLE tmp (a int, id serial)")
    with pytest.raises(errors.FeatureNotSupported):
        sql.execute(statement)
