"""Prepared statements whose result columns change are refused with 0A000, as in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from tests.statements.conftest import World
from tests.wire.wire import Bind, Client, Describe, Execute, Flush, Parse, Sync, play, shown

pytestmark = pytest.mark.spark

REFUSED = "cached plan must not change result type"


@pytest.fixture
def change(sql: psycopg.Connection, world: World) -> Callable[..., None]:
    """Runs statements on another connection, and waits until the gateway has the new catalog."""

    def run(*statements: str) -> None:
        with world.connect() as other:
            for statement in statements:
                other.execute(statement)

    run("CREATE TABLE plans (a int PRIMARY KEY, b text)", "INSERT INTO plans VALUES (1, 'x')", "CREATE VIEW shown AS SELECT a FROM plans")
    return run


WIDER = ("CREATE OR REPLACE VIEW shown AS SELECT a, b FROM plans",)
NARROWER = ("DROP VIEW shown", "CREATE VIEW shown AS SELECT FROM plans")
OTHER_TYPE = ("DROP VIEW shown", "CREATE VIEW shown AS SELECT a::text AS a FROM plans")
WIDER_TABLE = ("DROP VIEW shown", "DROP TABLE plans", "CREATE TABLE plans (a int PRIMARY KEY, b text, c int)")


@pytest.mark.parametrize("changes", [WIDER, NARROWER, OTHER_TYPE], ids=["wider", "narrower", "other type"])
@pytest.mark.parametrize("statement", ["SELECT * FROM shown", "TABLE shown"])
def test_a_statement_of_the_extended_protocol(
    sql: psycopg.Connection, change: Callable[..., None], statement: str, changes: tuple[str, ...]
) -> None:
    sql.execute(statement, prepare=True)
    change(*changes)
    with pytest.raises(psycopg.errors.FeatureNotSupported, match=REFUSED):
        sql.execute(statement, prepare=True)


@pytest.mark.parametrize("changes", [WIDER, NARROWER, OTHER_TYPE], ids=["wider", "narrower", "other type"])
@pytest.mark.parametrize("prepared", [False, True], ids=["simple", "prepared"])
def test_execute(sql: psycopg.Connection, change: Callable[..., None], changes: tuple[str, ...], prepared: bool) -> None:
    sql.execute("PREPARE p AS SELECT * FROM shown")
    assert sql.execute("EXECUTE p", prepare=prepared).fetchall() == [(1,)]
    change(*changes)
    with pytest.raises(psycopg.errors.FeatureNotSupported, match=REFUSED):
        sql.execute("EXECUTE p", prepare=prepared)


def test_a_write_is_refused_before_it_happens(sql: psycopg.Connection, change: Callable[..., None]) -> None:
    insert = "INSERT INTO plans (a) VALUES (2) ON CONFLICT (a) DO NOTHING RETURNING *"
    sql.execute(insert, prepare=True)
    sql.execute(f"PREPARE p AS {insert}")
    change(*WIDER_TABLE)
    for statement in (insert, "EXECUTE p"):
        with pytest.raises(psycopg.errors.FeatureNotSupported, match=REFUSED):
            sql.execute(statement, prepare=statement == insert)
    assert sql.execute("SELECT count(*) FROM plans").fetchone() == (0,)


def test_another_statement_or_cursor_of_the_same_name(sql: psycopg.Connection) -> None:
    """EXECUTE and FETCH are not plans: they use the current statement or cursor of that name."""
    sql.execute("PREPARE p AS SELECT 1 AS a")
    assert sql.execute("EXECUTE p", prepare=True).fetchall() == [(1,)]
    sql.execute("DEALLOCATE p")
    sql.execute("PREPARE p AS SELECT 1 AS a, 'x' AS b")
    assert sql.execute("EXECUTE p", prepare=True).fetchall() == [(1, "x")]
    for query, expected in (("SELECT 1 AS a", (1,)), ("SELECT 1 AS a, 2 AS b", (1, 2)), ("SELECT", ())):
        with sql.transaction():
            sql.execute(f"DECLARE c CURSOR FOR {query}")
            assert sql.execute("FETCH c", prepare=True).fetchall() == [expected]


def test_a_bound_subscribe_whose_columns_change(world: World, change: Callable[..., None]) -> None:
    client = Client.connect("127.0.0.1", world.served.port)
    play("> Parse('s', 'subscribe shown')\n> Sync()", client)
    change(*WIDER)
    transcript = play("> Bind('', 's')\n> Sync()", client)
    client.close()
    assert f"< ErrorResponse S=ERROR C=0A000 M='{REFUSED}'" in transcript.splitlines()


EXECUTING = """
> Query('begin; prepare p as select 1 as a')
> Parse('s', 'execute p')
> Bind('x', 's', [], [], [1])
> Sync()
> Query('deallocate p; prepare p as select 1 as a, 2 as b')
> Execute('x')
> Sync()
> Query('rollback')
"""
FETCHING = """
> Query('begin; declare c cursor for select 1 as a')
> Parse('s', 'fetch c')
> Bind('x', 's', [], [], [1])
> Sync()
> Query('close c; declare c cursor for select 1 as a, 2 as b')
> Execute('x')
> Sync()
> Query('rollback')
"""


@pytest.mark.parametrize("script", [EXECUTING, FETCHING], ids=["execute", "fetch"])
def test_a_name_that_changes_its_meaning_between_bind_and_execute(world: World, script: str) -> None:
    client = Client.connect("127.0.0.1", world.served.port)
    messages = [line for line in play(script, client).splitlines() if "ErrorResponse" in line]
    client.close()
    assert messages == [f"< ErrorResponse S=ERROR C=0A000 M='{REFUSED}'"]


def test_a_portal_of_a_view_that_another_session_replaces(world: World, sql: psycopg.Connection) -> None:
    """The portal, which was bound before, fails: its columns are those of the view that is gone."""
    sql.execute("CREATE TABLE t (id int)")
    sql.execute("INSERT INTO t VALUES (7)")
    sql.execute("CREATE MATERIALIZED VIEW v AS SELECT id AS x FROM t")
    client = Client.connect("127.0.0.1", world.served.port)
    client.send(Parse("", "SELECT * FROM v") + Bind("", "") + Describe("P", "") + Flush())
    assert [shown(*client.message() or ("", b"")) for _ in range(3)] == ["ParseComplete", "BindComplete", "RowDescription x:int4/4"]
    sql.execute("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT id::text || ' of t' AS x FROM t")
    for messages, error in (
        (Execute(""), "C=42P01 M='a relation that the statement reads was dropped'"),
        (Bind("", "") + Execute(""), f"C=0A000 M='{REFUSED}'"),
    ):
        client.send(messages + Sync())
        assert [shown(*message) for message in client.until_ready()] == [f"ErrorResponse S=ERROR {error}", "ReadyForQuery I"]
    client.send(Parse("", "SELECT * FROM v") + Bind("", "") + Execute("") + Sync())
    assert "DataRow 7 of t" in [shown(*message) for message in client.until_ready()]
    client.socket.close()
