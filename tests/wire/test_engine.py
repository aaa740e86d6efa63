"""Tests statements that the gateway forwards to the engine: answers, errors, notices, a missing engine."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tailgate.engine.runtime.control.control import Answers, Client, Control
from tailgate.gateway.control import CONNECT_S
from tailgate.lake.catalog.resolution import Resolution
from tailgate.lake.control import StatementRequest
from tailgate.lake.errors import DuplicateTable, QueryCanceled
from tailgate.lake.writer.engines import Announcement
from testing.engine_process import until
from tests.wire.live import Live

STATUS: dict[str, Any] = {"sources": {}, "sinks": {}, "ticks": 7}
UNDO_S = 0.3  # for which the engine works after a cancel


class Engine:
    """The control interface of a real engine, with a test's function that executes statements."""

    def __init__(self, live: Live, listen: str | None) -> None:
        self.live = live
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.ended: list[str] = []
        self.control = Control(Answers(self.statement, self.newest, lambda lags: STATUS, lambda *_: {}, plan=self.plan), listen=listen)
        self.control.start()
        control = self.control
        Announcement.mine(live.model.writer.epoch, control.address, control.token, None, control.certificate).write(live.model.lake)

    def plan(self, request: StatementRequest) -> dict[str, Any]:
        assert "taken" in request.sql
        raise DuplicateTable('relation "taken" already exists', position=request.sql.index("taken"))

    def statement(self, sql: str, settings: dict[str, str], resolution: Resolution, client: Client) -> dict[str, Any]:
        self.seen.append((sql, settings))
        newest = self.live.model.writer.newest
        if "withdrawn" in sql:
            until(client.gone)
            time.sleep(UNDO_S)
            self.ended.append(sql)
            if "undone" in sql:
                raise QueryCanceled("canceling statement due to user request")
        if sql.lower().startswith("explain"):
            return {"tag": "EXPLAIN", "n": newest.n, "time": newest.time, "notices": [], "lines": ["Project: [id]", "└─ Scan: v"]}
        item = self.live.model.create("w")
        newest = self.live.model.writer.newest
        notice = {"severity": "NOTICE", "sqlstate": "00000", "message": "one partition", "hint": "Add a key."}
        return {"tag": "CREATE MATERIALIZED VIEW", "n": newest.n, "time": newest.time, "notices": [notice], "id": item.id}

    def newest(self, after: int, timeout: float) -> dict[str, Any]:
        header = self.live.model.lake.log.wait(after, 0.2) or self.live.model.writer.newest
        return {"n": header.n, "time": header.time}


@pytest.fixture
def engine(live: Live, request: pytest.FixtureRequest) -> Iterator[Engine]:
    engine = Engine(live, getattr(request, "param", None))
    yield engine
    engine.control.stop()


def test_a_view_is_there_when_its_statement_has_answered(live: Live, engine: Engine) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        notices: list[str | None] = []
        connection.add_notice_handler(lambda diagnostic: notices.append(diagnostic.message_primary))
        cursor = connection.execute("create materialized view w as select id, name, amount from v;")
        assert cursor.statusmessage == "CREATE MATERIALIZED VIEW"
        assert notices == ["one partition"]
        assert connection.execute("select count(*) from w").fetchone() == (0,)
        ((sql, settings),) = engine.seen
        assert sql == "create materialized view w as select id, name, amount from v"
        assert settings["timezone"] == "UTC"


def test_errors_have_their_position_in_the_whole_text(live: Live, engine: Engine) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection, pytest.raises(psycopg.errors.DuplicateTable) as raised:
        connection.execute("select 1; create view taken as select 1")
    assert raised.value.diag.statement_position == "23"


LISTEN = pytest.mark.parametrize("engine", [None, "127.0.0.1:0"], ids=["loopback", "TLS"], indirect=True)


@LISTEN
@pytest.mark.parametrize("message", ["canceling statement due to user request", "canceling statement due to statement timeout"])
def test_a_canceled_statement_has_ended_when_its_client_has_the_error(live: Live, engine: Engine, message: str) -> None:
    """Its client may send the statement again at once.

    Regression: the client had the error before the engine had undone the statement, which then failed with 42P07.
    """
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        cancel(connection, message)
        with pytest.raises(psycopg.errors.QueryCanceled, match=message):
            connection.execute("create view withdrawn as select 'undone'")
        assert len(engine.ended) == 1
        assert connection.execute("select 1").fetchone() == (1,)


@LISTEN
@pytest.mark.parametrize("message", ["user request", "statement timeout"])
def test_a_statement_that_took_effect_before_it_was_canceled_succeeds(live: Live, engine: Engine, message: str) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        cancel(connection, message)
        assert connection.execute("create materialized view withdrawn as select 1").statusmessage == "CREATE MATERIALIZED VIEW"
        assert connection.execute("select count(*) from w").fetchone() == (0,)


def cancel(connection: psycopg.Connection, message: str) -> None:
    """Makes the next statement be canceled while it runs."""
    if "timeout" in message:
        connection.execute("set statement_timeout = '300ms'")
    else:
        threading.Timer(0.3, connection.cancel_safe).start()


def test_explain(live: Live, engine: Engine) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        assert connection.execute("explain materialized view v").fetchall() == [("Project: [id]",), ("└─ Scan: v",)]
        lines = [line for (line,) in connection.execute("explain select id from v where id = 1").fetchall()]
        assert lines[-1].endswith("Scan: v")
        assert len(engine.seen) == 1


def test_status(live: Live, engine: Engine) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        assert connection.execute("show materialized views").fetchall() == [("v", "running", None, None, None)]


def test_an_engine_of_an_old_epoch_is_not_asked(live: Live, engine: Engine) -> None:
    Announcement.mine(live.model.writer.epoch, engine.control.address, engine.control.token, None).write(live.model.lake)
    path = live.model.lake.path / "engine.json"
    path.write_text(path.read_text().replace(f'"epoch": {live.model.writer.epoch}', '"epoch": 0'))
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        start = time.monotonic()
        with pytest.raises(psycopg.errors.SystemError, match="the engine is being replaced"):
            connection.execute("create materialized view w as select id from v")
        assert time.monotonic() - start < CONNECT_S / 2  # it does not wait for another engine
    assert engine.seen == []


def test_an_engine_that_ended_without_notice(live: Live, engine: Engine) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
    Announcement.mine(live.model.writer.epoch, address, engine.control.token, None).write(live.model.lake)
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        start = time.monotonic()
        with pytest.raises(psycopg.errors.SystemError, match="the engine"):
            connection.execute("create materialized view w as select id from v")
        assert time.monotonic() - start < CONNECT_S / 2  # it does not wait for another engine
        assert connection.execute("select count(*) from v").fetchone() == (4,)


def test_an_engine_that_ends_a_connection_at_once(live: Live, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is gone when the gateway gets it: the engine was killed meanwhile."""
    connect = asyncio.open_connection

    async def ended(*address: Any, **options: Any) -> Any:
        reader, writer = await connect(*address, **options)
        writer.transport.abort()
        await asyncio.sleep(0)
        return reader, writer

    with psycopg.connect(live.dsn, autocommit=True) as connection:
        monkeypatch.setattr(asyncio, "open_connection", ended)
        with pytest.raises(psycopg.errors.SystemError, match="the engine does not answer"):
            connection.execute("create materialized view w as select id from v")
