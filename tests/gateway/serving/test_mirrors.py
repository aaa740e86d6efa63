"""Tests that all mirrors have one time, and the rows that the log has at that time."""

import asyncio
import itertools
import random
import threading
from typing import Any

import duckdb
import pytest

from tailgate.gateway.mirrors import deferral, mirror, mirrors, tables
from tailgate.gateway.serving.service import Serving
from tailgate.lake.readers import reading
from tailgate.lake.types import INT8
from tests.gateway.serving.model_lake import NARROW, WIDE, ModelLake, Row, bag, flip, serving, ticks_applied, unready

NAMES = [None, "a", "b", "ä", ""]


def random_row(random: random.Random, wide: bool) -> Row:
    id = random.choice([None, *range(12)])
    interval = (("days", 1), ("micros", 0), ("months", random.randrange(2))) if random.random() < 0.7 else None
    return (id, random.choice(NAMES), interval, random.choice([None, 0.5, 1e300]))[: 4 if wide else 2]


class Random:
    """A generator of net changes that keep a key unique or, without a key, duplicate rows."""

    def __init__(self, random: random.Random, model: ModelLake, relation: int, keyed: bool, wide: bool) -> None:
        self.random, self.model, self.relation, self.keyed, self.wide = random, model, relation, keyed, wide

    def changes(self) -> list[tuple[Row, int]]:
        now = self.model.now[self.relation].copy()
        out: list[tuple[Row, int]] = []
        for _ in range(self.random.randrange(8)):
            row = random_row(self.random, self.wide)
            if self.keyed:
                for old in [r for r in now if r[0] == row[0]]:
                    out.append((old, -1))
                    del now[old]
                if self.random.random() < 0.7:
                    out.append((row, 1))
                    now[row] = 1
            elif now and self.random.random() < 0.5:
                old = self.random.choice(list(now))
                copies_deleted = self.random.randint(1, now[old])
                out.append((old, -copies_deleted))
                now[old] -= copies_deleted
                if not now[old]:
                    del now[old]
            else:
                copies = self.random.choice([1, 1, 3])
                out.append((row, copies))
                now[row] += copies
        return out


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("way", ["in place", "scan", "index", "index of hashes"])
def test_the_mirror_is_the_snapshot_at_every_time(
    model: ModelLake, run, seed: int, keyed: bool, wide: bool, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mirror, model and lake.snapshot have the same rows before, during and after the mirror is filled."""
    monkeypatch.setattr(tables, "CHANGES_BEFORE_COPY_MIN", 10)
    if way.startswith("index"):
        monkeypatch.setattr(tables, "ROWS_INDEXED_MIN", 5)
    if way != "in place":
        monkeypatch.setattr(tables, "ROWS_IN_PLACE_MAX", 0)
        monkeypatch.setattr(tables, "CHANGED_SHARE", 2.0)

    async def work() -> None:
        key = (0, 1) if way == "index of hashes" else (0,)  # a key of several columns is one, too
        item = model.create("v", WIDE if wide else NARROW, key if keyed else None)
        source = Random(random.Random(seed), model, item.id, keyed, wide)
        for _ in range(5):
            model.tick({item.id: source.changes()})
        async with serving(model) as server:
            for _ in range(25):
                time = model.tick({item.id: source.changes()})
                await server.progress.wait(time - 1, 10)
                with server.queries.snapshot() as snapshot, snapshot.use() as connection:
                    snapshot.bring([item])
                    got = mirror.rows(connection, mirror.shape(item))
                    assert bag(got) == model.at[snapshot.time][item.id]
                    assert bag(got) == bag(reading.snapshot(model.lake, item.id, at=snapshot.time))
                await asyncio.gather(*map(asyncio.wrap_future, server.mirrors.need([item])))

    run(work)


class Failing:
    """A connection whose first COMMITs and statements DROP fail. After a failed COMMIT, DuckDB has ended the transaction."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, commits: int, drops: int = 0) -> None:
        self._connection, self.commits, self.drops = connection, commits, drops

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def commit(self) -> None:
        if self.commits:
            self.commits -= 1
            self._connection.rollback()
            raise duckdb.TransactionException("Failed to commit")
        self._connection.commit()

    def execute(self, sql: str, *parameters: object) -> duckdb.DuckDBPyConnection:
        if self.drops and not self.commits and sql.startswith("DROP TABLE"):
            self.drops -= 1
            raise duckdb.OutOfMemoryException("could not allocate block")
        return self._connection.execute(sql, *parameters)


@pytest.mark.parametrize(("commits", "drops"), [(1, 0), (2, 0), (1, 1)])
def test_a_commit_that_fails(model: ModelLake, run, monkeypatch: pytest.MonkeyPatch, commits: int, drops: int) -> None:
    """The clock does not name a mirror that was dropped, and the others are filled again, also if they cannot be dropped at once."""
    monkeypatch.setattr(mirrors, "RETRY", 0.01)

    async def work() -> None:
        dropped, other = (model.create(name, NARROW, (0,)) for name in "vw")
        model.tick({dropped.id: [((1, "x"), 1)], other.id: [((1, "x"), 1)]})
        async with serving(model) as server:
            await asyncio.gather(*map(asyncio.wrap_future, server.mirrors.need([dropped, other])))
            writer: Any = Failing(server.mirrors._writer, commits, drops)
            server.mirrors._writer = writer
            model.drop(dropped)
            while dropped.id in server.progress.catalog.items:
                await server.progress.wait(server.progress.time, 5)
            assert (writer.commits, writer.drops) == (0, 0)
            with server.queries.snapshot() as snapshot:
                assert snapshot.shared == frozenset()
            assert server._sandbox.cursor().execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("clock",)]
            await asyncio.gather(*map(asyncio.wrap_future, server.mirrors.need([other])))
            time = model.tick({other.id: [((1, "x"), -1), ((1, "y"), 1)]})
            await server.progress.wait(time - 1, 10)
            with server.queries.snapshot() as snapshot, snapshot.use() as connection:
                assert other.id in snapshot.shared
                assert bag(mirror.rows(connection, mirror.shape(other))) == {(1, "y"): 1}

    run(work)


