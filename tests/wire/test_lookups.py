"""Tests look-ups by key: index, template and DuckDB return the same rows at every time."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import psycopg
import pyarrow as pa
import pytest

from tailgate.gateway.answers import index, lookups
from tailgate.gateway.mirrors import tables
from tailgate.gateway.mirrors.state import State
from tailgate.gateway.serving.lookup_plans import AccessPath
from tailgate.gateway.session.statements import parsing
from tailgate.lake.types import BOOL, INT8, TEXT, TIMESTAMPTZ, Field, arrow_schema
from testing.engine_process import until
from tests.wire.live import ROWS, Live


def wait_for_index(live: Live, relation: int, ask) -> None:
    """Runs `ask` with new keys until the index exists. A repeated key would use the cache of polls."""
    deadline = time.monotonic() + 10
    n = 1000
    while time.monotonic() < deadline:
        ask(n := n + 1)
        ready = [
            i for way, i in live.gateway.answers.lookups._indexes.items() if way.relation == relation and i is not None and i.time >= 0
        ]
        if ready:
            return
        time.sleep(0.02)
    raise AssertionError("no index")


def test_all_ways_agree_while_rows_change(live: Live, seed: int) -> None:
    chance = random.Random(seed)
    rows: dict[int, tuple[int, str, float]] = {n: (n, f"name {n}", n * 1.5) for n in range(100, 160)}
    live.tick([(row, 1) for row in rows.values()])
    with psycopg.connect(live.dsn, autocommit=True, prepare_threshold=0) as prepared, psycopg.connect(live.dsn, autocommit=True) as plain:

        def literal(n: int) -> list[tuple]:
            result = plain.pgconn.exec_(b"select name, amount, id from v where id = %d" % n)
            assert result.error_message == b""
            return [tuple(result.get_value(i, j) for j in range(3)) for i in range(result.ntuples)]

        wait_for_index(live, live.v.id, lambda n: prepared.execute("select * from v where id = %s", (n,)))
        assert literal(100) == literal(100) == [(b"name 100", b"150", b"100")]
        assert live.gateway.answers.lookups._templates
        for step in range(60):
            changes = []
            for n in chance.sample(range(100, 170), 5):
                if n in rows:
                    changes.append((rows.pop(n), -1))
                if chance.random() < 0.7:
                    rows[n] = (n, f"step {step}", float(step))
                    changes.append((rows[n], 1))
            live.tick(changes)
            for n in chance.sample(range(100, 170), 10):
                expected = [rows[n]] if n in rows else []
                assert prepared.execute("select * from v where id = %s", (n,)).fetchall() == expected
                assert prepared.execute("select * from v where id = %s and true or false", (n,)).fetchall() == expected
                assert literal(n) == [(row[1].encode(), b"%g" % row[2], b"%d" % row[0]) for row in expected]
        assert prepared.execute("select id from v where id = %s", (None,)).fetchall() == []
        with prepared.transaction():
            assert prepared.execute("select count(*) from v").fetchone() == (len(rows) + 4,)


def test_an_index_does_not_answer_while_it_has_a_part_of_a_tick(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    partly, complete, apply = threading.Event(), threading.Event(), index.Index.apply

    def held(self: index.Index, n: int, time: int, changes: index.NetChanges) -> Iterator[None]:
        for _ in apply(self, n, time, changes):
            yield
            partly.set()
            while not complete.is_set():
                yield

    with psycopg.connect(live.dsn, autocommit=True) as connection:
        ask = "select name from v where id = %s"
        wait_for_index(live, live.v.id, lambda n: connection.execute(ask, (n,)))
        monkeypatch.setattr(index, "PIECE_ROWS", 1)
        monkeypatch.setattr(index.Index, "apply", held)
        try:
            live.tick([(ROWS[0], -1), (ROWS[1], -1), ((0, "new 0", 0.0), 1), ((1, "new 1", 1.5), 1)])
            assert partly.wait(10)
            assert [connection.execute(ask, (id,)).fetchall() for id in (0, 1)] == [[("new 0",)], [("new 1",)]]
        finally:
            complete.set()


def test_an_index_answers_between_a_tick_and_the_turn_of_its_follower(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    progress, states = live.serving.progress, list[State]()
    with psycopg.connect(live.dsn, autocommit=True) as connection:

        def name(id: int) -> bytes | None:
            result = connection.pgconn.exec_(b"SELECT name FROM v WHERE id = %d" % id)
            assert result.error_message == b""
            return result.get_value(0, 0)

        wait_for_index(live, live.v.id, name)
        assert name(0) == name(0) == b"name 0"
        for id in (7, 8):
            with monkeypatch.context() as patch:
                patch.setattr(progress, "_tell", states.append)
                patch.setattr(parsing, "read", None)  # without the index, the text would be parsed
                time = live.model.tick({live.v.id: [((id, f"name {id}", 0.0), 1)]})
                until(lambda: progress.time == time)  # noqa: B023  # called at once
                assert name(id) == b"name %d" % id
            live.loop.call_soon_threadsafe(progress._tell, states[-1])
        live.tick([((7, "name 7", 0.0), -1), ((7, "new", 0.0), 1)])
        assert (name(7), name(8)) == (b"new", b"name 8")


@pytest.fixture
def large(live: Live, monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection]:
    """Gives `v` an index of DuckDB, as a mirror with 1,000,000 rows has one."""
    monkeypatch.setattr(tables, "ROWS_INDEXED_MIN", 10)
    monkeypatch.setattr(lookups, "ROWS_PER_LOOKUP", 1)
    live.tick([((n, f"name {n}", 0.0), 1) for n in range(100, 160)])
    with psycopg.connect(live.dsn, autocommit=True, prepare_threshold=0) as connection:
        connection.execute("TABLE v")
        table = live.serving.mirrors.table_of(live.v.id)
        assert table is not None
        assert table.finds_keys
        yield connection


def test_a_large_relation_has_an_index_after_more_lookups(live: Live, large: psycopg.Connection) -> None:
    """The fill of an index costs as much as many look-ups by DuckDB's own index."""
    for n in range(25):
        assert large.execute("SELECT name FROM v WHERE id = %s", (100 + n,)).fetchall() == [(f"name {100 + n}",)]
    assert not live.gateway.answers.lookups._indexes
    wait_for_index(live, live.v.id, lambda n: large.execute("SELECT name FROM v WHERE id = %s", (n,)))
    assert large.execute("SELECT name FROM v WHERE id = 100").fetchall() == [("name 100",)]


