"""Tests that all mirrors have one time, and the rows that the log has at that time."""

import asyncio
import itertools
import math
import random
import threading
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailgate.gateway.mirrors import incoming, mirror, mirrors, tables
from tailgate.gateway.mirrors.mirrored import Mirrored
from tailgate.gateway.serving.service import Serving
from tailgate.lake.readers import reading
from tailgate.lake.types import DATE, FLOAT4, FLOAT8, INT8, INTERVAL, TEXT, TIMESTAMP, TIMESTAMPTZ, Field, Type, arrow_schema
from tests.gateway.serving.model_lake import ModelLake, Row, bag, serving, unready
from tests.lake.relations import ALL_TYPES, values

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


WIDE = {"id": INT8, "name": TEXT, "span": INTERVAL, "amount": FLOAT8}
NARROW = {"id": INT8, "name": TEXT}


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


class Explained:
    """A connection that runs each DELETE with EXPLAIN ANALYZE, and keeps the plans."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection, self.plans = connection, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, parameters: object = None) -> duckdb.DuckDBPyConnection:
        if not sql.startswith("DELETE"):
            return self._connection.execute(sql, parameters)
        result = self._connection.execute(f"EXPLAIN ANALYZE {sql}", parameters)
        self.plans.append(str(result.fetchall()))
        return result


def test_a_large_table_has_an_index_of_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its keys may have several columns and any type. A table that grows gets the index; rows are found without a scan."""
    monkeypatch.setattr(tables, "ROWS_INDEXED_MIN", 10_000)
    columns = (Field("a", TEXT), Field("b", Type("numeric", (10, 2))), Field("c", TEXT.array()), Field("n", INT8))
    shape, schema = mirror.Shape(1, columns, (0, 1, 2)), arrow_schema(columns, weight=True)

    def rows(numbers: range, n: int, weight: int) -> pa.Table:
        data = ((f"a{i % 7}", Decimal(i) if i % 3 else None, [str(i)], n, weight) for i in numbers)
        return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in data], schema=schema)

    def indexes() -> int:
        return len(connection.execute("FROM duckdb_indexes()").fetchall())

    with duckdb.connect() as connection:
        explained = Explained(connection)
        changing = tables.Tables(connection)
        table = changing.fill(connection, shape, rows(range(9_000), 0, 1))
        assert not indexes()
        changing.apply(connection, table, [rows(range(9_000, 20_000), 0, 1)])
        table = changing.compact(connection, table)
        assert indexes() == 1
        for few in (incoming.FEW_ROWS, 0):
            monkeypatch.setattr(incoming, "FEW_ROWS", few)
            changes = pa.concat_tables([rows(range(50, 60), 0, -1), rows(range(55, 65), 1, 1), rows(range(60, 65), 0, -1)])
            changing.apply(explained, table, [changes])  # type: ignore[arg-type]  # it has the methods of a connection
            assert bag(mirror.rows(connection, shape)) == bag(
                pa.concat_tables([rows(range(50), 0, 1), rows(range(55, 65), 1, 1), rows(range(65, 20_000), 0, 1)])
            )
            changing.apply(connection, table, [pa.concat_tables([rows(range(55, 65), 1, -1), rows(range(50, 65), 0, 1)])])
        assert len(explained.plans) == 2
        assert all("Index Scan" in plan and "Sequential Scan" not in plan for plan in explained.plans)
        for rows_per_key, plans in ((1, 3), (10_000, 1)):  # many keys at once
            explained.plans.clear()
            monkeypatch.setattr(mirror, "KEYS_BY_INDEX_MAX", 4)
            monkeypatch.setattr(mirror, "ROWS_PER_KEY", rows_per_key)
            changing.apply(explained, table, [rows(range(100, 110), 0, -1)])  # type: ignore[arg-type]
            assert len(explained.plans) == plans
            assert all(("Sequential Scan" in plan) == (plans == 1) for plan in explained.plans)
            changing.apply(connection, table, [rows(range(100, 110), 0, 1)])