def test_a_fill_that_is_far_behind(model: ModelLake, run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The changes of a bounded number of entries are in memory at once."""
    monkeypatch.setattr(mirrors, "ENTRIES_AT_ONCE", 10)
    filling, may_end = threading.Event(), threading.Event()
    fill = tables.Tables.fill

    def late(self: tables.Tables, *arguments: Any, **options: Any) -> tables.Table:
        filling.set()
        assert may_end.wait(60)
        return fill(self, *arguments, **options)

    monkeypatch.setattr(tables.Tables, "fill", late)
    applied = ticks_applied(monkeypatch)

    async def work() -> None:
        item = model.create("v", NARROW, (0,))
        model.tick({item.id: [((0, "x"), 1)]})
        async with serving(model) as server:
            ready = server.mirrors.need([item])
            assert await asyncio.to_thread(filling.wait, 60)
            for i in range(35):
                time = model.tick({item.id: [((i, "x"), -1), ((i + 1, "x"), 1)]})
            await server.progress.wait(time - 1, 10)
            may_end.set()
            await asyncio.gather(*map(asyncio.wrap_future, ready))
            with server.queries.snapshot() as snapshot, snapshot.use() as connection:
                assert bag(mirror.rows(connection, mirror.shape(item))) == {(35, "x"): 1}
        assert sum(applied) == 35
        assert max(applied) == 10

    run(work)


@pytest.mark.parametrize("eager_s", [deferral.EAGER_S, 0.0, 0.01])
def test_one_time_for_all_relations(model: ModelLake, run, eager_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two views get the same number in every tick; no transaction or statement reads two different numbers."""
    monkeypatch.setattr(deferral, "EAGER_S", eager_s)

    async def work() -> None:
        a, b = model.create("a", {"n": INT8}, ()), model.create("b", {"n": INT8}, ())
        model.tick({a.id: [((0,), 1)], b.id: [((0,), 1)]})
        stop = threading.Event()

        def write() -> None:
            for i in itertools.count():
                if stop.wait(0.005):
                    return
                model.tick({a.id: [((i,), -1), ((i + 1,), 1)], b.id: [((i,), -1), ((i + 1,), 1)]})

        async with serving(model) as server:
            writer = threading.Thread(target=write)
            await asyncio.gather(*map(asyncio.wrap_future, server.mirrors.need([a, b])))
            writer.start()
            numbers: set[int] = set()
            try:
                while len(numbers) < 20 and writer.is_alive():
                    with server.queries.snapshot() as snapshot, snapshot.use() as connection:
                        snapshot.bring([a, b])
                        first = connection.execute(f"SELECT c0 FROM r{a.id}").fetchall()
                        await asyncio.sleep(0.002)
                        second = connection.execute(f"SELECT c0 FROM r{b.id}").fetchall()
                        assert first == second == list(model.rows(a.id, snapshot.time))
                        numbers.add(first[0][0])
                    cursor = server._sandbox.cursor()
                    with server.mirrors.reading((a.id, b.id)):
                        assert len(cursor.execute(f"SELECT c0 FROM r{a.id} UNION SELECT c0 FROM r{b.id}").fetchall()) == 1
                    cursor.close()
            finally:
                stop.set()
                writer.join()
            assert len(numbers) == 20

    run(work)


def test_a_relation_that_is_backfilled_again_is_empty_first(model: ModelLake, run) -> None:
    """Its old rows are gone when it is ready again, whatever changes came before that."""

    async def work() -> None:
        item = model.create("v", NARROW)
        model.tick({item.id: [((1, "old"), 1), ((2, "both"), 1)]})
        async with serving(model) as server:
            await asyncio.gather(*map(asyncio.wrap_future, server.mirrors.need([item])))
            model.put(unready(item))
            model.now[item.id].clear()
            model.tick({item.id: [((2, "both"), 1), ((3, "new"), 1)]})
            model.put(item)
            await server.progress.wait(model.writer.newest.time - 1, 10)
            await asyncio.gather(*map(asyncio.wrap_future, server.mirrors.need([item])))
            last = model.tick({item.id: [((4, "later"), 1)]})
            await server.progress.wait(last - 1, 10)
            with server.queries.snapshot() as snapshot, snapshot.use() as connection:
                snapshot.bring([item])
                assert bag(mirror.rows(connection, mirror.shape(item))) == model.now[item.id]

    run(work)


def test_filling_during_ticks(model: ModelLake, run) -> None:
    """A relation whose first use is during ticks has the right rows from its first answer."""

    async def work() -> None:
        items = [model.create(f"v{i}", NARROW, (0,)) for i in range(6)]
        for item in items:
            model.tick({item.id: [((i, "x"), 1) for i in range(200)]})
        stop = threading.Event()

        def write() -> None:
            step = 0
            while not stop.is_set() and step < 500:
                step += 1
                model.tick({i.id: [((step % 200, n), w) for n, w in flip(model, i.id, step % 200)] for i in items})

        async with serving(model) as server:
            writer = threading.Thread(target=write)
            writer.start()
            for item in items:
                await asyncio.gather(*map(asyncio.wrap_future, server.mirrors.need([item])))
                with server.queries.snapshot() as snapshot, snapshot.use() as connection:
                    assert item.id in snapshot.shared
                    snapshot.bring([item])
                    assert bag(mirror.rows(connection, mirror.shape(item))) == model.at[snapshot.time][item.id]
                await asyncio.sleep(0.05)
            stop.set()
            writer.join()

    run(work)


def test_failing_views_are_known_before_they_are_read(model: ModelLake, run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        item = model.create("v")
        model.tick({item.id: [((1, "a", 0.5), 1)], item.errors: [(("22012", "division by zero"), 1)]})
        failing: list[bool] = []
        async with serving(model) as server:
            mirrors = server.mirrors
            tell = mirrors._set_clock

            def set_clock(connection: object, state: object) -> None:
                if item.id in mirrors.moving():
                    failing.append(item.id in mirrors.state.failing)
                tell(connection, state)

            monkeypatch.setattr(mirrors, "_set_clock", set_clock)
            await asyncio.gather(*map(asyncio.wrap_future, mirrors.need([item])))
        assert failing == [True]

    run(work)


def test_a_dropped_relation_leaves_memory(model: ModelLake, run) -> None:
    async def work() -> None:
        item = model.create("v")
        model.tick({item.id: [((1, "a", 0.5), 1)]})
        async with serving(model) as server:
            await asyncio.gather(*map(asyncio.wrap_future, server.mirrors.need([item])))
            time = model.tick({item.id: [((2, "b", 0.5), 1)]})
            await server.progress.wait(time - 1, 5)
            assert item.id in server.mirrors._changed
            time = model.tick({item.id: [((2, "b", 0.5), -1)]})
            await server.progress.wait(time - 1, 5)
            with server.queries.snapshot() as before, before.use() as connection:
                model.drop(item)
                while item.id in server.progress.catalog.items:
                    await server.progress.wait(server.progress.time, 5)
                assert connection.execute(f"SELECT c0 FROM r{item.id}").fetchall() == [(1,)]
            tables = server._sandbox.cursor().execute("SELECT table_name FROM duckdb_tables()").fetchall()
            assert tables == [("clock",)]
            other = model.create("w")
            model.tick({other.id: [((1, "a", 0.5), 1)]})
            while other.id not in server.mirrors._changed:
                await server.progress.wait(server.progress.time, 5)
            assert item.id not in server.mirrors._changed
            assert (str(item.id),) not in server.mirrors.figures.rows.series()

    run(work)


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("wide", [True, False])
def test_far_behind(model: ModelLake, run, seed: int, keyed: bool, wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many new entries are applied in bounded transactions, up to the newest one, the changes of a relation at once."""

    async def work() -> None:
        item = model.create("v", WIDE if wide else NARROW, (0,) if keyed else None)
        source = Random(random.Random(seed), model, item.id, keyed, wide)
        model.tick({item.id: source.changes()})
        server = Serving(model.lake)
        for ready in server.mirrors.need([item]):
            ready.result()
        for _ in range(200):
            model.tick({item.id: source.changes()})
        applied = ticks_applied(monkeypatch)
        await server.start()
        while server.progress.time < model.writer.newest.time:
            await server.progress.wait(server.progress.time, 5)
        with server.queries.snapshot() as snapshot, snapshot.use() as connection:
            assert bag(mirror.rows(connection, mirror.shape(item))) == model.now[item.id]
        await server.stop()
        assert 100 < sum(applied) <= 200  # some ticks change nothing
        assert len(applied) <= 200 // mirrors.ENTRIES_AT_ONCE + 1

    run(work)
