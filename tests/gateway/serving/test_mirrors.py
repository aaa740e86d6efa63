"""Tests that all mirrors have one time, and the rows that the log has at that time."""

import asyncio
import itertools
import random
import threading

import pytest

from tailgate.gateway.mirrors import mirror
from tailgate.gateway.serving.service import Serving
from tailgate.lake.types import FLOAT8, INT8, INTERVAL, TEXT
from tests.gateway.serving.made import Made, Row, bag, serving, unready

NAMES = [None, "a", "b", "ä", ""]


def random_row(random: random.Random, wide: bool) -> Row:
    id = random.choice([None, *range(12)])
    interval = (("days", 1), ("micros", 0), ("months", random.randrange(2))) if random.random() < 0.7 else None
    return (id, random.choice(NAMES), interval, random.choice([None, 0.5, 1e300]))[: 4 if wide else 2]


class Random:
    """A generator of net changes that keep a key unique or, without a key, duplicate rows."""

    def __init__(self, random: random.Random, made: Made, relation: int, keyed: bool, wide: bool) -> None:
        self.random, self.made, self.relation, self.keyed, self.wide = random, made, relation, keyed, wide

    def changes(self) -> list[tuple[Row, int]]:
        now = self.made.now[self.relation].copy()
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
                gone = self.random.randint(1, now[old])
                out.append((old, -gone))
                now[old] -= gone
                if not now[old]:
                    del now[old]
            else:
                copies = self.random.choice([1, 1, 3])
                out.append((row, copies))
                now[row] += copies
        return out


WIDE = {"id": INT8, "name": TEXT, "span": INTERVAL, "amount": FLOAT8}
NARROW = {"id": INT8, "name": TEXT}


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("wide", [True, False])
def test_the_mirror_is_the_snapshot_at_every_time(made: Made, run, seed: int, keyed: bool, wide: bool) -> None:
    """Mirror, model and lake.snapshot have the same rows before, during and after the mirror is filled."""

    async def work() -> None:
        item = made.create("v", WIDE if wide else NARROW, (0,) if keyed else None)
        source = Random(random.Random(seed), made, item.id, keyed, wide)
        for _ in range(5):
            made.tick({item.id: source.changes()})
        async with serving(made) as server:
            for _ in range(25):
                time = made.tick({item.id: source.changes()})
                await server.progress.wait(time - 1, 10)
                with server.queries.snapshot() as snapshot, snapshot.use() as connection:
                    snapshot.bring([item])
                    got = mirror.rows(connection, mirror.shape(item))
                    assert bag(got) == made.at[snapshot.time][item.id]
                    assert bag(got) == bag(made.lake.snapshot(item.id, at=snapshot.time))
                await asyncio.gather(*map(asyncio.wrap_future, server._mirrors.need([item])))

    run(work)


def test_one_time_for_all_relations(made: Made, run) -> None:
    """Two views get the same number in every tick; no transaction or statement reads two different numbers."""

    async def work() -> None:
        a, b = made.create("a", {"n": INT8}, ()), made.create("b", {"n": INT8}, ())
        made.tick({a.id: [((0,), 1)], b.id: [((0,), 1)]})
        stop = threading.Event()

        def write() -> None:
            for i in itertools.count():
                if stop.wait(0.005):
                    return
                made.tick({a.id: [((i,), -1), ((i + 1,), 1)], b.id: [((i,), -1), ((i + 1,), 1)]})

        async with serving(made) as server:
            writer = threading.Thread(target=write)
            await asyncio.gather(*map(asyncio.wrap_future, server._mirrors.need([a, b])))
            writer.start()
            seen: set[int] = set()
            try:
                while len(seen) < 20 and writer.is_alive():
                    with server.queries.snapshot() as snapshot, snapshot.use() as connection:
                        snapshot.bring([a, b])
                        first = connection.execute(f"SELECT c0 FROM r{a.id}").fetchall()
                        await asyncio.sleep(0.002)
                        second = connection.execute(f"SELECT c0 FROM r{b.id}").fetchall()
                        assert first == second == list(made.at[snapshot.time][a.id])
                        seen.add(first[0][0])
                    cursor = server._sandbox.cursor()
                    assert len(cursor.execute(f"SELECT c0 FROM r{a.id} UNION SELECT c0 FROM r{b.id}").fetchall()) == 1
                    cursor.close()
            finally:
                stop.set()
                writer.join()
            assert len(seen) == 20

    run(work)


