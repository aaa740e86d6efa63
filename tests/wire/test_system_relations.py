"""Tests the relations of the schema `tailgate` in queries of users' relations, TAIL, views and blocks, and where they are refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.lake.system_relations import COLUMNS, SUPERUSER_RELATIONS
from testing.engine_process import until
from tests.wire.live import Live
from tests.wire.statements import Statements

NAMES = "SELECT name FROM tailgate.materialized_views ORDER BY 1"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    live = Live(tmp_path_factory.mktemp("lake") / "lake")
    statements = Statements(live)
    yield live
    statements.stop()
    live.close()


@pytest.fixture
def connection(live: Live) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        yield connection


def answer(connection: psycopg.Connection[Any], query: str) -> list[Any]:
    return connection.execute(query).fetchall()  # type: ignore[call-overload, no-any-return]


def test_every_relation_can_be_joined_with_a_users_relation(connection: psycopg.Connection[Any]) -> None:
    for name, columns in COLUMNS.items():
        cursor = connection.execute(f"SELECT t.* FROM tailgate.{name} t, v WHERE v.id = 1")  # type: ignore[call-overload]
        assert [(column.name, column.type_code) for column in cursor.description] == [(c.name, c.type.oid) for c in columns]


def test_a_join(connection: psycopg.Connection[Any]) -> None:
    joined = "SELECT v.id, m.name FROM v JOIN tailgate.materialized_views m ON m.name = 'v' WHERE v.id IN (1, 2) ORDER BY 1"
    assert answer(connection, joined) == [(1, "v"), (2, "v")]
    assert connection.execute(joined.replace("IN (1, 2)", "= %s"), (2,)).fetchall() == [(2, "v")]  # type: ignore[arg-type]


def test_names_follow_the_search_path(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SET search_path = public, tailgate")
    assert answer(connection, "SELECT name FROM materialized_views") == [("v",)]
    connection.execute("SET search_path = public")
    with pytest.raises(psycopg.errors.UndefinedTable, match='relation "materialized_views" does not exist'):
        connection.execute("SELECT 1 FROM materialized_views")


def test_an_unknown_column_has_a_position(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.UndefinedColumn) as raised:
        connection.execute("SELECT lag FROM tailgate.freshness")
    assert raised.value.diag.statement_position == "8"


def test_a_block_reads_users_relations_at_one_time_and_these_at_the_present(live: Live, connection: psycopg.Connection[Any]) -> None:
    query = "SELECT (SELECT count(*) FROM v WHERE id = 77), count(*) FROM tailgate.dependencies"
    with connection.transaction():
        assert answer(connection, query) == [(0, 0)]
        live.tick([((77, "x", None), 1)])
        with psycopg.connect(live.dsn, autocommit=True) as other:
            other.execute("CREATE VIEW later AS SELECT id FROM v")
        until(lambda: answer(connection, query) == [(0, 1)], 10)
    live.tick([((77, "x", None), -1)])
    connection.execute("DROP VIEW later")


def test_a_view(live: Live, connection: psycopg.Connection[Any]) -> None:
    connection.execute("SET search_path = tailgate, public")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied to create"):
        connection.execute("CREATE VIEW stale AS SELECT 1 AS a")
    connection.execute("CREATE VIEW public.lists AS SELECT name FROM materialized_views WHERE name LIKE 'v%'")
    connection.execute("SET search_path = public")
    assert answer(connection, "SELECT * FROM lists") == [("v",)]
    assert answer(connection, "SELECT pg_get_viewdef('lists'::regclass)")[0][0].endswith(
        "FROM tailgate.materialized_views WHERE name LIKE 'v%';"
    )
    connection.execute("DROP VIEW lists")


def test_tail_returns_rows_and_then_changes(live: Live, connection: psycopg.Connection[Any]) -> None:
    connection.execute("BEGIN")
    connection.execute("DECLARE c CURSOR FOR TAIL (SELECT name FROM tailgate.views) WITH (PROGRESS)")
    ((at, *row),) = answer(connection, "FETCH 1 c")
    assert row == [True, None, None]
    times = [at]
    with psycopg.connect(live.dsn, autocommit=True) as other:
        other.execute("CREATE VIEW followed AS SELECT id FROM v")
        assert changes_of(connection, times, 1, "followed")
        other.execute("DROP VIEW followed")
    assert changes_of(connection, times, -1, "followed")
    connection.execute("ROLLBACK")
    assert times == sorted(times)


def changes_of(connection: psycopg.Connection[Any], times: list[Any], diff: int, name: str) -> bool:
    """Fetches from the cursor `c` until it returns this change. Records the times."""
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        for at, progressed, *row in answer(connection, "FETCH 1 c"):
            times.append(at)
            if not progressed and row == [diff, name]:
                return True
    return False


def test_subscribe_to_a_relation_by_name(connection: psycopg.Connection[Any]) -> None:
    connection.execute("BEGIN")
    connection.execute("DECLARE s CURSOR FOR SUBSCRIBE tailgate.materialized_views")
    (row,) = answer(connection, "FETCH 1 s")
    assert row[1:4] == (1, "public", "v")
    connection.execute("ROLLBACK")


def test_up_to_ends_a_tail(connection: psycopg.Connection[Any]) -> None:
    end = int(time.time() * 1000) + 1500
    rows = answer(connection, f"SUBSCRIBE (SELECT name FROM tailgate.materialized_views) UP TO {end}")
    assert [row[1:] for row in rows] == [(1, "v")]


def test_a_tail_ends_if_a_relation_that_it_reads_is_dropped(live: Live, connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE VIEW short AS SELECT id FROM v")
    connection.execute("CREATE MATERIALIZED VIEW dropped AS SELECT id FROM v")
    connection.execute("BEGIN")
    connection.execute("DECLARE c CURSOR FOR TAIL (SELECT count(*) FROM dropped, tailgate.views)")
    assert len(answer(connection, "FETCH 1 c")) == 1
    with psycopg.connect(live.dsn, autocommit=True) as other:
        other.execute("DROP MATERIALIZED VIEW dropped")
    with pytest.raises(psycopg.errors.UndefinedTable, match='relation "dropped" does not exist'):
        answer(connection, "FETCH ALL c")
    connection.execute("ROLLBACK")
    connection.execute("DROP VIEW short")


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        ("CREATE MATERIALIZED VIEW m AS SELECT name FROM tailgate.views", "0A000", "a materialized view over tailgate.views"),
        ("CREATE SUBSCRIPTION s FROM tailgate.views", "0A000", "the changes of tailgate.views cannot be stored"),
        ("CREATE OBJECTIVE o ON tailgate.views (FRESHNESS max '1 s') OVER '1 minute'", "42809", '"views" has no freshness lag'),
        ("CREATE ENDPOINT e GET '/e' AS SELECT name FROM tailgate.views", "0A000", "an endpoint over the schema tailgate"),
        ("CREATE INDEX ON tailgate.views (name)", "42501", 'permission denied: "views" is a system catalog'),
        ("DROP TABLE tailgate.views", "42501", 'permission denied: "views" is a system catalog'),
        ("ALTER TABLE tailgate.views ADD COLUMN a int", "42501", 'permission denied: "views" is a system catalog'),
        ("GRANT SELECT ON tailgate.views TO PUBLIC", "42501", 'permission denied: "views" is a system catalog'),
        ("COMMENT ON TABLE tailgate.views IS 'x'", "42501", 'permission denied: "views" is a system catalog'),
        ("INSERT INTO tailgate.views VALUES ('public', 'x')", "42501", 'permission denied: "views" is a system catalog'),
        ("DELETE FROM tailgate.views", "42501", 'permission denied: "views" is a system catalog'),
        ("TRUNCATE tailgate.views", "42501", 'permission denied: "views" is a system catalog'),
        ("CREATE TABLE tailgate.x (a int)", "42501", 'permission denied to create "tailgate.x"'),
        ("CREATE TABLE y (a text REFERENCES tailgate.views)", "42501", 'permission denied: "views" is a system catalog'),
        ("CREATE SCHEMA tailgate", "42P06", 'schema "tailgate" already exists'),
        ("SELECT name FROM tailgate.views FOR UPDATE", "42809", 'cannot lock rows in table "views"'),
        ("TAIL (SELECT name FROM tailgate.views) AS OF 1", "0A000", "AS OF of relations of the schema tailgate"),
    ],
)
def test_refused(connection: psycopg.Connection[Any], statement: str, sqlstate: str, message: str) -> None:
    with pytest.raises(psycopg.Error) as raised:
        connection.execute(statement)  # type: ignore[call-overload]
    assert (raised.value.sqlstate, message in str(raised.value)) == (sqlstate, True), str(raised.value)


def test_privileges(live: Live, tmp_path: Path) -> None:
    """Every role reads the relations, except those for superusers. The rows are those that it may see."""
    other = Live(tmp_path / "lake")
    statements = Statements(other)
    try:
        with psycopg.connect(other.dsn, autocommit=True) as owner:
            owner.execute("CREATE ROLE ann LOGIN SUPERUSER")
            owner.execute("CREATE ROLE bea LOGIN")
            owner.execute("CREATE VIEW errors AS SELECT error FROM tailgate.internal_errors")
            owner.execute("GRANT SELECT ON errors TO bea")
        with psycopg.connect(other.dsn.replace("ann", "bea"), autocommit=True) as reader:
            for name in COLUMNS.keys() - SUPERUSER_RELATIONS:
                reader.execute(f"SELECT * FROM tailgate.{name}")  # type: ignore[call-overload]
            assert answer(reader, "SELECT name FROM tailgate.freshness") == [("errors",)]
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for table internal_errors"):
                reader.execute("SELECT 1 FROM tailgate.internal_errors")
            assert answer(reader, "SELECT * FROM errors") == []  # with the privileges of its owner
    finally:
        statements.stop()
        other.close()
