"""Tests reads at another time: `AS OF`, `SET tailgate.as_of`, and real-time recency."""

from __future__ import annotations

import asyncio
import threading
from datetime import datetime, timezone
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tailgate.engine.runtime.control.control import Answers, Control
from tailgate.lake.errors import QueryCanceled
from tailgate.lake.writer.engines import Announcement
from tests.wire.live import Live

NEW = (10, "ten", 10.0)


@pytest.fixture
def connection(live: Live):
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        yield connection


def count(connection: psycopg.Connection) -> int:
    """Returns the row count after comparing three ways: encoded results, prepared statement, DuckDB."""
    statement = "select count(*) from v"
    counts = {int(connection.pgconn.exec_(statement.encode()).get_value(0, 0) or b"-1") for _ in range(3)}
    counts |= {row[0] for _ in range(3) for row in connection.execute(statement, prepare=True).fetchall()}
    counts |= {len(connection.execute("select id from v where id = %s or true", (n,)).fetchall()) for n in range(2)}
    (only,) = counts
    return only


def test_as_of(live: Live, connection: psycopg.Connection) -> None:
    before = live.serving.progress.time
    assert count(connection) == 4
    after = live.tick([(NEW, 1)])
    assert count(connection) == 5
    connection.execute(f"set tailgate.as_of = {before}")
    assert connection.execute("show tailgate.as_of").fetchone() == (str(before),)
    assert count(connection) == 4
    with connection.transaction():
        assert count(connection) == 4
    assert connection.execute(f"select count(*) from v as of {after}").fetchone() == (5,)
    live.tick([((11, "x", 1.0), 1)])
    assert count(connection) == 4
    connection.execute(f"set tailgate.as_of = '{datetime.fromtimestamp(after / 1000, timezone.utc).isoformat()}'")
    assert count(connection) == 5
    connection.execute("reset tailgate.as_of")
    assert count(connection) == 6
    with connection.transaction():
        connection.execute(f"set local tailgate.as_of = {before}")
        assert count(connection) == 4
    assert count(connection) == 6


def test_the_system_catalog_and_other_relations(live: Live, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query reads all other relations at one time, which is that of AS OF."""
    connection.execute("CREATE TEMP VIEW w AS SELECT id FROM v")
    query = "SELECT (SELECT count(*) FROM v), (SELECT count(*) FROM w) FROM pg_class WHERE oid = 1259"
    run, numbers, before = live.serving.queries.run, iter(range(50, 60)), live.serving.progress.time

    async def with_tick(*arguments: Any, **options: Any) -> Any:
        rows = await run(*arguments, **options)
        await asyncio.to_thread(live.tick, [((next(numbers), "x", 1.0), 1)])
        return rows

    monkeypatch.setattr(live.serving.queries, "run", with_tick)
    counts = [connection.execute(query).fetchone() for _ in range(2)]
    assert [of_v == of_w for of_v, of_w in counts] == [True, True]
    assert counts[1][0] == counts[0][0] + 1
    assert connection.execute(f"{query} AS OF {before}").fetchone() == counts[0]


def test_following_begins_there(live: Live, connection: psycopg.Connection) -> None:
    before = live.serving.progress.time
    end = live.tick([(NEW, 1)])
    connection.execute(f"set tailgate.as_of = {before}")
    assert connection.execute(f"subscribe v with (snapshot = false) up to {end + 1}").fetchall()[0][2:] == NEW


def test_messages(live: Live, connection: psycopg.Connection) -> None:
    connection.execute("set tailgate.as_of = 5")
    with pytest.raises(errors.InvalidParameterValue, match=r"Timestamp \(5\) is not valid for all inputs"):
        connection.execute("select count(*) from v")
    with pytest.raises(errors.InvalidParameterValue, match=r'invalid value for parameter "tailgate\.as_of": "yesterdayish"'):
        connection.execute("set tailgate.as_of = 'yesterdayish'")
    connection.execute("set tailgate.as_of = ''")
    assert count(connection) == 4


def test_a_relation_cannot_be_read_at_a_time_before_it_existed(live: Live, connection: psycopg.Connection) -> None:
    """AT LEAST reads at the oldest readable time. Older times are refused, without internal names."""
    before = live.serving.progress.time
    live.tick([(NEW, 1)])
    later = live.model.create("later")
    created = live.model.writer.newest.time
    live.model.tick({later.id: [((1, "one", 1.0), 1)]})
    end = live.tick([((11, "x", 1.0), 1)])
    for time in (0, before, created):
        assert connection.execute(f"select count(*) from later as of at least {time}").fetchone() == (0,)
        assert connection.execute(f"select count(*) from v, later as of at least {time}").fetchone() == (0,)
        changes = connection.execute(f"subscribe later as of at least {time} up to {end}").fetchall()
        assert [row[2:] for row in changes] == [(1, "one", 1.0)]
    assert connection.execute(f"select count(*) from v as of at least {before}").fetchone() == (4,)
    assert connection.execute("select count(*) from v as of at least 0").fetchone() == (0,)
    for statement in (
        f"select count(*) from later as of {before}",
        f"select count(*) from v join later using (id) as of {before}",
        f"subscribe later as of {before}",
        f"set tailgate.as_of = {before}; select count(*) from later",
        f"set tailgate.as_of = {before}; subscribe later up to {end}",
    ):
        with pytest.raises(psycopg.DatabaseError) as raised:
            connection.execute(statement)
        connection.execute("reset tailgate.as_of")
        assert raised.value.sqlstate == "22023", statement
        assert str(later.id) not in str(raised.value), statement
        assert str(created) in str(raised.value), statement


def test_real_time_recency(live: Live, connection: psycopg.Connection) -> None:
    """A query waits until the engine, and then the gateway, has all that Kafka held when it began."""
    requests: list[tuple[list[int], float]] = []

    def recent(relations: list[int], timeout: float) -> dict[str, int]:
        requests.append((relations, timeout))
        if timeout < 1:
            raise QueryCanceled("canceling statement due to real_time_recency_timeout")
        time = live.model.writer.newest.time + 1
        threading.Timer(0.2, lambda: live.tick([((len(requests) + 100, "late", 1.0), 1)])).start()
        return {"n": 0, "time": time}

    control = Control(Answers(lambda *_: {}, lambda after, timeout: {"n": after, "time": 0}, lambda lags: {}, lambda *_: {}, recent))
    control.start()
    Announcement.mine(live.model.writer.epoch, control.address, control.token, None).write(live.model.lake)
    try:
        assert connection.execute("select count(*) from v").fetchone() == (4,)
        connection.execute("set real_time_recency = true")
        assert connection.execute("select count(*) from v").fetchone() == (5,)
        assert connection.pgconn.exec_(b"select count(*) from v").get_value(0, 0) == b"6"
        assert requests == [([live.v.id], 10.0)] * 2
        with connection.transaction():
            connection.execute("select count(*) from v")
            connection.execute("select count(*) from v")  # at the time of the first statement
        assert len(requests) == 3
        connection.execute("set real_time_recency_timeout = '100ms'")
        with pytest.raises(errors.QueryCanceled, match="real_time_recency_timeout"):
            connection.execute("select count(*) from v")
    finally:
        control.stop()