@pytest.mark.parametrize("grown", [False, True])
def test_queries_of_rows_by_key_use_the_index(monkeypatch: pytest.MonkeyPatch, grown: bool) -> None:
    """DuckDB scans a view for a condition on a column that is not the first one of the table."""
    monkeypatch.setattr(tables, "ROWS_INDEXED_MIN", 10_000)
    columns = (Field("a", TEXT), Field("n", INT8), Field("k", TEXT))
    shape, schema = mirror.Shape(1, columns, (2,)), arrow_schema(columns, weight=True)

    def rows(numbers: range) -> pa.Table:
        data = ((f"a{i}", i, f"k{i}", 1) for i in numbers)
        return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in data], schema=schema)

    with duckdb.connect() as connection:
        changing = tables.Tables(connection)
        if grown:
            table = changing.fill(connection, shape, rows(range(9_000)))
            changing.apply(connection, table, [rows(range(9_000, 20_000))])
            table = changing.compact(connection, table)
        else:
            table = changing.fill(connection, shape, rows(range(20_000)))
        assert table.finds_keys
        for query, row in (("SELECT * FROM r1", ("a7", 7, "k7")), ("SELECT c0, c1 FROM r1", ("a7", 7)), ("SELECT c1 FROM r1", (7,))):
            assert connection.execute(f"{query} WHERE c2 = $1", ["k7"]).fetchall() == [row]
            assert "Index Scan" in str(connection.execute(f"EXPLAIN ANALYZE {query} WHERE c2 = $1", ["k7"]).fetchall())
        assert bag(mirror.rows(connection, shape)) == bag(rows(range(20_000)))


@pytest.mark.parametrize(("rows", "join"), [(100, "CROSS_PRODUCT"), (60_000, "HASH_JOIN")])
def test_statements_for_small_tables_are_not_optimized(rows: int, join: str) -> None:
    shape = mirror.Shape(1, (Field("k", INT8),), (0,))
    schema = arrow_schema(shape.columns, weight=True)
    with duckdb.connect() as connection:
        explained: Any = Explained(connection)
        changing = tables.Tables(explained)
        table = changing.fill(explained, shape, pa.table([range(rows), [1] * rows], schema=schema))
        changing.apply(explained, table, [pa.table([[7, 8], [-1, -1]], schema=schema)])
        assert bag(mirror.rows(connection, shape)) == {(k,): 1 for k in range(rows) if k not in (7, 8)}
        (plan,) = explained.plans
        assert join in plan


def test_the_lines_of_a_mirror_without_a_key_are_counted() -> None:
    """Copies of a row are one line, which stays if some of them are removed: the optimizer is on for many lines."""
    shape = mirror.Shape(1, (Field("k", INT8),), None)
    schema = arrow_schema(shape.columns, weight=True)
    with duckdb.connect() as connection:
        changing = tables.Tables(connection)
        table = changing.fill(connection, shape, pa.table([[1, 2, 3], [3, 2, 1]], schema=schema))
        for keys, weights in (([1, 2, 3], [-1, -1, -1]), ([4, 5], [1, 2]), ([1, 4, 6], [-1, 1, 5]), ([1, 6], [-1, -2])):
            changing.apply(connection, table, [pa.table([keys, weights], schema=schema)])
            assert connection.execute("SELECT count(*) FROM r1").fetchone() == (table.rows,)
        assert bag(mirror.rows(connection, shape)) == {(2,): 1, (4,): 2, (5,): 2, (6,): 3}


