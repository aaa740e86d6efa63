"""Tests TAIL with cursor, COPY and plain rows: columns, order, timing, end, guarantees."""

from __future__ import annotations

import threading
import time
from decimal import Decimal
from typing import Any

import psycopg
import psycopg2
import pytest
from psycopg import sql

from tests.wire.live import ROWS, Live
from tests.wire.wire import Client, Query

NEW = (10, "ten", 10.0)


@pytest.fixture
def connection(live: Live):
    with psycopg.connect(live.dsn) as connection:
        yield connection


def declared(connection: psycopg.Connection, tail: str) -> psycopg.Cursor:
    cursor = connection.cursor()
    cursor.execute(sql.SQL(f"declare c cursor for {tail}"))
    return cursor


def test_columns_and_snapshot(live: Live, connection: psycopg.Connection) -> None:
    cursor = declared(connection, "tail v")
    cursor.execute("fetch all c")
    assert [(c.name, c.type_code) for c in cursor.description or ()] == [
        ("mz_timestamp", 1700),
        ("mz_diff", 20),
        ("id", 20),
        ("name", 25),
        ("amount", 701),
    ]
    rows = cursor.fetchall()
    assert cursor.statusmessage == "FETCH 4"
    assert sorted(rows, key=lambda row: row[2]) == [(Decimal(live.serving.progress.time), 1, *row) for row in ROWS]


def test_progress_columns(live: Live, connection: psycopg.Connection) -> None:
    cursor = declared(connection, "tail v with (progress)")
    cursor.execute("fetch all c with (timeout = '100ms')")
    assert [c.name for c in cursor.description or ()] == ["mz_timestamp", "mz_progressed", "mz_diff", "id", "name", "amount"]
    rows = cursor.fetchall()
    now = live.serving.progress.time
    assert {row[:3] for row in rows[:4]} == {(Decimal(now), False, 1)}
    assert rows[4] == (Decimal(now + 1), True, None, None, None, None)


def test_changes_are_in_the_order_of_their_times(live: Live, connection: psycopg.Connection) -> None:
    cursor = declared(connection, "tail v with (snapshot = false)")
    cursor.execute("fetch all c with (timeout = '0s')")
    assert cursor.fetchall() == []
    first = live.tick([(NEW, 1)])
    second = live.tick([(NEW, -1), ((10, "TEN", 10.0), 1)])
    cursor.execute("fetch all c with (timeout = '300ms')")
    rows = cursor.fetchall()
    assert rows[0] == (Decimal(first), 1, *NEW)
    assert sorted(rows[1:]) == [(Decimal(second), -1, *NEW), (Decimal(second), 1, 10, "TEN", 10.0)]


def test_fetch_without_timeout_waits_for_the_first_row(live: Live, connection: psycopg.Connection) -> None:
    cursor = declared(connection, "tail v with (snapshot = false)")
    timer = threading.Timer(0.5, lambda: live.tick([(NEW, 1), ((11, "b", 1.0), 1)]))
    timer.start()
    start = time.monotonic()
    cursor.execute("fetch 10 c")
    assert 0.4 < time.monotonic() - start < 5
    assert len(cursor.fetchall()) == 2
    timer.join()


def test_fetch_timing(live: Live, connection: psycopg.Connection) -> None:
    cursor = declared(connection, "tail v")
    start = time.monotonic()
    cursor.execute("fetch 3 c with (timeout = '1h')")
    assert len(cursor.fetchall()) == 3
    assert time.monotonic() - start < 60
    start = time.monotonic()
    cursor.execute("fetch 4 c with (timeout = '1s')")
    assert len(cursor.fetchall()) == 1
    assert time.monotonic() - start >= 0.95
    cursor.execute("fetch 0 c")
    assert cursor.statusmessage == "FETCH 0"
    assert len(cursor.description or ()) == 5


@pytest.mark.parametrize(
    ("words", "sqlstate", "message"),
    [
        ("fetch 1 c with (timeout = '-1s')", "22023", "invalid TIMEOUT: cannot convert negative interval to duration"),
        ("fetch 1 c with (timeout = '25h')", "22023", "timeout out of range"),
        ("fetch 1 nobody", "34000", 'cursor "nobody" does not exist'),
        ("declare d cursor for tail nobody", "42P01", 'relation "nobody" does not exist'),
        ("declare d cursor with hold for tail v", "0A000", "WITH HOLD is unsupported for cursors of TAIL"),
        ("fetch 1 e", "22003", "out of range integral type conversion attempted"),
        ("fetch 1 f", "22023", "Timestamp (5) is not valid for all inputs"),
    ],
)
def test_messages(live: Live, connection: psycopg.Connection, words: str, sqlstate: str, message: str) -> None:
    cursor = declared(connection, "tail v")
    cursor.execute("declare e cursor for tail v as of -1")
    cursor.execute("declare f cursor for tail v as of 5")
    with pytest.raises(psycopg.Error) as raised:
        cursor.execute(words)
    assert raised.value.sqlstate == sqlstate
    assert message in str(raised.value)