def test_lookups_of_dropped_relations_are_forgotten(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "ASKED_MAX", 3)
    counted, dropped = live.gateway.answers.lookups, [AccessPath(10_000 + n, (0,), (0,), 2) for n in range(4)]
    counted._asked.update(dict.fromkeys(dropped, 1))
    counted._indexes.update(dict.fromkeys(dropped))
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        connection.execute("SELECT name FROM v WHERE id = 1")
    assert [way.relation for way in counted._asked] == [live.v.id]
    assert not counted._indexes


def test_an_index_that_does_not_fit_is_not_filled(live: Live, large: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live.gateway.answers.lookups, "_most", 3_000)
    monkeypatch.setattr(index.Index, "apply", None)
    for n in range(100):
        assert large.execute("SELECT name FROM v WHERE id = %s", (n,)).fetchall() == [(row[1],) for row in ROWS if row[0] == n]
    assert list(live.gateway.answers.lookups._indexes.values()) == [None]


def test_lookups_are_not_refreshed_after_ticks(live: Live, large: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each client looks other keys up: their results would be computed again after each tick, in the event loop."""
    for n in range(20):
        large.execute("SELECT name FROM v WHERE id = %s", (100 + n,))
    monkeypatch.setattr(live.serving.queries, "run_now", None)
    live.tick([((100, "name 100", 0.0), -1), ((100, "new", 0.0), 1)])
    assert large.execute("SELECT name FROM v WHERE id = 100").fetchall() == [("new",)]
    assert large.execute("SELECT name FROM v WHERE id = 101").fetchall() == [("name 101",)]


def test_an_index_is_filled_in_small_pieces() -> None:
    """DuckDB answers meanwhile, and each answer needs several turns of the event loop."""
    fields = (Field("id", INT8), Field("name", TEXT))
    rows = pa.table([range(10_000), [f"name {n}" for n in range(10_000)], [1] * 10_000], schema=arrow_schema(fields, weight=True))
    filled = index.Index(fields, AccessPath(1, (0,), (0,), 2))
    in_chunks = pa.concat_tables([rows.slice(0, 3_000), rows.slice(3_000, 1), rows.slice(3_001)])
    assert len(list(filled.apply(1, 1, index.NetChanges(in_chunks)))) == 2 + 1 + 4  # FIRST_PIECE_KEYS
    for n in (0, 2_999, 3_000, 3_001, 9_999, 0):
        assert filled.find((n,), 1) == ((n, b"name %d" % n),)
    assert filled.find((10_000,), 1) == ()
    assert len(list(filled.apply(2, 2, index.NetChanges(rows)))) == 10_000 / index.PIECE_ROWS
    assert filled.find((9_999,), 1) == ((9_999, b"name 9999"),)
    by_name = index.Index(fields, AccessPath(1, (1,), (0,), 2, declared=True))
    assert len(list(by_name.apply(1, 1, index.NetChanges(rows)))) == 10_000 / index.FIRST_PIECE_ROWS
    assert by_name.find((b"name 7",), 1) == [(7, b"name 7")]


def test_keys_of_several_columns_and_types(live: Live) -> None:
    item = live.model.create("w", {"flag": BOOL, "channel": TEXT, "hour": TIMESTAMPTZ, "n": INT8}, (0, 1, 2))
    hour = 1_600_000_000_000_000
    live.model.tick({item.id: [((True, "a", hour, 1), 1), ((False, "it's", hour, 2), 1), ((None, "a", hour, 3), 1)]})
    live.tick()
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        at = connection.execute("select hour from w where n = 1").fetchone()
        assert at is not None
        ask = "select n from w where flag = %s and channel = %s and hour = %s"
        wait_for_index(live, item.id, lambda n: connection.execute(ask, (True, str(n), at[0])))
        assert connection.execute(ask, (True, "a", at[0])).fetchall() == [(1,)]
        assert connection.execute(ask, (False, "it's", at[0])).fetchall() == [(2,)]
        assert connection.execute(ask, (None, "a", at[0])).fetchall() == []


@pytest.mark.parametrize(
    "text",
    [
        b"select name from v where id = 1 -- 2",
        b"select name from v where id = 1 limit 1",
        b"select name, 5 from v where id = 1",
        b"select name from v where id = 1.0",
        b"select name from v where id = -1",
        b"select name from v where id > 1",
        b"select name from v where id = 1 or id = 2",
        b"select name from v where id = 1 and amount = 1.5",
    ],
)
def test_texts_without_a_template(live: Live, text: bytes) -> None:
    """The text is also not answered by another text's template."""
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        wait_for_index(live, live.v.id, lambda n: connection.execute("select name from v where id = %s", (n,)))
        connection.pgconn.exec_(b"select name from v where id = 1")
        keys = {key for key, _ in live.gateway.answers.lookups._templates.items()}
        first = connection.pgconn.exec_(text)
        assert first.error_message == b""
        assert {key for key, _ in live.gateway.answers.lookups._templates.items()} == keys


def test_a_failing_view_fails_here_too(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        ask = "select name from v where id = %s"
        wait_for_index(live, live.v.id, lambda n: connection.execute(ask, (n,)))
        live.model.tick({live.v.errors: [(("22012", "division by zero"), 1)]})
        live.tick()
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute(ask, (1,))
        live.model.tick({live.v.errors: [(("22012", "division by zero"), -1)]})
        live.tick()
        assert connection.execute(ask, (1,)).fetchall() == [("name 1",)]