@pytest.mark.parametrize("temporary", [False, True])
@pytest.mark.parametrize("text", ["short", "a text that is longer than twelve characters"])
def test_old_rows_of_a_mirror_leave_memory(text: str, temporary: bool) -> None:
    """A table whose rows change for ever keeps its size: without copies it grows by about 20 MB here."""
    connection, shape = duckdb.connect(), mirror.Shape(1, (Field("k", INT8), Field("v", TEXT)), (0,))
    changing = tables.Tables(connection)
    schema = arrow_schema(shape.columns, weight=True)

    def changes(i: int) -> pa.Table:
        keys = list(range(1000))
        old, new = [f"{text} {i - 1}"] * 1000, [f"{text} {i}"] * 1000
        return pa.table([pa.array(keys * 2), pa.array(old + new), pa.array([-1] * 1000 + [1] * 1000)], schema=schema)

    table = changing.fill(connection, shape, changes(0).slice(1000), temporary=temporary)
    for i in range(1, 500):
        changing.apply(connection, table, [changes(i)])
        table = changing.compact(connection, table)
    row = connection.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchone()
    assert row is not None and row[0] < 10_000_000
    assert bag(mirror.rows(connection, shape)) == {(k, f"{text} 499"): 1 for k in range(1000)}


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("dropped", [False, True])
def test_ticks_do_not_wait_for_a_copy(model: ModelLake, run, indexed: bool, dropped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a table is copied, the mirror shows new entries, and leaves if the relation is dropped."""
    monkeypatch.setattr(tables, "CHANGES_BEFORE_COPY_MIN", 10)
    if indexed:
        monkeypatch.setattr(tables, "ROWS_INDEXED_MIN", 5)
    copying, may_end = threading.Event(), threading.Event()
    copy = tables.Tables.copy

    def slow_copy(self: tables.Tables, connection: duckdb.DuckDBPyConnection, table: tables.Table) -> tables.Table:
        copied = copy(self, connection, table)
        copying.set()
        assert may_end.wait(60)
        return copied

    monkeypatch.setattr(tables.Tables, "copy", slow_copy)

    async def work() -> None:
        item = model.create("v", NARROW, (0,))
        model.tick({item.id: [((i, "x"), 1) for i in range(20)]})

        async def flip() -> None:
            time = model.tick({item.id: [((i, n), w) for i in range(20) for n, w in _flip(model, item.id, i)]})
            assert await server.progress.wait(time - 1, 10) == time

        async with serving(model) as server:
            await asyncio.gather(*map(asyncio.wrap_future, server.mirrors.need([item])))
            while not copying.is_set():
                await flip()
            for _ in range(3):
                await flip()
            (table,) = [table for table in server.mirrors._mirrored[item.id].tables.values() if table.rows]
            if dropped:
                model.drop(item)
                await server.progress.wait(server.progress.time, 10)
            may_end.set()
            cursor = server._sandbox.cursor()
            if dropped:
                while cursor.execute("SELECT table_name FROM duckdb_tables()").fetchall() != [("clock",)]:
                    await asyncio.sleep(0.01)
                return
            while table in server.mirrors._mirrored[item.id].tables.values():
                await asyncio.sleep(0.01)
            await flip()
            with server.queries.snapshot() as snapshot, snapshot.use() as connection:
                snapshot.bring([item])
                assert bag(mirror.rows(connection, mirror.shape(item))) == model.now[item.id]

    run(work)


class Failing:
    """A connection whose first COMMIT fails. DuckDB then has ended the transaction, without its changes."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection, self.failed = connection, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def commit(self) -> None:
        if not self.failed:
            self.failed = True
            self._connection.rollback()
            raise duckdb.TransactionException("Failed to commit")
        self._connection.commit()


def test_a_commit_that_fails(model: ModelLake, run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock does not name a mirror that was dropped, and the others are filled again."""
    monkeypatch.setattr(mirrors, "RETRY", 0.01)

    async def work() -> None:
        dropped, kept = (model.create(name, NARROW, (0,)) for name in "vw")
        model.tick({dropped.id: [((1, "x"), 1)], kept.id: [((1, "x"), 1)]})
        async with serving(model) as server:
            await asyncio.gather(*map(asyncio.wrap_future, server.mirrors.need([dropped, kept])))
            writer: Any = Failing(server.mirrors._writer)
            server.mirrors._writer = writer
            model.drop(dropped)
            while dropped.id in server.progress.catalog.items:
                await server.progress.wait(server.progress.time, 5)
            assert writer.failed
            with server.queries.snapshot() as snapshot:
                assert snapshot.shared == frozenset()
            assert server._sandbox.cursor().execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("clock",)]
            await asyncio.gather(*map(asyncio.wrap_future, server.mirrors.need([kept])))
            time = model.tick({kept.id: [((1, "x"), -1), ((1, "y"), 1)]})
            await server.progress.wait(time - 1, 10)
            with server.queries.snapshot() as snapshot, snapshot.use() as connection:
                assert kept.id in snapshot.shared
                assert bag(mirror.rows(connection, mirror.shape(kept))) == {(1, "y"): 1}

    run(work)


def test_a_fill_that_is_far_behind(model: ModelLake, run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the changes of a bounded number of entries in memory."""
    monkeypatch.setattr(mirrors, "ENTRIES_AT_ONCE", 10)
    filling, may_end = threading.Event(), threading.Event()
    applied: list[int] = []
    fill, apply = tables.Tables.fill, tables.Tables.apply

    def late(self: tables.Tables, *arguments: Any, **options: Any) -> tables.Table:
        filling.set()
        assert may_end.wait(60)
        return fill(self, *arguments, **options)

    def counted(self: tables.Tables, connection: duckdb.DuckDBPyConnection, table: tables.Table, parts: Sequence[pa.Table]) -> None:
        applied.append(len(parts))
        apply(self, connection, table, parts)

    monkeypatch.setattr(tables.Tables, "fill", late)
    monkeypatch.setattr(tables.Tables, "apply", counted)

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


def test_a_copy_that_fails_is_not_tried_again_at_once(model: ModelLake, run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that has grown gets an index by a copy. Each attempt takes a second of CPU for 1,000,000 rows."""
    monkeypatch.setattr(tables, "ROWS_INDEXED_MIN", 5)
    attempts: list[mirror.Shape] = []

    def no_memory(connection: duckdb.DuckDBPyConnection, shape: mirror.Shape) -> None:
        attempts.append(shape)
        raise duckdb.OutOfMemoryException("no memory")

    monkeypatch.setattr(mirror, "create_index", no_memory)

    async def work() -> None:
        item = model.create("v", NARROW, (0,))
        model.tick({item.id: [((0, "x"), 1)]})
        async with serving(model) as server:
            await asyncio.gather(*map(asyncio.wrap_future, server.mirrors.need([item])))
            (table,) = [table for table in server.mirrors._mirrored[item.id].tables.values() if table.rows]
            for i in range(1, 12):
                time = model.tick({item.id: [((i, "x"), 1)]})
                await server.progress.wait(time - 1, 10)
                while table.is_being_copied:
                    await asyncio.sleep(0.001)
            assert len(attempts) == 1
            with server.queries.snapshot() as snapshot, snapshot.use() as connection:
                snapshot.bring([item])
                assert bag(mirror.rows(connection, mirror.shape(item))) == model.now[item.id]

    run(work)


def test_a_table_that_is_dropped_before_its_copy_begins(
    model: ModelLake, run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tables, "ROWS_INDEXED_MIN", 5)
    copying, may_begin, ended = threading.Event(), threading.Event(), threading.Event()
    copy = mirrors.Mirrors._copy

    def late_copy(self: mirrors.Mirrors, entry: Mirrored, table: tables.Table) -> None:
        copying.set()
        assert may_begin.wait(60)
        copy(self, entry, table)
        ended.set()

    monkeypatch.setattr(mirrors.Mirrors, "_copy", late_copy)

    async def work() -> None:
        item = model.create("v", NARROW, (0,))
        model.tick({item.id: [((0, "x"), 1)]})
        async with serving(model) as server:
            await asyncio.gather(*map(asyncio.wrap_future, server.mirrors.need([item])))
            model.tick({item.id: [((i, "x"), 1) for i in range(1, 12)]})
            assert await asyncio.to_thread(copying.wait, 60)
            model.drop(item)
            while server.mirrors.table_of(item.id) is not None:
                await server.progress.wait(server.progress.time, 1)
            may_begin.set()
            assert await asyncio.to_thread(ended.wait, 60)
        assert "could not be copied" not in caplog.text

    run(work)


def test_one_time_for_all_relations(model: ModelLake, run) -> None:
    """Two views get the same number in every tick; no transaction or statement reads two different numbers."""

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
                model.tick({i.id: [((step % 200, n), w) for n, w in _flip(model, i.id, step % 200)] for i in items})

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


def _flip(model: ModelLake, relation: int, id: int) -> list[tuple[str, int]]:
    old = next(r[1] for r in model.now[relation] if r[0] == id)
    return [(old, -1), (old + "x" if len(old) < 5 else "x", 1)]


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
            with server.queries.snapshot() as before, before.use() as connection:
                model.drop(item)
                while item.id in server.progress.catalog.items:
                    await server.progress.wait(server.progress.time, 5)
                assert connection.execute(f"SELECT c0 FROM r{item.id}").fetchall() == [(1,)]
            tables = server._sandbox.cursor().execute("SELECT table_name FROM duckdb_tables()").fetchall()
            assert tables == [("clock",)]

    run(work)


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("wide", [True, False])
def test_far_behind(model: ModelLake, run, seed: int, keyed: bool, wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many new entries are applied in bounded transactions, up to the newest one, the changes of a relation at once."""
    applied: list[int] = []
    apply = tables.Tables.apply

    def counted(self: tables.Tables, connection: duckdb.DuckDBPyConnection, table: tables.Table, parts: Sequence[pa.Table]) -> None:
        applied.append(len(parts))
        apply(self, connection, table, parts)

    async def work() -> None:
        item = model.create("v", WIDE if wide else NARROW, (0,) if keyed else None)
        source = Random(random.Random(seed), model, item.id, keyed, wide)
        model.tick({item.id: source.changes()})
        server = Serving(model.lake)
        for ready in server.mirrors.need([item]):
            ready.result()
        for _ in range(200):
            model.tick({item.id: source.changes()})
        monkeypatch.setattr(tables.Tables, "apply", counted)
        await server.start()
        while server.progress.time < model.writer.newest.time:
            await server.progress.wait(server.progress.time, 5)
        with server.queries.snapshot() as snapshot, snapshot.use() as connection:
            assert bag(mirror.rows(connection, mirror.shape(item))) == model.now[item.id]
        await server.stop()
        assert 100 < sum(applied) <= 200  # some ticks change nothing
        assert len(applied) <= 200 // mirrors.ENTRIES_AT_ONCE + 1

    run(work)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@pytest.mark.parametrize("type", ALL_TYPES, ids=str)
@settings(max_examples=6, deadline=None)
@given(data=st.data(), keyed=st.booleans())
def test_few_changes_give_the_same_rows_as_many(
    connection: duckdb.DuckDBPyConnection, type: Type, data: st.DataObject, keyed: bool
) -> None:
    """Rows that are parameters change a mirror as rows of an Arrow table do."""
    columns = (Field("key", INT8), Field("value", type))
    schema = arrow_schema(columns, weight=True)
    rows = st.tuples(
        st.integers(0, 3) | st.none(),
        st.none() | values(type, nullable=False).map(lambda value: pa.array([value], schema.types[1])[0].as_py()),
    )
    shapes = [mirror.Shape(n, columns, (0,) if keyed else None) for n in (1, 2)]
    indexed = mirror.Shape(3, columns, (1, 0))  # of any type
    now = dict[str, tuple[tuple[Any, ...], int]]()  # rows with their number, by text
    with pytest.MonkeyPatch.context() as patch:
        for shape in shapes:
            mirror.drop(connection, shape)
            mirror.create(connection, shape)
        mirror.drop(connection, indexed)
        mirror.create(connection, indexed, indexed=True)
        mirror.create_index(connection, indexed)
        for _ in range(4):
            net = dict[str, tuple[tuple[Any, ...], int]]()
            keys = set[Any]()
            for row in data.draw(st.lists(rows, max_size=4, unique_by=repr)):
                if keyed and row[0] in keys:
                    continue
                keys.add(row[0])
                for text, (old, _) in list(now.items()):
                    if keyed and old[0] == row[0]:
                        net[text] = (old, -1)
                number = now.get(repr(row), (row, 0))[1]
                weight = data.draw(st.sampled_from([1, 2, -number] if number else [1, 2])) if not keyed else 1
                net[repr(row)] = (row, net.get(repr(row), (row, 0))[1] + weight)
            net = {text: change for text, change in net.items() if change[1]}
            for text, (row, weight) in net.items():
                now[text] = (row, now.get(text, (row, 0))[1] + weight)
            now = {text: line for text, line in now.items() if line[1]}
            table = pa.Table.from_pylist(
                [dict(zip(schema.names, (*row, weight), strict=True)) for row, weight in net.values()], schema=schema
            )
            removals = sum(weight < 0 for _, weight in net.values())
            in_place = data.draw(st.booleans())
            for shape, few in zip(shapes, (incoming.FEW_ROWS, 0), strict=True):
                patch.setattr(incoming, "FEW_ROWS", few)
                if keyed and removals and in_place:
                    mirror.update(connection, shape, table, removals)
                else:
                    mirror.apply(connection, shape, table)
            if keyed:
                mirror.apply_by_index(connection, indexed, table, len(now))
            one, other, *more = (
                sorted(map(repr, mirror.rows(connection, shape).to_pylist())) for shape in (*shapes, *([indexed] if keyed else []))
            )
            assert one == other
            assert more in ([], [one])
            assert len(one) == len(now)


@pytest.mark.parametrize("type", [FLOAT4, FLOAT8], ids=str)
@pytest.mark.parametrize("count", [1, 2])
def test_nan_is_kept(connection: duckdb.DuckDBPyConnection, type: Type, count: int) -> None:
    columns = (Field("value", type),)
    schema = arrow_schema(columns, weight=True)
    shape = mirror.Shape(1, columns, None)
    mirror.drop(connection, shape)
    mirror.create(connection, shape)
    mirror.apply(connection, shape, pa.table([[math.nan, None][:count], [1] * count], schema=schema))
    rows = mirror.rows(connection, shape)
    assert sorted(map(repr, rows["value"].to_pylist())) == ["None", "nan"][-count:]


def test_infinite_times_are_kept() -> None:
    columns = tuple(Field(type.name, type) for type in (TIMESTAMP, TIMESTAMPTZ, DATE))
    schema = arrow_schema(columns, weight=True)
    numbers = (pa.array([2**63 - 1]), pa.array([1 - 2**63]), pa.array([2**31 - 1], pa.int32()))
    data = [number.cast(type) for number, type in zip(numbers, schema.types, strict=False)]
    shape = mirror.Shape(1, columns, None)
    with duckdb.connect() as connection:
        mirror.create(connection, shape)
        mirror.apply(connection, shape, pa.Table.from_arrays([*data, pa.array([1])], schema=schema))
        texts = connection.execute("SELECT CAST(c0 AS VARCHAR), CAST(c1 AS VARCHAR), CAST(c2 AS VARCHAR) FROM r1").fetchone()
        assert texts == ("infinity", "-infinity", "infinity")
