"""Tests of the copies that replace the tables of mirrors."""

import asyncio
import contextlib
import threading

import duckdb
import pytest

from tailgate.gateway.mirrors import copies, mirror, tables
from tailgate.gateway.mirrors.mirrored import Mirrored
from tests.gateway.serving.model_lake import NARROW, ModelLake, bag, flip, serving


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("dropped", [False, True])
def test_ticks_do_not_wait_for_a_copy(model: ModelLake, run, indexed: bool, dropped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a table is copied, the mirror shows new entries, and leaves if the relation is dropped."""
    monkeypatch.setattr(tables, "CHANGES_BEFORE_COPY_MIN", 10)
    if indexed:
        monkeypatch.setattr(tables, "ROWS_INDEXED_MIN", 5)
    copying, may_end, reads = threading.Event(), threading.Event(), contextlib.ExitStack()
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

        async def flip_all() -> None:
            time = model.tick({item.id: [((i, n), w) for i in range(20) for n, w in flip(model, item.id, i)]})
            assert await server.progress.wait(time - 1, 10) == time

        async with serving(model) as server:
            await asyncio.gather(*map(asyncio.wrap_future, server.mirrors.need([item])))
            reads.enter_context(server.mirrors.reading())
            while not copying.is_set():
                await flip_all()
            for _ in range(3):
                await flip_all()
            (table,) = [table for table in server.mirrors._mirrored[item.id].tables.values() if table.rows]
            if dropped:
                before = server.progress.time  # the gateway may have the next one at once
                model.drop(item)
                await server.progress.wait(before, 10)
            may_end.set()
            cursor = server._sandbox.cursor()
            if dropped:
                while cursor.execute("SELECT table_name FROM duckdb_tables()").fetchall() != [("clock",)]:
                    await asyncio.sleep(0.01)
                return
            while table in server.mirrors._mirrored[item.id].tables.values():
                await asyncio.sleep(0.01)
            await flip_all()
            with server.queries.snapshot() as snapshot, snapshot.use() as connection:
                snapshot.bring([item])
                assert bag(mirror.rows(connection, mirror.shape(item))) == model.now[item.id]

    with reads:
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
                with server.mirrors.reading():
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
    copy = copies.Copies.copy

    def late_copy(self: copies.Copies, entry: Mirrored, table: tables.Table) -> None:
        copying.set()
        assert may_begin.wait(60)
        copy(self, entry, table)
        ended.set()

    monkeypatch.setattr(copies.Copies, "copy", late_copy)

    async def work() -> None:
        item = model.create("v", NARROW, (0,))
        model.tick({item.id: [((0, "x"), 1)]})
        async with serving(model) as server:
            await asyncio.gather(*map(asyncio.wrap_future, server.mirrors.need([item])))
            with server.mirrors.reading():
                model.tick({item.id: [((i, "x"), 1) for i in range(1, 12)]})
                assert await asyncio.to_thread(copying.wait, 60)
            model.drop(item)
            while server.mirrors.table_of(item.id) is not None:
                await server.progress.wait(server.progress.time, 1)
            may_begin.set()
            assert await asyncio.to_thread(ended.wait, 60)
        assert "could not be copied" not in caplog.text

    run(work)
