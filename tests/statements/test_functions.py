"""Functions in maintained views.

Their results are compared with PostgreSQL in tests/tables/functions.sql.
"""

from __future__ import annotations

import subprocess
from typing import Any

import psycopg
import pytest

from tailgate.lake.catalog import Catalog, Change, Table
from tailgate.lake.errors import TailgateError
from tailgate.sql.bind import bind_query
from tailgate.sql.statements import CreateView, parse
from tests.statements.conftest import World


def rows(connection: psycopg.Connection[Any], relation: str) -> list[tuple[Any, ...]]:
    return sorted(connection.execute(f"SELECT * FROM {relation}").fetchall())  # type: ignore[call-overload,no-any-return]


@pytest.fixture
def parts(sql: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    sql.execute("CREATE TABLE parts (id int PRIMARY KEY, name text, n int)")
    sql.execute("INSERT INTO parts VALUES (1, 'abc', 5), (2, 'cac', 10)")
    sql.execute("CREATE FUNCTION count_char(s text, c text) RETURNS bigint LANGUAGE SQL RETURN length(s) - length(replace(s, c, ''))")
    sql.execute("CREATE FUNCTION above(low int) RETURNS bigint LANGUAGE SQL AS $$ SELECT count(*) FROM parts WHERE n > low $$")
    return sql


@pytest.mark.spark
def test_views_are_kept_up_to_date(parts: psycopg.Connection[Any], world: World) -> None:
    parts.execute(
        "CREATE FUNCTION more(low int) RETURNS TABLE (i int, m int) LANGUAGE SQL STRICT AS $$ SELECT id, n FROM parts WHERE n > low $$"
    )
    parts.execute("CREATE MATERIALIZED VIEW cs AS SELECT id, count_char(name, 'c') AS c, above(n) AS a FROM parts")
    parts.execute("CREATE MATERIALIZED VIEW pairs AS SELECT p.id, m.i FROM parts p, more(p.n) m")
    assert (rows(parts, "cs"), rows(parts, "pairs")) == ([(1, 1, 1), (2, 2, 0)], [(1, 2)])
    parts.execute("INSERT INTO parts VALUES (3, 'ccc', 20), (4, NULL, NULL)")
    assert rows(parts, "cs") == [(1, 1, 2), (2, 2, 1), (3, 3, 0), (4, None, 0)]
    assert rows(parts, "pairs") == [(1, 2), (1, 3), (2, 3)]
    parts.execute("UPDATE parts SET n = 1 WHERE id = 2")
    assert rows(parts, "pairs") == [(1, 3), (2, 1), (2, 3)]
    # A new definition: views that call it are backfilled as replacements and switch with it.
    before = world.lake.catalog().relation("cs").id
    parts.execute(
        "CREATE OR REPLACE FUNCTION above(low int) RETURNS bigint LANGUAGE SQL AS $$ SELECT -count(*) FROM parts WHERE n > low $$"
    )
    assert rows(parts, "cs") == [(1, 1, -1), (2, 2, -2), (3, 3, 0), (4, None, 0)]
    parts.execute("DELETE FROM parts WHERE id = 3")
    assert rows(parts, "cs") == [(1, 1, 0), (2, 2, -1), (4, None, 0)]
    assert world.lake.catalog().relation("cs").id == before
    assert parts.execute("SELECT above(0)").fetchall() == [(-2,)]


@pytest.mark.spark
def test_callers_of_a_function_depend_on_it(parts: psycopg.Connection[Any]) -> None:
    parts.execute("CREATE FUNCTION twice(low int) RETURNS bigint LANGUAGE SQL AS $$ SELECT 2 * above(low) $$")
    parts.execute("CREATE MATERIALIZED VIEW cs AS SELECT twice(id) AS t FROM parts")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist) as error:
        parts.execute("DROP FUNCTION above")
    assert error.value.diag.message_primary == "cannot drop function above(integer) because other objects depend on it"
    detail = "function twice(integer) depends on function above(integer)\nmaterialized view cs depends on function twice(integer)"
    assert error.value.diag.message_detail == detail
    with pytest.raises(psycopg.errors.DependentObjectsStillExist) as error:
        parts.execute("DROP TABLE parts")
    assert "function above(integer) depends on table parts" in (error.value.diag.message_detail or "")
    # A rename changes the bodies of functions.
    parts.execute("ALTER TABLE parts RENAME TO pieces")
    assert parts.execute("SHOW CREATE FUNCTION above").fetchall() == [
        (
            "above(integer)",
            "CREATE FUNCTION above(low int) RETURNS bigint LANGUAGE SQL AS $$ SELECT count(*) FROM pieces AS parts WHERE n > low $$",
        )
    ]
    assert rows(parts, "cs") == [(4,), (4,)]
    assert parts.execute("SELECT twice(5)").fetchall() == [(2,)]
    assert parts.execute("SHOW FUNCTIONS LIKE 'twi%'").fetchall() == [("twice", "low integer", "bigint")]
    parts.execute("DROP FUNCTION above(int) CASCADE")
    with pytest.raises(psycopg.errors.UndefinedTable):
        parts.execute("SELECT * FROM cs")
    parts.execute("DROP TABLE pieces")