def test_outside_a_block(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection, pytest.raises(psycopg.errors.NoActiveSqlTransaction):
        connection.execute("declare c cursor for tail v")


def test_as_of(live: Live, connection: psycopg.Connection) -> None:
    """The snapshot in the past has the rows of its time. Without a snapshot, later changes follow."""
    before = live.serving.progress.time
    first = live.tick([(NEW, 1)])
    live.tick([(NEW, -1)])
    cursor = declared(connection, f"tail v as of {first}")
    cursor.execute("fetch all c with (timeout = '200ms')")
    rows = cursor.fetchall()
    assert {row[0] for row in rows[:5]} == {Decimal(first)}
    assert [row[1:] for row in rows[5:]] == [(-1, *NEW)]
    cursor.execute(f"declare d cursor for tail v with (snapshot = false) as of {before}")
    cursor.execute("fetch all d with (timeout = '200ms')")
    assert [row[1:] for row in cursor.fetchall()] == [(1, *NEW), (-1, *NEW)]


def test_as_of_the_future_waits(live: Live, connection: psycopg.Connection) -> None:
    later = int(time.time() * 1000) + 700
    cursor = declared(connection, f"tail v as of {later}")
    cursor.execute("fetch all c with (timeout = '200ms')")
    assert cursor.fetchall() == []
    time.sleep(0.8)
    live.tick([(NEW, 1)])
    cursor.execute("fetch all c with (timeout = '500ms')")
    rows = cursor.fetchall()
    assert [row[0] for row in rows[:4]] == [Decimal(later)] * 4
    assert rows[4][1:] == (1, *NEW)


def test_progress_every_second_while_nothing_happens(live: Live, connection: psycopg.Connection) -> None:
    cursor = declared(connection, "tail v with (progress, snapshot = false)")
    start = time.monotonic()
    cursor.execute("fetch 3 c with (timeout = '60s')")
    assert time.monotonic() - start >= 2.5
    assert [row[1] for row in cursor.fetchall()] == [True] * 3


def test_copy(live: Live) -> None:
    """Each batch arrives at once, and the client may disconnect at any time."""
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        cursor = connection.cursor()
        with cursor.copy("copy (tail v) to stdout") as copy:
            rows = sorted(bytes(copy.read()) for _ in range(4))
            assert rows[1] == b"%d\t1\t1\tname 1\t1.5\n" % live.serving.progress.time
            at = live.tick([((7, "a\tb", None), 1)])
            assert bytes(copy.read()) == b"%d\t1\t7\ta\\tb\t\\N\n" % at  # nothing follows it
            connection.cancel_safe()
            with pytest.raises(psycopg.errors.QueryCanceled):
                copy.read()
        assert connection.execute("show server_version").fetchone() == ("15.13",)


@pytest.mark.parametrize("format", ["csv", "binary"])
def test_copy_formats(live: Live, format: str) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        cursor = connection.cursor()
        with cursor.copy(f"copy (tail v) to stdout (format {format})") as copy:
            if format == "binary":
                copy.set_types(["numeric", "int8", "int8", "text", "float8"])
                rows: list[Any] = [copy.read_row() for _ in range(4)]
                assert sorted(rows, key=lambda row: row[2]) == [(Decimal(live.serving.progress.time), 1, *row) for row in ROWS]
            else:
                assert min(bytes(copy.read()) for _ in range(4)) == b"%d,1,0,name 0,0\n" % live.serving.progress.time
            connection.cancel_safe()
            with pytest.raises(psycopg.errors.QueryCanceled):
                list(copy)


def test_plain_rows_are_streamed(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        stream = connection.cursor().stream("tail v")
        assert sorted(next(stream)[2] for _ in range(4)) == [0, 1, 2, 3]
        at = live.tick([(NEW, 1)])
        assert next(stream) == (Decimal(at), 1, *NEW)
        connection.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled):
            next(stream)


def test_psycopg2(live: Live) -> None:
    connection = psycopg2.connect(live.dsn)
    cursor = connection.cursor()
    cursor.execute("declare c cursor for tail v")
    cursor.execute("fetch all c with (timeout = '1s')")
    assert len(cursor.fetchall()) == 4
    live.tick([(NEW, 1)])
    cursor.execute("fetch all c with (timeout = '200ms')")
    assert [row[1:] for row in cursor.fetchall()] == [(1, *NEW)]
    connection.close()


def test_a_query_is_followed(live: Live, connection: psycopg.Connection) -> None:
    """A filter is applied to each change; other queries are compared between times.

    Both give net changes.
    """
    cursor = declared(connection, "tail (select name from v where id >= 10)")
    cursor.execute("declare d cursor for tail (select count(*) as n, max(amount) as top from v)")
    cursor.execute("fetch all d with (timeout = '300ms')")
    assert [row[1:] for row in cursor.fetchall()] == [(1, 4, 4.5)]
    live.tick([(NEW, 1), ((5, "x", 0.0), 1)])
    cursor.execute("fetch all c with (timeout = '300ms')")
    assert [row[1:] for row in cursor.fetchall()] == [(1, "ten")]
    cursor.execute("fetch all d with (timeout = '300ms')")
    assert sorted(row[1:] for row in cursor.fetchall()) == [(-1, 4, 4.5), (1, 6, 10.0)]


def test_a_constant_query_ends(live: Live, connection: psycopg.Connection) -> None:
    cursor = declared(connection, "tail (select 1 as a)")
    cursor.execute("fetch all c")
    assert cursor.fetchall() == [(Decimal(2**64 - 1), 1, 1)]
    cursor.execute("tail (select 2 as a) with (snapshot = false)")
    assert cursor.fetchall() == []


def test_the_past_can_be_read(live: Live) -> None:
    before = live.serving.progress.time
    live.tick([(NEW, 1)])
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        assert connection.execute("select count(*) from v").fetchone() == (5,)
        assert connection.execute(f"select count(*) from v as of {before}").fetchone() == (4,)
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            connection.execute("select count(*) from v as of 5")


def test_up_to(live: Live) -> None:
    first = live.tick([(NEW, 1)])
    second = live.tick([(NEW, -1)])
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        rows = connection.execute(f"subscribe to v with (snapshot = false) as of {first - 1} up to {second}").fetchall()
        assert rows == [(Decimal(first), 1, *NEW)]


def test_a_follower_that_does_not_read_costs_little(live: Live) -> None:
    """The server keeps a position in the log for the client; unread rows are not buffered."""
    slow = Client.connect(live.host, live.port)
    slow.send(Query("copy (tail v) to stdout"))
    assert slow.message()
    for n in range(30):
        live.tick([((1000 + n * 1000 + i, "x" * 100, 0.0), 1) for i in range(1000)])
    (connection,) = live.server.connections
    assert connection._transport is not None
    assert connection._transport.get_write_buffer_size() < 2 * 1024 * 1024
    row_count = 0
    while row_count < 30_004:
        message = slow.message()
        assert message is not None
        row_count += message[0] == "d"
    slow.close()


def test_a_disconnected_client_is_detected(live: Live) -> None:
    client = Client.connect(live.host, live.port)
    client.send(Query("copy (tail v) to stdout"))
    assert client.message()
    assert len(live.server.connections) == 1
    client.close()
    deadline = time.monotonic() + 5
    while (live.server.connections or live.serving.followers.feeds) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not live.server.connections
    assert not live.serving.followers.feeds  # no reader is left


def test_a_follower_sees_the_end_of_a_dropped_relation(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        stream = connection.cursor().stream("tail v with (snapshot = false)")
        threading.Timer(0.3, lambda: (live.tick([(NEW, 1)]), live.model.drop(live.v))).start()
        assert next(stream)[2:] == NEW
        with pytest.raises(psycopg.errors.UndefinedTable):
            next(stream)


def test_a_follower_ends_with_the_view_s_error(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        stream = connection.cursor().stream("tail v with (snapshot = false)")
        threading.Timer(0.3, lambda: live.model.tick({live.v.errors: [(("22012", "division by zero"), 1)]})).start()
        with pytest.raises(psycopg.errors.DivisionByZero):
            next(stream)


def test_suspended_portals(live: Live) -> None:
    """Execute with a row limit returns the available rows; the next Execute continues."""
    from tests.wire.wire import Bind, Execute, Flush, Parse, shown

    client = Client.connect(live.host, live.port)
    client.send(Query("begin"))
    list(client.until_ready())
    client.send(Parse("", "tail v") + Bind("p", "") + Execute("p", 3) + Flush())
    messages = [shown(*(client.message() or ("?", b""))) for _ in range(6)]
    assert [line.split()[0] for line in messages] == ["ParseComplete", "BindComplete", "DataRow", "DataRow", "DataRow", "PortalSuspended"]
    client.send(Execute("p", 3) + Flush())
    assert [shown(*(client.message() or ("?", b""))).split()[0] for _ in range(2)] == ["DataRow", "PortalSuspended"]
    client.close()
