"""Writes that read the relations of the schema `tailgate`, in blocks and outside."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.tables.world import World

TABLES = "SELECT name FROM tailgate.tables WHERE schema = 'public'"


@pytest.fixture
def sql(world: World) -> Iterator[psycopg.Connection]:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (name text PRIMARY KEY, n int)")
        yield connection


def names(sql: psycopg.Connection, table: str = "t") -> list[str]:
    return [name for (name,) in sql.execute(f"SELECT name FROM {table} ORDER BY 1").fetchall()]  # type: ignore[call-overload]


def test_writes(sql: psycopg.Connection) -> None:
    sql.execute(f"INSERT INTO t (name) {TABLES}")  # type: ignore[call-overload]
    assert names(sql) == ["t"]
    sql.execute("UPDATE t SET n = 1 FROM tailgate.tables o WHERE o.name = t.name")
    assert sql.execute("SELECT n FROM t").fetchall() == [(1,)]
    sql.execute("MERGE INTO t USING tailgate.tables o ON o.name = t.name WHEN MATCHED THEN UPDATE SET n = 2")
    assert sql.execute("SELECT n FROM t").fetchall() == [(2,)]
    sql.execute("DELETE FROM t USING tailgate.tables o WHERE o.name = t.name")
    assert names(sql) == []


@pytest.mark.parametrize("isolation", ["read committed", "serializable"])
def test_a_block(world: World, sql: psycopg.Connection, isolation: str) -> None:
    """A statement reads the present rows. COMMIT does not compare them."""
    with psycopg.connect(world.dsn, autocommit=True) as other, sql.transaction():
        sql.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}")  # type: ignore[call-overload]
        assert sql.execute(TABLES).fetchall() == [("t",)]  # type: ignore[call-overload]
        sql.execute(f"INSERT INTO t (name) {TABLES}")  # type: ignore[call-overload]
        assert sql.execute("SELECT t.name FROM t JOIN tailgate.tables USING (name)").fetchall() == [("t",)]
        sql.execute("CREATE TEMP TABLE tmp AS SELECT 'x' AS name")
        other.execute("CREATE TABLE u (a int)")
        both = f"SELECT name || '2' FROM ({TABLES}) o UNION ALL SELECT name FROM tmp"
        sql.execute(f"INSERT INTO t (name) {both}")  # type: ignore[call-overload]
    assert names(sql) in (["t", "t2", "x"], ["t", "t2", "u2", "x"])


def test_create_table_as(sql: psycopg.Connection) -> None:
    sql.execute(f"CREATE TABLE u AS {TABLES}")  # type: ignore[call-overload]
    assert names(sql, "u") == ["t"]
    sql.execute(f"CREATE TEMP TABLE tmp AS {TABLES}")  # type: ignore[call-overload]
    assert names(sql, "tmp") == ["t", "u"]
    with sql.transaction():
        sql.execute(f"CREATE TABLE w AS {TABLES}")  # type: ignore[call-overload]
    assert names(sql, "w")[:2] == ["t", "u"]
    sql.execute("CREATE TABLE l (LIKE tailgate.tables)")
    assert [c.name for c in sql.execute("SELECT * FROM l").description or ()] == ["schema", "name"]


def test_copy_and_cursors(sql: psycopg.Connection) -> None:
    with sql.cursor().copy("COPY (SELECT name FROM tailgate.tables) TO STDOUT") as copy:
        assert list(copy.rows()) == [("t",)]
    with sql.transaction():
        sql.execute(f"DECLARE c CURSOR FOR {TABLES}")  # type: ignore[call-overload]
        assert sql.execute("FETCH ALL c").fetchall() == [("t",)]
