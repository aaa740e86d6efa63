"""Changes of enum types leave tables writable: an expression of a table has no name or label without a meaning.

Other columns and parameters refuse these types.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.tables.world import World

GENERATED = "CREATE TABLE t (id int, m s.mood, low boolean GENERATED ALWAYS AS (m < 'ok'::s.mood) STORED)"


@pytest.fixture
def sql(tmp_path: Path) -> Iterator[psycopg.Connection]:
    world = World(tmp_path / "lake")
    try:
        with psycopg.connect(world.dsn, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA s")
            connection.execute("CREATE TYPE s.mood AS ENUM ('sad', 'ok', 'happy')")
            yield connection
    finally:
        world.close()


def definition(sql: psycopg.Connection, table: str) -> str:
    (row,) = sql.execute(f"SHOW CREATE TABLE {table}").fetchall()
    return str(row[-1])


@pytest.mark.parametrize("change", ["RENAME TO feeling", "SET SCHEMA public", "RENAME VALUE 'ok' TO 'fine'"])
@pytest.mark.parametrize("unique", ["UNIQUE ", ""])
def test_the_condition_of_an_index_names_the_type(sql: psycopg.Connection, change: str, unique: str) -> None:
    sql.execute("CREATE TABLE t (id int, m s.mood)")
    sql.execute(f"CREATE {unique}INDEX of_ok ON t (id) WHERE m = 'ok'::s.mood")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="index of_ok names"):
        sql.execute(f"ALTER TYPE s.mood {change}")
    sql.execute("INSERT INTO t VALUES (1, 'ok')")
    assert sql.execute("SELECT count(*) FROM pg_attribute WHERE attrelid = 'of_ok'::regclass").fetchone() == (1,)


@pytest.mark.parametrize("change", ["RENAME TO feeling", "SET SCHEMA public", "RENAME VALUE 'ok' TO 'fine'"])
def test_a_generation_expression_names_the_type(sql: psycopg.Connection, change: str) -> None:
    sql.execute(GENERATED)
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="table t names"):
        sql.execute(f"ALTER TYPE s.mood {change}")
    assert sql.execute("INSERT INTO t VALUES (1, 'sad') RETURNING low").fetchall() == [(True,)]
    sql.execute("ALTER TABLE t DROP COLUMN low")
    sql.execute(f"ALTER TYPE s.mood {change}")


@pytest.mark.parametrize("expression", ["DEFAULT 'ok'::s.mood", "CHECK (m <> 'ok'::s.mood)"])
def test_an_expression_names_the_schema(sql: psycopg.Connection, expression: str) -> None:
    sql.execute(f"CREATE TABLE s.t (id int, m s.mood {expression})")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match=r"an expression of table s\.t names"):
        sql.execute("ALTER SCHEMA s RENAME TO r")
    sql.execute("INSERT INTO s.t (id) VALUES (1)")


def test_another_name_of_the_schema(sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE t (id int, m s.mood DEFAULT 'ok')")
    sql.execute("CREATE TABLE s.u (m s.mood, ms s.mood[])")
    sql.execute("ALTER SCHEMA s RENAME TO r")
    assert definition(sql, "t") == "CREATE TABLE t (id integer, m r.mood DEFAULT 'ok')"
    assert definition(sql, "r.u") == "CREATE TABLE r.u (m r.mood, ms r.mood[])"
    assert sql.execute("INSERT INTO t VALUES (1) RETURNING m").fetchall() == [("ok",)]
    sql.execute("INSERT INTO r.u VALUES ('sad', '{ok}')")


def test_drop_of_the_type_of_a_primary_key(sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE t (m s.mood PRIMARY KEY, n int)")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="dropping the primary key of table t with its type is not supported"):
        sql.execute("DROP TYPE s.mood CASCADE")
    sql.execute("ALTER TABLE t DROP COLUMN m")
    sql.execute("DROP TYPE s.mood CASCADE")


def test_drop_of_the_type_of_a_table_that_a_function_reads(sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE t (m s.mood, n int)")
    sql.execute("CREATE FUNCTION f() RETURNS bigint LANGUAGE SQL AS 'SELECT count(*) FROM t'")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="cannot drop column m of table t") as error:
        sql.execute("DROP TYPE s.mood CASCADE")
    assert error.value.diag.message_detail == "function f() depends on column m of table t"
    assert sql.execute("SELECT f(), 'ok'::s.mood").fetchall() == [(0, "ok")]


def test_privileges(sql: psycopg.Connection) -> None:
    """The access lists and errors are PostgreSQL's."""
    acl = "SELECT array_to_string(typacl, ',') FROM pg_type WHERE typname IN ('mood', 'cents') ORDER BY typname DESC"
    sql.execute("CREATE ROLE ann")
    sql.execute("CREATE DOMAIN cents AS int")
    assert sql.execute(acl).fetchall() == [(None,), (None,)]
    sql.execute("GRANT USAGE ON TYPE s.mood TO ann")
    sql.execute("GRANT ALL PRIVILEGES ON DOMAIN cents TO PUBLIC, ann")
    granted = "=U/tailgate,tailgate=U/tailgate,ann=U/tailgate"
    assert sql.execute(acl).fetchall() == [(granted,), (granted,)]
    with pytest.raises(psycopg.errors.DependentObjectsStillExist) as error:
        sql.execute("DROP ROLE ann")
    assert error.value.diag.message_detail == "privileges for type s.mood\nprivileges for type cents"
    sql.execute("REVOKE USAGE ON TYPE s.mood, cents FROM ann CASCADE")
    sql.execute("DROP ROLE ann")
    sql.execute("REVOKE USAGE ON TYPE cents FROM PUBLIC")
    assert sql.execute(acl).fetchall() == [("=U/tailgate,tailgate=U/tailgate",), ("tailgate=U/tailgate",)]
    for statement, sqlstate, message in (
        ("GRANT SELECT ON TYPE cents TO tailgate", "0LP01", "invalid privilege type SELECT for type"),
        ("GRANT CREATE ON DOMAIN cents TO tailgate", "0LP01", "invalid privilege type CREATE for domain"),
        ("GRANT USAGE ON DOMAIN s.mood TO tailgate", "42809", '"mood" is not a domain'),
        ("GRANT USAGE ON DOMAIN nosuch TO tailgate", "42704", 'type "nosuch" does not exist'),
    ):
        with pytest.raises(psycopg.Error) as refused:
            sql.execute(statement)
        assert (refused.value.sqlstate, refused.value.diag.message_primary) == (sqlstate, message)
    sql.execute("REVOKE USAGE ON TYPE s.mood, cents FROM PUBLIC")
    assert sql.execute(acl).fetchall() == [("tailgate=U/tailgate",), ("tailgate=U/tailgate",)]


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("CREATE SOURCE o (id int, m {type}) FROM KAFKA BROKER '127.0.0.1:1' TOPIC 'o' FORMAT JSON", "a column"),
        ("CREATE FUNCTION f(m {type}) RETURNS int LANGUAGE SQL RETURN 1", "an argument"),
        ("CREATE FUNCTION f(i int) RETURNS {type} LANGUAGE SQL RETURN NULL", "a result"),
        ("CREATE FUNCTION f(i int) RETURNS TABLE (a int, b {type}) LANGUAGE SQL AS 'SELECT 1, NULL'", "a result"),
        ("CREATE FUNCTION f(i int) RETURNS SETOF {type} LANGUAGE SQL AS 'SELECT NULL'", "a result"),
        ("CREATE ENDPOINT e GET '/e' (:m {type}) AS SELECT 1 AS a WHERE :m IS NULL", "a parameter"),
        ("CREATE ENDPOINT e GET '/e' (:m {type} DEFAULT 'ok') AS SELECT 1 AS a WHERE :m IS NULL", "a parameter"),
    ],
)
@pytest.mark.parametrize(("type", "error"), [("s.mood", "0A000"), ("s.mood[]", "0A000"), ("s.nosuch", "42704"), ("nosuch[]", "42704")])
def test_refused(sql: psycopg.Connection, statement: str, what: str, type: str, error: str) -> None:
    text = statement.format(type=type)
    with pytest.raises(psycopg.Error) as refused:
        sql.execute(text)
    message = f"{what} of type {type} is not supported" if error == "0A000" else f'type "{type}" does not exist'
    if what == "an argument" and error != "0A000":
        message = message.replace('"', "")  # as PostgreSQL does
    assert (refused.value.sqlstate, refused.value.diag.message_primary) == (error, message)
    position = None if "FUNCTION" in statement else str(text.index(type) + 1)  # PostgreSQL reports none there, either
    assert refused.value.diag.statement_position == position
