"""Tests SUBSCRIBE: Materialize's columns, options, times and messages, with every way to read it."""

from __future__ import annotations

import threading
from decimal import Decimal

import psycopg
import pytest
from psycopg import sql

import tailgate.gateway.encode.rows as rows
from tests.wire.live import ROWS, Live
from tests.wire.wire import Client, Query

NEW = (10, "ten", 10.0)


@pytest.fixture
def connection(live: Live):
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        yield connection


def names(cursor: psycopg.Cursor) -> list[str]:
    return [c.name for c in cursor.description or ()]


PLAIN = ["mz_timestamp", "mz_diff", "id", "name", "amount"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("v", PLAIN),
        ("to v with (progress)", ["mz_timestamp", "mz_progressed", *PLAIN[1:]]),
        ("(select name as b, id as a from v)", ["mz_timestamp", "mz_diff", "b", "a"]),
        ("v envelope upsert (key (name))", ["mz_timestamp", "mz_state", "name", "id", "amount"]),
        (
            "v envelope debezium (key (name))",
            ["mz_timestamp", "mz_state", "name", "before_id", "before_amount", "after_id", "after_amount"],
        ),
        ("v envelope upsert (key (id)) with (progress)", ["mz_timestamp", "mz_progressed", "mz_state", "id", "name", "amount"]),
        ("v within timestamp order by id", PLAIN),
        ("v with (progress = false) within timestamp order by 2 desc, mz_diff", PLAIN),
    ],
)
def test_columns(live: Live, connection: psycopg.Connection, words: str, expected: list[str]) -> None:
    with connection.transaction():
        cursor = connection.cursor()
        cursor.execute(sql.SQL(f"declare c cursor for subscribe {words}"))
        cursor.execute("fetch 0 c")
        assert names(cursor) == expected


def followed(connection: psycopg.Connection, words: str, up_to: int) -> list[tuple]:
    return connection.execute(sql.SQL(f"subscribe {words.replace('@', f' up to {up_to} ')}")).fetchall()


def test_envelopes(live: Live, connection: psycopg.Connection) -> None:
    start = live.serving.progress.time
    times = [
        live.tick([(NEW, 1)]),
        live.tick([(NEW, -1), ((10, "TEN", 11.0), 1)]),
        live.tick([((10, "TEN", 11.0), -1)]),
        live.tick([((11, "a", 1.0), 1), ((11, "b", 1.0), 1)]),
        live.tick([((12, "c", 1.0), 1), ((9, "c", 1.0), 1)]),
    ]
    a, b, c, d, e = map(Decimal, times)
    changes = followed(connection, f"v envelope upsert (key (id)) with (snapshot = false) as of {start} @", times[-1] + 1)
    assert changes == [
        (a, "upsert", 10, "ten", 10.0), (b, "upsert", 10, "TEN", 11.0), (c, "delete", 10, None, None),
        (d, "key_violation", 11, None, None), (e, "upsert", 9, "c", 1.0), (e, "upsert", 12, "c", 1.0),
    ]  # fmt: skip
    changes = followed(connection, f"v envelope debezium (key (id)) with (snapshot = false) as of {start} @", times[3])
    assert changes == [
        (a, "insert", 10, None, None, "ten", 10.0), (b, "upsert", 10, "ten", 10.0, "TEN", 11.0), (c, "delete", 10, "TEN", 11.0, None, None),
    ]  # fmt: skip
    changes = followed(connection, f"v envelope debezium (key (id)) as of {start} @", times[0])
    assert changes == [(Decimal(start), "insert", id, None, None, name, amount) for id, name, amount in ROWS]
    changes = followed(connection, f"v with (snapshot = false) as of {times[3]} within timestamp order by name, id desc @", times[-1] + 1)
    assert changes == [(e, 1, 12, "c", 1.0), (e, 1, 9, "c", 1.0)]


def test_progress_begins_with_the_time_it_starts_at(live: Live, connection: psycopg.Connection) -> None:
    start = live.serving.progress.time
    end = live.tick([(NEW, 1)])
    changes = followed(connection, f"v with (progress) as of {start} @", end)
    assert changes[0] == (Decimal(start), True, None, None, None, None)
    assert {row[:3] for row in changes[1:5]} == {(Decimal(start), False, 1)}
    assert all(row[1] for row in changes[5:])
    assert max(row[0] for row in changes) <= end


def test_times(live: Live, connection: psycopg.Connection) -> None:
    first = live.tick([(NEW, 1)])
    assert followed(connection, f"v as of {first} @", first) == []
    changes = followed(connection, f"v as of at least {first} @", first + 1)
    assert len(changes) == 5
    assert connection.execute(f"select count(*) from v as of at least {first - 1}").fetchone() == (4,)


