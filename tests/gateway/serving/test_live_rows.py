"""Tests that polls whose rows ticks update give the rows that DuckDB gives, and are not run again."""

from __future__ import annotations

import datetime
import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.gateway.answers import live_queries, live_rows, polls
from tailgate.gateway.mirrors import deferral
from tailgate.gateway.mirrors.mirrors import Mirrors
from tailgate.gateway.serving import queries as serving_queries
from tailgate.gateway.serving.queries import Queries
from tailgate.lake.types import FLOAT8, INT8, INTERVAL, TEXT, Field, Type
from tests.gateway.serving.model_lake import ModelLake, Row
from tests.tables.world import Served

COLUMNS = {"id": INT8, "name": TEXT, "amount": FLOAT8, "price": Type("numeric", (12, 2))}
SEVERAL = 3  # ticks with each number of rows


class World:
    """A gateway over a lake, and a client that polls. `runs`: how often the gateway has run a poll in DuckDB."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(serving_queries, "NOW_S_MAX", 60.0)
        self.model = ModelLake(path)
        self.served = Served(self.model.lake)
        self.client = psycopg.connect(self.served.dsn, autocommit=True, prepare_threshold=None)
        self.runs = 0
        run = Queries.read_at_entry

        async def counted(queries: Queries, *arguments: Any) -> Any:
            self.runs += 1
            return await run(queries, *arguments)

        monkeypatch.setattr(Queries, "read_at_entry", counted)
        monkeypatch.setattr(polls, "REFRESH_BUDGET_S", 60.0)

    def tick(self, changes: dict[int, Sequence[tuple[Row, int]]]) -> None:
        self.served.reach(self.model.tick(changes))

    def rows(self, query: str, *, binary: bool = False) -> list[Any]:
        return sorted(self.client.execute(query, binary=binary).fetchall(), key=repr)

    def raw(self, query: str, binary: bool, values: Sequence[object] = (), *, is_block: bool = False) -> list[tuple[bytes | None, ...]]:
        """Returns the rows as they were sent. `is_block`: those that a block reads, which are not cached."""
        with self.client.transaction() if is_block else nullcontext():
            result = self.client.execute(query, values, binary=binary).pgresult
        assert result is not None
        return [tuple(result.get_value(i, c) for c in range(result.nfields)) for i in range(result.ntuples)]

    def cached(self) -> list[polls.Poll]:
        cache: polls.Polls = self.served.serving.progress._callbacks[-1].__self__  # type: ignore[attr-defined]
        return list(cache._polls.values())

    def close(self) -> None:
        self.client.close()
        self.served.close()
        self.model.writer.close()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    world = World(tmp_path / "lake", monkeypatch)
    yield world
    world.close()


@pytest.fixture
def slow(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A gateway that updates a poll however long it takes."""
    monkeypatch.setattr(polls, "REFRESH_S_MAX", 60.0)
    return world


def row_of(chance: random.Random, id: int | None) -> Row:
    price = chance.choice([None, Decimal(chance.randrange(1000)) / 100])
    return id, chance.choice([None, "a", "ä", ""]), chance.choice([None, -0.0, 0.1, 1e300, float("inf")]), price


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


def test_the_first_of_many_rows(slow: World, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll with LIMIT keeps some more rows than it has, and is run again when too many of them have left."""
    monkeypatch.setattr(live_queries, "KEPT_MIN", 2)
    chance, item = random.Random(seed), slow.model.create("v", COLUMNS, None)
    query = "SELECT id, name FROM v WHERE price < 9 ORDER BY amount DESC, id LIMIT 4 OFFSET 1"
    for n in range(40):
        now = slow.model.now[item.id]
        removed = [(row, -now[row]) for row in chance.sample(list(now), len(now) // 3)]
        slow.tick({item.id: [*removed, *((row_of(chance, 10 * n + i), chance.randint(1, 2)) for i in range(chance.choice([0, 1, 9])))]})
        live, read = (slow.raw(query, False, is_block=is_block) for is_block in (False, True))
        assert live == read
    assert 0 < slow.runs < 38


def test_polls_that_ticks_do_not_update(slow: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll with the error of a row is run again, and so is one with too many rows; both are right."""
    monkeypatch.setattr(live_queries, "ROWS_MAX", 3)
    monkeypatch.setattr(live_rows, "ROWS_MAX", 3)
    item = slow.model.create("v", COLUMNS, (0,))
    slow.tick({item.id: [((id, "a", None, None), 1) for id in (1, 2)]})
    failing, many = "SELECT 10 / id FROM v ORDER BY id LIMIT 2", "SELECT id FROM v WHERE name = 'a' ORDER BY id"
    for id in (7, 8):
        assert slow.raw(failing, False) == [(b"10",), (b"5",)]
        assert len(slow.rows(many)) == 2
        slow.tick({item.id: [((id, "b", None, None), 1)]})
    assert slow.runs == 2
    slow.tick({item.id: [((0, "b", None, None), 1)]})
    with pytest.raises(psycopg.errors.DivisionByZero):
        slow.rows(failing)
    slow.tick({item.id: [((0, "b", None, None), -1)]})
    assert slow.raw(failing, False) == [(b"10",), (b"5",)]
    for id in range(3, 6):
        assert len(slow.rows(many)) == id - 1
        slow.tick({item.id: [((id, "a", None, None), 1)]})
    runs = slow.runs
    monkeypatch.setattr(live_queries, "SORTED_MAX", 3)
    for id in range(10, 13):
        slow.tick({item.id: [((id, "c", None, None), 1)]})
        assert slow.raw("SELECT id FROM v WHERE name = 'c' ORDER BY id DESC LIMIT 1", False) == [(b"%d" % id,)]
    assert slow.runs == runs


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
