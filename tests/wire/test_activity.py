"""Tests pg_stat_activity with real sessions, and the functions that cancel and terminate them."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors

from tests.wire.live import Live
from tests.wire.statements import Statements

COLUMNS = "datname, usename, application_name, state, query, backend_type, client_addr::text"


@pytest.fixture
def two(live: Live) -> Iterator[tuple[psycopg.Connection, psycopg.Connection]]:
    with (
        psycopg.connect(live.dsn, autocommit=True, application_name="one") as one,
        psycopg.connect(live.dsn, autocommit=True, application_name="two") as two,
    ):
        yield one, two


def row(connection: psycopg.Connection, of: psycopg.Connection) -> tuple:
    result = connection.execute(f"select {COLUMNS} from pg_stat_activity where pid = {of.info.backend_pid}").fetchone()
    assert result is not None
    return result


def test_states(two: tuple[psycopg.Connection, psycopg.Connection]) -> None:
    one, other = two
    statement = "select count(*) from v"
    other.execute(statement)
    assert row(one, other) == ("shop", "ann", "two", "idle", statement, "client backend", "127.0.0.1")
    other.pgconn.exec_(statement.encode())
    other.pgconn.exec_(statement.encode())  # ready bytes
    assert row(one, other)[4] == statement
    other.execute("begin")
    assert row(one, other)[3:5] == ("idle in transaction", "begin")
    with pytest.raises(errors.UndefinedTable):
        other.execute("select 1 from nothing")
    assert row(one, other)[3] == "idle in transaction (aborted)"
    other.execute("rollback")
    assert row(one, one)[3] == "active"
    assert one.execute("select count(*) from pg_stat_activity where backend_start <= now() and state_change is not null").fetchone() == (2,)
    assert one.execute("select extract(epoch from now() - query_start) < 5 from pg_stat_activity").fetchall() == [(True,), (True,)]
    assert one.execute("select xact_start is null from pg_stat_activity where application_name = 'two'").fetchone() == (True,)


def test_cancel(two: tuple[psycopg.Connection, psycopg.Connection]) -> None:
    one, other = two
    raised: list[object] = []

    def follow() -> None:
        try:
            other.execute("tail v with (snapshot = false)")
        except psycopg.Error as error:
            raised.append(error)

    thread = threading.Thread(target=follow)
    thread.start()
    deadline = time.monotonic() + 5
    while row(one, other)[3] != "active" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert one.execute("select pg_cancel_backend(%s)", (other.info.backend_pid,)).fetchone() == (True,)
    thread.join(5)
    assert isinstance(raised[0], errors.QueryCanceled)
    assert str(raised[0]) == "canceling statement due to user request"
    assert other.execute("select 1").fetchone() == (1,)


def test_terminate(two: tuple[psycopg.Connection, psycopg.Connection]) -> None:
    one, other = two
    assert one.execute("select pg_terminate_backend(%s)", (other.info.backend_pid,)).fetchone() == (True,)
    with pytest.raises(errors.AdminShutdown, match="terminating connection due to administrator command"):
        other.execute("select 1")
    notices: list[tuple[str | None, ...]] = []
    one.add_notice_handler(lambda d: notices.append((d.severity, d.sqlstate, d.message_primary)))
    assert one.execute("select pg_terminate_backend(%s)", (1,)).fetchone() == (False,)
    assert notices == [("WARNING", "01000", "PID 1 is not a PostgreSQL server process")]


def test_others_see_little(live: Live, statements: Statements) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as operator:
        operator.execute("create role bob login; create role eve login; alter role tailgate password 'very secret'")
        assert "very" not in row(operator, operator)[4]
        operator.execute("select 1 as password")
        with psycopg.connect(live.dsn + " user=bob", autocommit=True) as bob, psycopg.connect(live.dsn + " user=eve") as eve:
            assert row(bob, operator) == ("shop", "ann", "", None, "<insufficient privilege>", "client backend", None)
            assert row(bob, bob)[4].startswith("select")
            with pytest.raises(errors.InsufficientPrivilege, match="must be a superuser to cancel superuser query"):
                bob.execute("select pg_cancel_backend(%s)", (operator.info.backend_pid,))
            with pytest.raises(errors.InsufficientPrivilege, match="must be a member of the role whose process is being terminated"):
                bob.execute("select pg_terminate_backend(%s)", (eve.info.backend_pid,))
            with pytest.raises(errors.InsufficientPrivilege, match="permission denied for table pg_authid"):
                bob.execute("select * from pg_authid")
            with pytest.raises(errors.InsufficientPrivilege, match="permission denied for table internal_errors"):
                bob.execute("select * from tailgate.internal_errors")
            with pytest.raises(errors.InsufficientPrivilege, match="permission denied to execute ALTER SYSTEM"):
                bob.execute("alter system reset all")


def test_roles_in_the_catalog(live: Live, statements: Statements) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        assert connection.execute("select has_table_privilege('v', 'select')").fetchone() == (True,)
        connection.execute("create role bob login; grant select on v to bob; grant create on schema public to public")
        assert connection.execute(
            "select rolname, rolsuper, rolcanlogin from pg_roles where oid = 10 or oid > 10000 order by 1"
        ).fetchall() == [
            ("bob", False, True),
            ("tailgate", True, True),
        ]
        ask = "select has_table_privilege('bob', 'v', '{}'), has_schema_privilege('bob', 'public', 'CREATE'), relacl"
        ask += " from pg_class where relname = 'v'"
        assert connection.execute(ask.format("SELECT")).fetchone() == (True, True, ["tailgate=arwdDxt/tailgate", "bob=r/tailgate"])
        assert connection.execute(ask.format("INSERT")).fetchone() == (False, True, ["tailgate=arwdDxt/tailgate", "bob=r/tailgate"])
        connection.execute("revoke select on v from bob")
        with psycopg.connect(live.dsn + " user=bob", autocommit=True) as bob:
            tables = "select table_name from information_schema.columns where table_schema = 'public'"
            assert bob.execute(tables).fetchall() == []
            assert bob.execute("select has_table_privilege('v', 'SELECT'), has_table_privilege('pg_class', 'SELECT')").fetchone() == (
                False,
                True,
            )
        with pytest.raises(errors.FeatureNotSupported, match="lo_create"):
            connection.execute("select lo_create(0)")


def test_timeouts(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        connection.execute("set statement_timeout = '200ms'")
        start = time.monotonic()
        with pytest.raises(errors.QueryCanceled, match="canceling statement due to statement timeout"):
            connection.execute("tail v with (snapshot = false)")
        assert 0.2 <= time.monotonic() - start < 10
        connection.execute("set idle_session_timeout = '100ms'")
        assert select.select([connection], [], [], 10)[0]
        with pytest.raises(errors.IdleSessionTimeout):
            connection.execute("select 1")
    with psycopg.connect(live.dsn) as connection:
        connection.execute("set idle_in_transaction_session_timeout = '100ms'")
        assert select.select([connection], [], [], 10)[0]
        with pytest.raises(errors.IdleInTransactionSessionTimeout):
            connection.execute("select 1")


@pytest.mark.parametrize("version", ["3.0", "3.2"])
def test_keys_for_cancelling(live: Live, version: str) -> None:
    """Keys have 32 bytes since protocol version 3.2."""
    if psycopg.pq.version() < 180000:
        pytest.skip("this libpq speaks 3.0 only")
    with psycopg.connect(f"{live.dsn} max_protocol_version={version}", autocommit=True) as connection:
        (session,) = live.gateway.sessions.values()
        assert len(session.client.secret) == (4 if version == "3.0" else 32)
        threading.Timer(0.3, connection.cancel_safe).start()
        with pytest.raises(errors.QueryCanceled):
            connection.execute("tail v with (snapshot = false)")