@pytest.mark.parametrize(
    ("words", "sqlstate", "message"),
    [
        ("subscribe v as of null", "22000", "AS OF or UP TO should be castable to a (non-null) mz_timestamp value"),
        ("subscribe v as of -1", "22000", "AS OF or UP TO should be castable to a (non-null) mz_timestamp value"),
        ("subscribe v as of 1.2", "22000", "AS OF or UP TO should be castable to a (non-null) mz_timestamp value"),
        ("subscribe v as of 'NaN'::numeric", "22000", "AS OF or UP TO should be castable to a (non-null) mz_timestamp value"),
        ("subscribe v as of 'Infinity'::float8", "22000", "AS OF or UP TO should be castable to a (non-null) mz_timestamp value"),
        ("subscribe v as of 'infinity'::timestamp", "22000", "AS OF or UP TO should be castable to a (non-null) mz_timestamp value"),
        ("subscribe v up to '-infinity'::date", "22000", "AS OF or UP TO should be castable to a (non-null) mz_timestamp value"),
        ("set tailgate.as_of = 'infinity'", "22023", 'invalid value for parameter "tailgate.as_of": "infinity"'),
        ("subscribe v as of 'xxx'", "22000", "AS OF or UP TO should be castable to a (non-null) mz_timestamp value"),
        ("subscribe v up to 7/0", "22000", "AS OF or UP TO should be castable to a (non-null) mz_timestamp value"),
        ("subscribe v as of now()", "0A000", "calling an unmaterializable function in AS OF or UP TO not yet supported"),
        ("subscribe v up to now()", "0A000", "calling an unmaterializable function in AS OF or UP TO not yet supported"),
        ("subscribe v up to 5", "22000", "subscription lower bound (`AS OF`) is greater than its upper bound (`UP TO`): "),
        ("subscribe v envelope upsert (key (nope))", "42703", 'column "nope" does not exist'),
        ("subscribe v within timestamp order by nope", "42703", 'column "nope" does not exist'),
        ("subscribe v within timestamp order by id + 1", "42P10", "invalid ORDER BY in SUBSCRIBE WITHIN TIMESTAMP ORDER BY"),
        ("subscribe (select 1 as a, 2 as a) within timestamp order by a", "42702", 'column reference "a" is ambiguous'),
        ("subscribe v with (speed)", "22023", "unrecognized SUBSCRIBE option: speed"),
        ("tail v envelope upsert (key (id))", "0A000", "TAIL … ENVELOPE is not supported"),
    ],
)
def test_messages(live: Live, connection: psycopg.Connection, words: str, sqlstate: str, message: str) -> None:
    with pytest.raises(psycopg.Error) as raised:
        connection.execute(sql.SQL(words))
    assert raised.value.sqlstate == sqlstate
    assert (raised.value.diag.message_primary or "").startswith(message)


@pytest.mark.parametrize("format", ["text", "csv", "binary"])
def test_copy(live: Live, connection: psycopg.Connection, format: str) -> None:
    end = live.tick([(NEW, 1)])
    start = end - 1
    words = f"copy (subscribe v with (snapshot = false) as of {start} up to {end + 1}) to stdout (format {format})"
    with connection.cursor().copy(sql.SQL(words)) as copy:
        if format == "binary":
            copy.set_types(["numeric", "int8", "int8", "text", "float8"])
            assert list(copy.rows()) == [(Decimal(end), 1, *NEW)]
        else:
            separator = b"," if format == "csv" else b"\t"
            assert b"".join(copy) == separator.join([str(end).encode(), b"1", b"10", b"ten", b"10"]) + b"\n"


def test_stream(live: Live, connection: psycopg.Connection) -> None:
    stream = connection.cursor().stream("subscribe to v envelope upsert (key (id)) with (snapshot = false)")
    threading.Timer(0.3, lambda: live.tick([(NEW, 1)])).start()
    assert next(stream)[1:] == ("upsert", *NEW)
    stream.close()


def test_a_tick_is_encoded_once_for_all_followers(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Subscribers with the same output format share the encoded rows; all receive the same rows."""
    statements = [
        *["copy (tail v with (snapshot = false)) to stdout"] * 5,
        *["copy (subscribe v with (snapshot = false)) to stdout"] * 5,
        *["tail v with (snapshot = false)"] * 3,
        *["copy (subscribe v envelope upsert (key (id)) with (snapshot = false)) to stdout"] * 2,
    ]
    clients = [Client.connect(live.host, live.port) for _ in statements]
    for client, statement in zip(clients, statements, strict=True):
        client.send(Query(statement))
        assert client.message()
    sizes: list[int] = []
    original = rows.RowEncoder.field_values

    def counted(self: rows.RowEncoder, table):
        sizes.append(table.num_rows)
        return original(self, table)

    live.call(live.serving.progress.wait(live.serving.progress.time, 0.3))  # all have subscribed
    monkeypatch.setattr(rows.RowEncoder, "field_values", counted)
    live.tick([(NEW, 1), ((11, "x", 1.0), 1)])
    messages = [[client.message() for _ in range(2)] for client in clients]
    assert all(message is not None for pair in messages for message in pair)
    assert len({tuple(pair) for pair in messages[:10]}) == 1  # type: ignore[arg-type]
    assert len({tuple(pair) for pair in messages[10:13]}) == 1  # type: ignore[arg-type]
    assert sizes == [2, 2, 2]
    for client in clients:
        client.close()
