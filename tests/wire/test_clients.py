"""Tests with real clients: psql, psycopg 2 and 3, asyncpg. They behave as they do with PostgreSQL."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import threading
import time
import uuid
from datetime import datetime, timedelta
from decimal import Decimal
from struct import pack

import asyncpg
import psycopg
import psycopg2
import psycopg2.extras
import pytest

from tailgate.gateway.control import CONNECT_S
from tailgate.lake.errors import FeatureNotSupported
from testing.engine_process import until
from tests.wire.live import ROWS, Live
from tests.wire.wire import Bind, Client, Describe, Execute, Parse, Query, Sync, shown


def psql(live: Live, *commands: str, timeout: float = 20) -> str:
    words = ["psql", "-X", "-h", live.host, "-p", str(live.port), "-U", "ann", "-d", "shop"]
    for command in commands:
        words += ["-c", command]
    return subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=True).stdout


def test_psql(live: Live) -> None:
    assert (
        psql(live, "select id, amount from v order by id limit 2")
        == " id | amount \n----+--------\n  0 |      0\n  1 |    1.5\n(2 rows)\n\n"
    )
    assert psql(live, "\\d v").splitlines()[2:6] == [
        " id     | bigint           |           |          | ",
        " name   | text             |           |          | ",
        " amount | double precision |           |          | ",
        "Indexes:",
    ] or " id     | bigint" in psql(live, "\\d v")
    assert " public | v " in psql(live, "\\dm")
    assert "ann" in psql(live, "\\conninfo")
    assert psql(live, "copy (select id from v where id < 2 order by id) to stdout") == "0\n1\n"


def test_psql_says_where_the_mistake_is(live: Live) -> None:
    words = ["psql", "-X", "-h", live.host, "-p", str(live.port), "-U", "ann", "-d", "shop", "-c", "select nosuch from v"]
    output = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False).stderr
    assert output == 'ERROR:  column "nosuch" does not exist\nLINE 1: select nosuch from v\n               ^\n'


def test_psycopg3(live: Live) -> None:
    with psycopg.connect(live.dsn) as connection:
        assert connection.info.server_version == 150013
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            cursor.execute("select * from v order by id")
            assert cursor.fetchall() == ROWS
            cursor.execute("select id, name from v where id = %s", (1,))
            assert cursor.fetchone() == (1, "name 1")
            cursor.execute("select %s::text, %s::numeric(10,2), %s::bool, %s::int2[]", ("x", Decimal("1.5"), True, [1, None]))
            assert cursor.fetchone() == ("x", Decimal("1.50"), True, [1, None])
        connection.rollback()
        with connection.pipeline():
            cursors = [connection.execute("select id from v where id = %s", (i,)) for i in range(4)]
        assert [c.fetchone() for c in cursors] == [(0,), (1,), (2,), (3,)]
        with connection.cursor(name="server") as server:
            server.execute("select id from v order by id")
            assert server.fetchmany(3) == [(0,), (1,), (2,)]
            assert server.fetchall() == [(3,)]
        with connection.transaction(), pytest.raises(psycopg.errors.UndefinedTable), connection.transaction():
            connection.execute("select * from nobody")
        with connection.cursor().copy("copy (select id, name from v where id < 2 order by id) to stdout (format binary)") as copy:
            copy.set_types(["int8", "text"])
            assert list(copy.rows()) == [(0, "name 0"), (1, "name 1")]


def test_every_type_can_be_a_parameter(live: Live) -> None:
    day = datetime(2026, 1, 2, 3, 4, 5, 6)
    spans = (timedelta(days=40, seconds=2), [timedelta(seconds=1), None])
    values = (day, day.date(), day.time(), *spans, uuid.UUID(int=5), b"\0\xff", Decimal("-1.50"))
    with psycopg.connect(live.dsn) as connection:
        for hole in ("%t", "%b"):
            assert connection.execute(f"select {', '.join([hole] * len(values))}".encode(), values).fetchone() == values
            row = connection.execute(f"select count(*) from v where {hole} < interval '2 days'".encode(), (timedelta(days=1),)).fetchone()
            assert row == (4,)


def test_columns_have_the_relation_that_they_come_from(live: Live) -> None:
    """Drivers need the relation and column number to write a row back. Both are 0 for expressions."""
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        for query in (
            "select amount, id, id + 1 from v where id > 0 order by name limit 2",
            "select x.amount, y.id, 1 from v x join v y using (id)",
            "select amount, id, count(*) from v group by id, amount order by 2 limit 2",
        ):
            for values in ((), (b"1",)):
                result = connection.pgconn.exec_params((query + (" offset $1" if values else "")).encode(), values)
                assert [(result.ftable(i), result.ftablecol(i)) for i in range(3)] == [(live.v.id, 3), (live.v.id, 1), (0, 0)]


def test_psycopg2(live: Live) -> None:
    connection = psycopg2.connect(live.dsn)
    with connection, connection.cursor(cursor_factory=psycopg2.extras.DictCursor) as cursor:
        cursor.execute("select * from v where id = %s", (1,))
        assert dict(cursor.fetchone()) == {"id": 1, "name": "name 1", "amount": 1.5}
        with pytest.raises(psycopg2.errors.UndefinedColumn):
            cursor.execute("select nosuch from v")
        with pytest.raises(psycopg2.errors.InFailedSqlTransaction):
            cursor.execute("select 1")
    with connection, connection.cursor("server") as cursor:
        cursor.execute("select id from v order by id")
        assert [row[0] for row in cursor] == [0, 1, 2, 3]
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("select * from v where id > 100")
        assert cursor.fetchall() == []
    connection.close()


def test_asyncpg(live: Live) -> None:
    async def work() -> None:
        connection = await asyncpg.connect(host=live.host, port=live.port, user="ann", database="shop")
        assert [tuple(row) for row in await connection.fetch("select * from v order by id")] == ROWS
        assert await connection.fetchval("select name from v where id = $1", 1) == "name 1"
        assert await connection.fetchval("select $1::text", None) is None
        async with connection.transaction():
            assert [row["id"] async for row in connection.cursor("select id from v order by id", prefetch=2)] == [0, 1, 2, 3]
        with pytest.raises(asyncpg.UndefinedTableError):
            await connection.fetch("select * from nobody")
        with pytest.raises(asyncio.TimeoutError):
            await connection.fetch("tail v", timeout=0.5)
        statement = await connection.prepare("select id, amount from v where id < $1 order by id")
        assert [a.type.name for a in statement.get_attributes()] == ["int8", "float8"]
        assert [p.name for p in statement.get_parameters()] == ["int8"]
        assert len(await statement.fetch(2)) == 2
        await connection.reset()
        await connection.close()

    asyncio.run(work())


def test_a_block_reads_at_one_time(live: Live) -> None:
    with psycopg.connect(live.dsn) as connection:
        before = connection.execute("select count(*) from v").fetchone()
        live.tick([((10, "ten", 10.0), 1)])
        assert connection.execute("select count(*) from v").fetchone() == before
        connection.commit()
        assert connection.execute("select count(*) from v").fetchone() == (5,)


def test_polls_are_fresh(live: Live) -> None:
    """The cache of encoded results never returns an older time than the mirrors, in either protocol."""
    with psycopg.connect(live.dsn, autocommit=True) as simple, psycopg.connect(live.dsn, autocommit=True, prepare_threshold=0) as prepared:
        for n in range(10, 60):
            live.tick([((n, "x", 1.0), 1)])
            assert simple.execute("select max(id) from v").fetchone() == (n,)
            assert prepared.execute("select max(id) from v where id > %s", (0,)).fetchone() == (n,)
        assert live.gateway.answers.polls._polls


def test_settings_are_part_of_the_key(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as one, psycopg.connect(live.dsn, autocommit=True) as other:
        other.execute("set timezone = 'Asia/Tokyo'")
        text = "select '2020-01-01 00:00:00+00'::timestamptz"
        for _ in range(3):
            assert one.pgconn.exec_(text.encode()).get_value(0, 0) == b"2020-01-01 00:00:00+00"
            assert other.pgconn.exec_(text.encode()).get_value(0, 0) == b"2020-01-01 09:00:00+09"


def test_cancel(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        timer = threading.Timer(0.5, connection.cancel_safe)
        timer.start()
        start = time.monotonic()
        slow = "select count(*) from " + ", ".join(f"v a{i}" for i in range(22))  # 4^22 rows: too many for any machine
        with pytest.raises(psycopg.errors.QueryCanceled, match="canceling statement due to user request"):
            connection.execute(slow)
        assert time.monotonic() - start < 5
        connection.execute("set statement_timeout = '300ms'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="canceling statement due to statement timeout"):
            connection.execute(slow)
        connection.execute("reset statement_timeout")
        assert connection.execute("select 1").fetchone() == (1,)


def test_an_idle_block_is_ended(live: Live) -> None:
    client = Client.connect(live.host, live.port, idle_in_transaction_session_timeout="300ms")
    client.send(Query("begin"))
    list(client.until_ready())
    assert (
        shown(*(client.message(5) or ("?", b"")))
        == "ErrorResponse S=FATAL C=25P03 M='terminating connection due to idle-in-transaction timeout'"
    )
    client.close()


def test_a_wrong_cancel_key_does_nothing(live: Live) -> None:
    client = Client.connect(live.host, live.port)
    with socket.create_connection((live.host, live.port)) as other:
        other.sendall(pack("!IIII", 16, 80877102, client.key[0], 0))
        assert other.recv(1) == b""
    client.send(Query("select 1"))
    assert [letter for letter, _ in client.until_ready()] == ["T", "D", "C", "Z"]
    client.close()


def test_encryption_is_refused_politely(live: Live) -> None:
    with socket.create_connection((live.host, live.port)) as raw:
        for code in (80877104, 80877103):
            raw.sendall(pack("!II", 8, code))
            assert raw.recv(1) == b"N"
        body = pack("!I", 196610) + b"user\0a\0_pq_.x\0y\0\0"
        raw.sendall(pack("!I", len(body) + 4) + body)
        assert raw.recv(4096).startswith(b"v\0\0\0\x13\0\3\0\2\0\0\0\1_pq_.x\0R")


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n\r\n", pack("!II", 8, 0x00020000), b"\0\0\0\x04"])
def test_an_invalid_startup_packet_closes_the_connection(live: Live, garbage: bytes) -> None:
    with socket.create_connection((live.host, live.port), timeout=5) as raw:
        raw.sendall(garbage)
        response = b""
        while data := raw.recv(4096):
            response += data
        assert response == b"" or response[:1] == b"E"


def test_a_protocol_error_ends_the_connection_alone(live: Live) -> None:
    client = Client.connect(live.host, live.port)
    client.send(b"y\0\0\0\4")
    assert shown(*(client.message() or ("?", b""))) == "ErrorResponse S=FATAL C=08P01 M='invalid frontend message type 121'"
    assert client.message() is None
    client.close()
    with psycopg.connect(live.dsn) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_one_statement_in_many_pieces(live: Live) -> None:
    client = Client.connect(live.host, live.port)
    for byte in Parse("", "select id from v where id = $1") + Bind("", "", ["1"]) + Describe("P", "") + Execute() + Sync():
        client.send(bytes([byte]))
    assert [letter for letter, _ in client.until_ready()] == ["1", "2", "T", "D", "C", "Z"]
    client.close()


def test_large_results_wait_for_a_slow_reader(live: Live) -> None:
    """A client that does not read blocks its statement only. It receives all rows in the end."""
    live.tick([((n, "x" * 200, 1.0), 1) for n in range(100, 60_100)])
    slow = Client.connect(live.host, live.port)
    slow.send(Query("select * from v"))
    until(lambda: [c for c in live.server.connections if c._task is not None and c._writable is not None])
    with psycopg.connect(live.dsn) as connection:
        assert connection.execute("select count(*) from v").fetchone() == (60_004,)
    (other,) = [c for c in live.server.connections if c._task is not None]
    assert other._transport is not None
    assert other._transport.get_write_buffer_size() < 8 * 1024 * 1024
    assert sum(letter == "D" for letter, _ in slow.until_ready()) == 60_004
    slow.close()


def test_changing_the_catalog_without_an_engine(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        start = time.monotonic()
        with pytest.raises(psycopg.errors.SystemError, match="the engine is not running"):
            connection.execute("create materialized view w as select id from v")
        assert time.monotonic() - start < CONNECT_S / 2  # it does not wait for another engine
        assert connection.execute("select count(*) from v").fetchone() == (4,)
        with pytest.raises(psycopg.errors.SystemError, match="the engine is not running"), connection.transaction():
            connection.execute("create table t (a int)")


def test_show(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        assert connection.execute("show materialized views").fetchall() == [("v", "engine is not running", None, None, None)]
        assert connection.execute("show sources").fetchall() == []
        assert connection.execute("show columns from v").fetchall()[0][::2] == ("id", "bigint")
        assert len(connection.execute("show all").fetchall()) > 40


def test_stopping_tells_the_clients(live: Live) -> None:
    client = Client.connect(live.host, live.port)
    live.call(live.server.stop())
    assert (
        shown(*(client.message() or ("?", b""))) == "ErrorResponse S=FATAL C=57P01 M='terminating connection due to administrator command'"
    )
    assert client.message() is None
    client.close()


def test_only_this_machine_is_listened_to(live: Live) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", ""):
        with pytest.raises(FeatureNotSupported):
            live.call(live.server.listen(host, 0))
