"""Tests that polls whose rows ticks update give the rows that DuckDB gives, and are not run again."""

from __future__ import annotations

import datetime
import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from tailgate.gateway.answers import live_rows, polls
from tailgate.gateway.mirrors import deferral
from tailgate.gateway.mirrors.mirrors import Mirrors
from tailgate.gateway.serving.queries import Queries
from tailgate.lake.types import FLOAT8, INT8, INTERVAL, Field, Type
from tests.gateway.serving.model_lake import Row
from tests.gateway.serving.polling import COLUMNS, World, row_of

SEVERAL = 3  # ticks with each number of rows


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("prepared", [True, False])
def test_rows_are_those_of_duckdb(slow: World, seed: int, keyed: bool, binary: bool, prepared: bool) -> None:
    """After each tick, for all columns, some of them in another order, and without a key."""
    chance, client = random.Random(seed), slow.client
    client.prepare_threshold = 0 if prepared else None
    item = slow.model.create("v", COLUMNS, (0,) if keyed else None)
    queries = [
        ("SELECT * FROM v", ()),
        ("SELECT price, id FROM v", ()),
        ("SELECT name FROM (SELECT id, name, price FROM v) AS w", ()),
        ("SELECT id - 3, upper(name) FROM v WHERE price > %s OR name IS NULL", (2,)),
        ("SELECT id, name || %s FROM v WHERE amount IS NOT NULL ORDER BY id DESC, name, price, amount", ("!",)),
        ("SELECT name, price * 2 FROM v ORDER BY price NULLS FIRST, id DESC LIMIT 7 OFFSET 2", ()),
        ("SELECT name FROM v WHERE id > %s ORDER BY upper(name) DESC, amount LIMIT %s", (3, 5)),
    ]
    for count in [*[5] * SEVERAL, *[100] * SEVERAL, 0, *[5] * SEVERAL]:
        now, changes = slow.model.now[item.id], list[tuple[Row, int]]()
        for old in chance.sample(list(now), min(count, len(now)) // 2):
            changes.append((old, -now[old]))
        removed = {row[0] for row, _ in changes}
        ids = [id for id in range(150) if not keyed or id not in {row[0] for row in now} or id in removed]
        changes += [(row_of(chance, id), 1 if keyed else chance.randint(1, 2)) for id in chance.sample(ids, min(count, len(ids)))]
        slow.tick({item.id: changes})
        for query, values in queries:
            live, read = (slow.raw(query, binary, values, is_block=is_block) for is_block in (False, True))
            assert Counter(live) == Counter(read)
            assert live == read or "ORDER BY" not in query
    assert slow.runs == len(queries)


def test_rows_of_other_types(slow: World, seed: int) -> None:
    """The bytes of a value from DuckDB are those of the same value from the log."""
    chance = random.Random(seed)
    zone = datetime.timezone.utc
    values: dict[str, tuple[Type, list[object]]] = {
        "id": (INT8, list(range(1_000))),
        "f": (FLOAT8, [float("nan"), -0.0, 1e-7, None]),
        "r": (Type("float4"), [float("nan"), 0.5, None]),
        "a": (Type("int4", is_array=True), [(), (1, None, 2), None]),
        "t": (Type("text", is_array=True), [("", "a,b", None), ("ä",), None]),
        "j": (Type("jsonb"), ['{"a": 1.50}', "null", None]),
        "d": (Type("date"), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]),
        "z": (Type("timestamptz"), [datetime.datetime(2026, 3, 29, 1, 30, 0, 1, zone), None]),
        "b": (Type("bool"), [True, False, None]),
        "y": (Type("bytea"), [b"", b"\0\xff", None]),
        "i": (INTERVAL, [(("days", 1), ("micros", 0), ("months", 0)), (("days", 0), ("micros", 86_400_000_001), ("months", 0)), None]),
        "c": (Type("bpchar"), ["a", "a ", "b", None]),
        "n": (Type("numeric", (38, 10)), [Decimal("-0.0000000001"), Decimal(10) ** 27, None]),
    }
    item = slow.model.create("v", {name: type for name, (type, _) in values.items()}, None)
    slow.client.execute("SET TIME ZONE 'Asia/Kathmandu'")
    rows = [tuple(chance.choice(several) for _, several in values.values()) for _ in range(60)]
    order = ", ".join(f"{name} {chance.choice(['DESC', 'NULLS FIRST', ''])}" for name in chance.sample(list(values), len(values)))
    dates = "SELECT id, CAST(z AS date) FROM v ORDER BY CAST(z AS text), id LIMIT 20"
    queries = ["SELECT * FROM v", dates, f"SELECT id, r, a, t, j, d, z, b, y, i, c, n FROM v ORDER BY {order} LIMIT 20"]
    for _ in range(4):
        now = slow.model.now[item.id]
        removed = [(row, -count) for row, count in now.items() if chance.random() < 0.4]
        slow.tick({item.id: [*removed, *((row, chance.randint(1, 3)) for row in rows if row not in now)]})
        for binary in (False, True):
            for query in queries:
                live, read = (slow.raw(query, binary, is_block=is_block) for is_block in (False, True))
                assert Counter(live) == Counter(read)
                assert live == read or "LIMIT" not in query
    assert slow.runs == 2 * len(queries)


