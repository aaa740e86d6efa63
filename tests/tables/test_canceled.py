"""Statements that are canceled before their turn, and writes whose wait for the tick is canceled."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tailgate.lake.catalog.resolution import Resolution
from tailgate.lake.control import Attempt
from tailgate.lake.errors import AdminShutdown, QueryCanceled
from tailgate.sql.name_resolution import resolve
from testing.engine_process import until
from tests.tables.world import World


@pytest.mark.parametrize("text", ["CREATE TABLE t (k int)", "DROP TABLE old", "ALTER TABLE old RENAME TO other", "CREATE INDEX ON old (k)"])
def test_a_statement_whose_client_has_disconnected(world: World, text: str) -> None:
    """Another statement holds the lock of the catalog until the client has disconnected.

    Regression: the engine executed the statement later, after its client had dropped the object with
    IF EXISTS.
    """
    lock = world.engine._statements.installation.lock  # an RLock, which this thread holds
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE old (k int PRIMARY KEY)")
        before = world.lake.catalog()
        with lock:
            threading.Timer(0.5, connection.cancel_safe).start()
            with pytest.raises(errors.QueryCanceled):
                connection.execute(text.encode())
        connection.execute("COMMENT ON TABLE old IS 'a later statement'")
        after = world.lake.catalog()
        assert {i.name for i in after.visible} == {i.name for i in before.visible}


@pytest.mark.parametrize(
    "text", ["CREATE TABLE t (k int)", "CREATE VIEW t AS SELECT 1 AS k", "CREATE MATERIALIZED VIEW t AS SELECT 1 AS k"]
)
def test_a_create_that_is_canceled_before_its_entry(world: World, text: str) -> None:
    """The statement is canceled after its turn has come.

    Regression: the engine added the object and removed it afterwards.
    """
    engine, before = world.engine, world.lake.log.newest()
    catalog = world.lake.catalog()
    with pytest.raises(QueryCanceled):
        engine.statement(text, {}, resolve(text, catalog, catalog), CanceledAfter(checks=1))
    assert world.lake.log.newest() == before


def disconnect(client: Any) -> None:
    client.connection.shutdown(socket.SHUT_RDWR)


def report_shutdown(client: Any) -> None:
    raise AdminShutdown("the engine is stopping")


@pytest.mark.parametrize("end", [disconnect, report_shutdown])
def test_a_statement_that_is_canceled_while_its_engine_ends(
    world: World, monkeypatch: pytest.MonkeyPatch, end: Callable[[Any], None]
) -> None:
    """The statement has taken effect, but the engine ends before it answers."""
    statements = world.engine._statements
    execute, effective = statements.execute, threading.Event()

    def ending(text: str, settings: dict[str, str], names: Resolution, client: Any) -> dict[str, Any]:
        answer = execute(text, settings, names, client)
        effective.set()
        until(client.gone)
        end(client)
        return answer

    monkeypatch.setattr(statements, "execute", ending)
    with psycopg.connect(world.dsn, autocommit=True) as connection, ThreadPoolExecutor(1) as threads:
        creating = threads.submit(connection.execute, "CREATE TABLE t (k int)")
        assert effective.wait(10)
        connection.cancel_safe()
        with pytest.raises(errors.SystemError, match="before it answered"):
            creating.result(30)


class CanceledAfter:
    """The client of a statement, which cancels it after the engine has checked for this some times."""

    attempt = Attempt()

    def __init__(self, checks: int) -> None:
        self._left = checks

    def tell(self, notice: dict[str, Any]) -> None:
        pass

    def gone(self) -> bool:
        self._left -= 1
        return self._left < 0


@pytest.mark.parametrize("setting", ["synchronous_commit = off", "statement_timeout = '300ms'"])
def test_a_write_sees_the_earlier_writes_of_its_session(world: World, setting: str) -> None:
    """A write that is durable and not yet readable is followed by others that would change nothing without it.

    Regression: they were answered with UPDATE 0 and DELETE 0, or with an error about a key that was deleted.
    """
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
        connection.execute("INSERT INTO t VALUES (0, 0)")
        world.engine.pause()
        connection.execute(f"SET {setting}".encode())
        connection.execute("INSERT INTO t VALUES (1, 1)")
        connection.execute("SET statement_timeout = '300ms'")
        for text in ("UPDATE t SET v = 2 WHERE k = 1", "DELETE FROM t WHERE k = 1", "DELETE FROM t WHERE v = 1"):
            with pytest.raises(errors.QueryCanceled):
                connection.execute(text.encode())
        connection.execute("BEGIN")
        assert connection.execute("DELETE FROM t WHERE k = 1").rowcount == 0
        with pytest.raises((errors.SerializationFailure, errors.QueryCanceled)):
            connection.execute("COMMIT")
        world.engine.resume()
        connection.execute("RESET statement_timeout")
        assert connection.execute("UPDATE t SET v = 2 WHERE k = 1").rowcount == 1
        connection.execute("SET synchronous_commit = off")
        for n in range(20):
            assert connection.execute("DELETE FROM t WHERE k = 1").rowcount == 1
            assert connection.execute("INSERT INTO t VALUES (1, %s)", [n]).rowcount == 1