@pytest.mark.spark
def test_psql_lists_them(parts: psycopg.Connection[Any], world: World) -> None:
    parts.execute("COMMENT ON FUNCTION count_char(text, text) IS 'how often c is in s'")
    words = dict(w.split("=") for w in world.served.dsn.split())

    def psql(command: str) -> str:
        typed = ["psql", "-XAt", "-h", words["host"], "-p", words["port"], "-U", words["user"], "-d", words["dbname"], "-c", command]
        return subprocess.run(typed, capture_output=True, text=True, check=True, timeout=30).stdout

    assert psql("\\df") == "public|above|bigint|low integer|func\npublic|count_char|bigint|s text, c text|func\n"
    assert "how often c is in s" in psql("\\df+ count_char")


@pytest.mark.spark
def test_privileges_are_those_of_the_caller(parts: psycopg.Connection[Any], world: World) -> None:
    parts.execute("CREATE ROLE eve LOGIN PASSWORD 'x'")
    try:
        parts.execute("GRANT USAGE ON SCHEMA public TO eve")
        parts.execute("SET ROLE eve")
        assert parts.execute("SELECT count_char('aba', 'a')").fetchall() == [(2,)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for table parts"):
            parts.execute("SELECT above(1)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="must be owner of function above"):
            parts.execute("DROP FUNCTION above")
    finally:
        parts.execute("RESET ROLE")
        parts.execute("REVOKE ALL ON SCHEMA public FROM eve")
        parts.execute("DROP ROLE eve")


REFUSED = {
    "CREATE FUNCTION f(a int) RETURNS int LANGUAGE SQL AS $$ SELECT f(a - 1) $$": "recursive functions are not supported",
    "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$": "LANGUAGE plpgsql is not supported",
    "CREATE FUNCTION f() RETURNS trigger LANGUAGE SQL AS $$ SELECT 1 $$": "functions that return trigger are not supported",
    "CREATE FUNCTION f() RETURNS void LANGUAGE SQL AS $$ SELECT 1 $$": "functions that return void are not supported",
    "CREATE FUNCTION f(OUT a int) LANGUAGE SQL AS $$ SELECT 1 $$": "OUT parameters are not supported",
    "CREATE FUNCTION f(a anyelement) RETURNS int LANGUAGE SQL AS $$ SELECT 1 $$": "type anyelement is not supported",
    "CREATE FUNCTION f() RETURNS int LANGUAGE SQL AS $$ SELECT 1; SELECT 2 $$": "a function of several statements is not supported",
    "CREATE FUNCTION f() RETURNS int LANGUAGE SQL AS $$ DELETE FROM t $$": "a function that changes something is not supported",
    "CREATE FUNCTION f() RETURNS int LANGUAGE SQL BEGIN ATOMIC SELECT 1; END": "BEGIN ATOMIC is not supported",
    "CREATE FUNCTION f() RETURNS int LANGUAGE SQL SECURITY DEFINER AS $$ SELECT 1 $$": "SECURITY of a function is not supported",
    "CREATE FUNCTION lower(a int) RETURNS int RETURN a": 'a function with the name of a built-in one, "lower", is not supported',
    "CREATE PROCEDURE f() LANGUAGE SQL AS $$ SELECT 1 $$": "CREATE PROCEDURE is not supported",
    "CREATE TRIGGER t AFTER INSERT ON x EXECUTE FUNCTION f()": "CREATE TRIGGER is not supported",
    "ALTER FUNCTION f(int) RENAME TO g": "ALTER FUNCTION is not supported",
}


def create(catalog: Catalog, text: str) -> Catalog:
    from tailgate.engine.ddl import create_function
    from tailgate.lake.catalog.roles import OPERATOR_ID
    from tailgate.sql.statements import CreateFunction

    statement = parse(text)
    assert isinstance(statement, CreateFunction)
    return catalog.apply(Change(put=create_function(statement, text, catalog, OPERATOR_ID)))


@pytest.mark.parametrize("text", REFUSED)
def test_refused_by_name(text: str) -> None:
    with pytest.raises(TailgateError) as error:
        create(Catalog(), text)
    assert (error.value.sqlstate, error.value.message) == ("0A000", REFUSED[text])


def test_functions_that_call_each_other_are_refused() -> None:
    catalog = create(Catalog(), "CREATE FUNCTION f(a int) RETURNS int LANGUAGE SQL AS $$ SELECT a $$")
    catalog = create(catalog, "CREATE FUNCTION g(a int) RETURNS int LANGUAGE SQL AS $$ SELECT f(a) $$")
    with pytest.raises(TailgateError, match="recursive functions are not supported"):
        create(catalog, "CREATE OR REPLACE FUNCTION f(a int) RETURNS int LANGUAGE SQL AS $$ SELECT g(a) $$")


def test_a_function_that_reads_a_view_that_calls_it_is_refused() -> None:
    """A cycle is refused.

    Once, a materialized view and a function referred to each other, and the next statement about
    them never ended.
    """
    from tailgate.engine.ddl import create_view
    from tailgate.lake.catalog import ready

    catalog = create(Catalog(), "CREATE FUNCTION f() RETURNS bigint LANGUAGE SQL AS 'SELECT 1::bigint'")
    text = "CREATE MATERIALIZED VIEW m AS SELECT f() AS n"
    statement = parse(text)
    assert isinstance(statement, CreateView)
    catalog = catalog.apply(Change(put=(ready(create_view(statement, text, catalog)),)))
    with pytest.raises(TailgateError, match="recursive functions are not supported"):
        create(catalog, "CREATE OR REPLACE FUNCTION f() RETURNS bigint LANGUAGE SQL AS 'SELECT max(n) FROM m'")


def test_a_function_depends_on_the_defaults_of_its_arguments() -> None:
    catalog = create(Catalog(), "CREATE FUNCTION f() RETURNS int LANGUAGE SQL AS 'SELECT 1'")
    catalog = create(catalog, "CREATE FUNCTION g(a int DEFAULT f()) RETURNS int LANGUAGE SQL AS 'SELECT a'")
    f, g = catalog.items.values()
    assert g.depends == (f.id,)


def test_the_expansion_of_a_call_is_limited() -> None:
    catalog = create(Catalog(), "CREATE FUNCTION d(a int) RETURNS int LANGUAGE SQL AS $$ SELECT a * a $$")
    call = "1::int"
    for _ in range(16):
        call = f"d({call})"
    with pytest.raises(TailgateError, match="the expression that function d becomes is too large") as error:
        bind_query(f"SELECT {call}", catalog)
    assert error.value.sqlstate == "54000"


def test_a_body_with_doubled_quotes_keeps_the_names_it_has() -> None:
    from tailgate.engine.ddl.alter import move
    from tailgate.lake.catalog.schemas import PUBLIC
    from tailgate.lake.types import INT4, TEXT, Field

    table = Table(Catalog().next_id, "t", (Field("a", INT4), Field("b", TEXT)), stored=True, sql="CREATE TABLE t (a int, b text)")
    catalog = create(
        Catalog().apply(Change(put=(table,))), "CREATE FUNCTION f() RETURNS int LANGUAGE SQL AS 'SELECT max(a) FROM t WHERE b = ''x'''"
    )
    with pytest.raises(TailgateError, match=r"other names for what function f\(\) reads are not supported"):
        move(catalog.relation("t"), "u", PUBLIC, catalog)
    catalog = create(Catalog().apply(Change(put=(table,))), "CREATE FUNCTION g() RETURNS SETOF t LANGUAGE SQL AS 'SELECT * FROM t'")
    _, changed = move(catalog.relation("t"), "u", PUBLIC, catalog).put
    assert changed.sql == "CREATE FUNCTION g() RETURNS SETOF u LANGUAGE SQL AS 'SELECT * FROM u AS t'"
    assert changed.query == "SELECT * FROM u AS t"