def test_rows_to_which_a_tick_cannot_be_applied_are_read_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a tick with many changes, and after bytes of a row that is removed are not those of a row."""
    item = world.model.create("v", COLUMNS, (0,))
    monkeypatch.setattr(live_rows, "CHANGES_MAX", 2)

    def read(runs: int) -> None:
        for _ in range(2):
            assert len(world.rows("SELECT name, id FROM v")) == len(world.model.now[item.id])
        assert world.runs == runs

    world.tick({})
    read(0)  # a statement that is sent once
    for id in (1, 2):
        world.tick({item.id: [((id, "a", None, None), 1)]})
        read(1)
    world.tick({item.id: [((id, "a", None, None), 1) for id in (3, 4, 5)]})
    read(2)
    for poll in world.cached():
        assert poll.live is not None
        poll.live._copies = {(b"", b"another row"): 1, **dict.fromkeys(list(poll.live._copies)[1:], 1)}
    world.tick({item.id: [((1, "a", None, None), -1)]})
    read(3)


@pytest.mark.parametrize("limit", ["CHANGES_MAX", "CHANGES_BYTES_MAX"])
def test_ticks_with_many_changes_together(world: World, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll that is some ticks behind is read again, because the event loop would apply the changes of all of them at once."""
    item = world.model.create("v", COLUMNS, (0,))
    world.tick({})
    assert len(world.rows("SELECT name FROM v")) == 0
    world.tick({item.id: [((1, "a", None, None), 1)]})
    assert len(world.rows("SELECT name FROM v")) == 1
    monkeypatch.setattr(polls, "REFRESH_BUDGET_S", -1.0)
    changes = [((id, "a", None, None), 1) for id in (2, 3)]
    limits = {"CHANGES_MAX": 3, "CHANGES_BYTES_MAX": world.model.table(item.id, changes).nbytes * 3 // 2}
    monkeypatch.setattr(live_rows, limit, limits[limit])
    world.tick({item.id: changes})
    assert len(world.rows("SELECT name FROM v")) == 3
    assert world.runs == 1
    world.tick({item.id: [((id, "a", None, None), 1) for id in (4, 5)]})
    world.tick({item.id: [((id, "a", None, None), 1) for id in (6, 7)]})
    assert len(world.rows("SELECT name FROM v")) == 7
    assert world.runs == 2


def test_a_tick_that_cannot_be_applied(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next request reads the poll again, and later ticks update it again."""
    item = world.model.create("v", COLUMNS, (0,))
    world.tick({})
    assert world.rows("SELECT id FROM v") == []
    world.tick({item.id: [((1, "a", None, None), 1)]})
    assert world.rows("SELECT id FROM v") == [(1,)]
    (poll,) = world.cached()
    with monkeypatch.context() as failing:
        failing.setattr(live_rows.LiveRows, "_add", lambda self, changes: 1 / 0)
        world.tick({item.id: [((2, "a", None, None), 1)]})
        deadline = time.monotonic() + 10
        while poll.live is not None and time.monotonic() < deadline:
            time.sleep(0.001)
    world.tick({item.id: [((3, "a", None, None), 1)]})
    assert world.rows("SELECT id FROM v") == [(1,), (2,), (3,)]
    world.tick({item.id: [((4, "a", None, None), 1)]})
    assert world.rows("SELECT id FROM v") == [(1,), (2,), (3,), (4,)]
    assert world.runs == 2


def test_the_catalog_changes_before_a_poll_is_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its result has the columns of the time of the statement, and is not the answer of later ones."""
    item, run = world.model.create("v", COLUMNS, (0,)), Queries.read_at_entry
    world.tick({})
    assert world.rows("SELECT * FROM v") == []
    world.tick({item.id: [((1, "a", None, None), 1)]})

    async def later(queries: Queries, *arguments: Any) -> Any:
        monkeypatch.setattr(Queries, "read_at_entry", run)
        world.model.put(replace(item, columns=(*item.columns, Field("more", INT8))))
        await world.served.serving.progress.wait(world.model.writer.newest.time - 1, 10)
        return await run(queries, *arguments)

    monkeypatch.setattr(Queries, "read_at_entry", later)
    assert world.rows("SELECT * FROM v") == [(1, "a", None, None)]
    assert world.rows("SELECT * FROM v") == [(1, "a", None, None, None)]


def test_errors_that_end_while_a_poll_is_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The poll has the errors of the time of its rows."""
    item, reading, calls = world.model.create("v", COLUMNS, (0,)), Mirrors.reading, itertools.count(1)
    error = ("22012", "division by zero")
    world.tick({})
    assert world.rows("SELECT id FROM v") == []
    world.tick({item.id: [((1, "a", None, None), 1)], item.errors: [(error, 1)]})

    def ending(mirrors: Mirrors, relations: Collection[int] | None = None) -> AbstractContextManager[None]:
        if next(calls) == 2:  # after the time of the rows is known
            world.tick({item.errors: [(error, -1)]})
        return reading(mirrors, relations)

    monkeypatch.setattr(Mirrors, "reading", ending)
    with pytest.raises(psycopg.errors.DivisionByZero):
        world.rows("SELECT id FROM v")


def test_errors_of_the_view(world: World) -> None:
    """While the view has errors, a poll fails; after them it has the present rows."""
    item = world.model.create("v", COLUMNS, (0,))
    world.tick({item.id: [((1, "a", None, None), 1)]})
    assert len(world.rows("SELECT id FROM v")) == 1
    error = ("22012", "division by zero")
    world.tick({item.id: [((2, "a", None, None), 1)], item.errors: [(error, 1)]})
    with pytest.raises(psycopg.errors.DivisionByZero):
        world.rows("SELECT id FROM v")
    world.tick({item.errors: [(error, -1)]})
    assert world.rows("SELECT id FROM v") == [(1,), (2,)]
    world.tick({item.id: [((1, "a", None, None), -1)]})
    assert world.rows("SELECT id FROM v") == [(2,)]


def test_a_block_reads_at_its_time(world: World) -> None:
    item = world.model.create("v", COLUMNS, (0,))
    world.tick({item.id: [((1, "a", None, None), 1)]})
    assert world.rows("SELECT id FROM v") == [(1,)]
    with psycopg.connect(world.served.dsn) as other:
        assert other.execute("SELECT id FROM v").fetchall() == [(1,)]
        world.tick({item.id: [((2, "a", None, None), 1)]})
        assert world.rows("SELECT id FROM v") == [(1,), (2,)]
        assert other.execute("SELECT id FROM v").fetchall() == [(1,)]
    assert world.runs == 1


def threads_that_apply(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """Defers all changes. Returns a list to which each thread that applies deferred changes adds itself."""
    monkeypatch.setattr(deferral, "EAGER_S", 0.0)
    threads: list[int | None] = []
    apply = Mirrors._apply_deferred

    def noted(mirrors: Mirrors, relations: Collection[int] | None) -> None:
        threads.append(threading.current_thread().ident)
        apply(mirrors, relations)

    monkeypatch.setattr(Mirrors, "_apply_deferred", noted)
    return threads


@pytest.mark.parametrize("changed", [True, False])
def test_the_event_loop_does_not_apply_the_changes_that_tables_lack(world: World, changed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block reads all tables and the clock at one time, so they get their changes before it takes its snapshot: on a thread."""
    threads = threads_that_apply(monkeypatch)
    items = [world.model.create(name, COLUMNS, (0,)) for name in "vw"]
    world.tick({})
    for item in items:
        assert world.rows(f"SELECT count(*) FROM {item.name}") == [(0,)]
    threads.clear()
    world.tick({item.id: [((1, "a", None, None), 1)] for item in items if changed})
    with world.client.transaction():
        assert world.rows("SELECT v.id, w.id FROM v JOIN w USING (id)") == [(1, 1)] * changed
    assert threads
    assert world.served._thread.ident not in threads


def test_statements_outside_of_blocks_do_not_apply_them_in_the_event_loop(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot is taken for a temporary table outside of a block, and by LOCK TABLE and SET TRANSACTION SNAPSHOT."""
    threads = threads_that_apply(monkeypatch)
    item = world.model.create("v", COLUMNS, (0,))
    world.tick({})
    assert world.rows("SELECT count(*) FROM v") == [(0,)]
    world.client.execute("CREATE TEMPORARY TABLE copied (id bigint)")
    with psycopg.connect(world.served.dsn) as other:
        (exported,) = other.execute("SELECT pg_export_snapshot()").fetchone() or ()
        _check_threads(world, item.id, threads, exported)


def _check_threads(world: World, relation: int, threads: list[int | None], exported: str) -> None:
    block = "BEGIN ISOLATION LEVEL REPEATABLE READ"
    statements = [
        ["INSERT INTO copied SELECT id FROM v"],
        ["CREATE TEMPORARY TABLE other AS SELECT v.id FROM v, copied"],
        ["ALTER TABLE copied ADD CHECK (id > 0)"],
        ["SELECT id FROM copied JOIN v USING (id)"],
        [block, "LOCK TABLE copied", "ROLLBACK"],
        [block, f"SET TRANSACTION SNAPSHOT '{exported}'", "ROLLBACK"],
        [f"SELECT id FROM v AS OF {world.served.serving.progress.time}"],
    ]
    for n, texts in enumerate(statements):
        world.tick({relation: [((n + 1, "a", None, None), 1)]})
        threads.clear()
        for text in texts:
            world.client.execute(text)
        assert threads, texts
        assert world.served._thread.ident not in threads, texts
    assert world.rows("SELECT id FROM copied") == [(1,)]