def test_a_relation_that_begins_anew_is_empty_first(made: Made, run) -> None:
    """Its old rows are gone when it is ready again, whatever changes came before that."""

    async def work() -> None:
        item = made.create("v", NARROW)
        made.tick({item.id: [((1, "old"), 1), ((2, "both"), 1)]})
        async with serving(made) as server:
            await asyncio.gather(*map(asyncio.wrap_future, server._mirrors.need([item])))
            made.put(unready(item))
            made.now[item.id].clear()
            made.tick({item.id: [((2, "both"), 1), ((3, "new"), 1)]})
            made.put(item)
            await server.progress.wait(made.writer.newest.time - 1, 10)
            await asyncio.gather(*map(asyncio.wrap_future, server._mirrors.need([item])))
            last = made.tick({item.id: [((4, "later"), 1)]})
            await server.progress.wait(last - 1, 10)
            with server.queries.snapshot() as snapshot, snapshot.use() as connection:
                snapshot.bring([item])
                assert bag(mirror.rows(connection, mirror.shape(item))) == made.now[item.id]

    run(work)


def test_filling_beside_ticks(made: Made, run) -> None:
    """A relation whose first use is during ticks has the right rows from its first answer."""

    async def work() -> None:
        items = [made.create(f"v{i}", NARROW, (0,)) for i in range(6)]
        for item in items:
            made.tick({item.id: [((i, "x"), 1) for i in range(200)]})
        stop = threading.Event()

        def write() -> None:
            step = 0
            while not stop.is_set() and step < 500:
                step += 1
                made.tick({i.id: [((step % 200, n), w) for n, w in _flip(made, i.id, step % 200)] for i in items})

        async with serving(made) as server:
            writer = threading.Thread(target=write)
            writer.start()
            for item in items:
                await asyncio.gather(*map(asyncio.wrap_future, server._mirrors.need([item])))
                with server.queries.snapshot() as snapshot, snapshot.use() as connection:
                    assert item.id in snapshot.shared
                    snapshot.bring([item])
                    assert bag(mirror.rows(connection, mirror.shape(item))) == made.at[snapshot.time][item.id]
                await asyncio.sleep(0.05)
            stop.set()
            writer.join()

    run(work)


def _flip(made: Made, relation: int, id: int) -> list[tuple[str, int]]:
    old = next(r[1] for r in made.now[relation] if r[0] == id)
    return [(old, -1), (old + "x" if len(old) < 5 else "x", 1)]


def test_that_a_view_fails_is_known_before_it_is_read(made: Made, run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        item = made.create("v")
        made.tick({item.id: [((1, "a", 0.5), 1)], item.errors: [(("22012", "division by zero"), 1)]})
        known: list[bool] = []
        async with serving(made) as server:
            mirrors = server._mirrors
            tell = mirrors._set_clock

            def set_clock(connection: object, state: object) -> None:
                if item.id in mirrors.moving():
                    known.append(item.id in mirrors.state.failing)
                tell(connection, state)

            monkeypatch.setattr(mirrors, "_set_clock", set_clock)
            await asyncio.gather(*map(asyncio.wrap_future, mirrors.need([item])))
        assert known == [True]

    run(work)


def test_a_dropped_relation_leaves_memory(made: Made, run) -> None:
    async def work() -> None:
        item = made.create("v")
        made.tick({item.id: [((1, "a", 0.5), 1)]})
        async with serving(made) as server:
            await asyncio.gather(*map(asyncio.wrap_future, server._mirrors.need([item])))
            with server.queries.snapshot() as before, before.use() as connection:
                made.drop(item)
                while item.id in server.progress.catalog.items:
                    await server.progress.wait(server.progress.time, 5)
                assert connection.execute(f"SELECT c0 FROM r{item.id}").fetchall() == [(1,)]
            tables = server._sandbox.cursor().execute("SELECT table_name FROM duckdb_tables()").fetchall()
            assert tables == [("clock",)]

    run(work)


def test_far_behind(made: Made, run) -> None:
    """Many new entries are applied in bounded transactions, up to the newest one."""

    async def work() -> None:
        item = made.create("v", NARROW, (0,))
        made.tick({item.id: [((0, "x"), 1)]})
        server = Serving(made.lake)
        for ready in server._mirrors.need([item]):
            ready.result()
        for i in range(200):
            made.tick({item.id: [((i, "x"), -1), ((i + 1, "x"), 1)]})
        await server.start()
        while server.progress.time < made.writer.newest.time:
            await server.progress.wait(server.progress.time, 5)
        with server.queries.snapshot() as snapshot, snapshot.use() as connection:
            assert bag(mirror.rows(connection, mirror.shape(item))) == {(200, "x"): 1}
        await server.stop()

    run(work)
