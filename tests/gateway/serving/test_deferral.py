"""Tests of the changes that tables of mirrors get later."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from tailgate.gateway.mirrors import clock, deferral
from tailgate.gateway.mirrors.deferral import CLOCK, Deferral
from tailgate.gateway.mirrors.state import State
from tests.gateway.serving.model_lake import NARROW, ModelLake, flip, serving, ticks_applied

RELATION = 7
PART = pa.table({"c0": ["x" * 1_000, "y"], "__weight": [1, -1]})


@pytest.mark.parametrize(("limit", "most"), [("ENTRIES_MAX", 3), ("ROWS_MAX", 5), ("BYTES_MAX", PART.nbytes * 5 // 2)])
def test_many_changes_are_applied_with_their_tick(limit: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thus no statement waits for more than that, and they do not fill the memory."""
    monkeypatch.setattr(deferral, limit, most)
    changes = Deferral()
    assert [changes.due({RELATION: [PART]}, ()) for _ in range(2)] == [{}, {}]
    due = changes.due({RELATION: [PART]}, ())
    assert {relation: len(parts) for relation, parts in due.items()} == {RELATION: 3, CLOCK: 0}
    changes.applied(due)
    assert changes.due({RELATION: [PART]}, ()) == {}


def test_the_clock_is_set_with_each_tick_while_statements_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement does not wait for the clock, even if the tables that it reads have not changed."""
    changes = Deferral()
    changes.begin((RELATION,))
    assert changes.due({}, ()) == {CLOCK: ()}
    changes.end((RELATION,))
    assert changes.due({}, ()) == {CLOCK: ()}
    monkeypatch.setattr(deferral, "EAGER_S", 0.0)
    assert changes.due({}, ()) == {}
    assert changes.are_behind()


def test_a_table_that_no_statement_reads_gets_its_changes_later(model: ModelLake, run, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB has the changes before the next statement reads the table, or when there are many. Other tables follow each tick."""
    monkeypatch.setattr(deferral, "ROWS_MAX", 10)
    applied = ticks_applied(monkeypatch)

    async def work() -> None:
        item, other = model.create("v", NARROW, (0,)), model.create("w", NARROW, (0,))
        model.tick({id: [((1, "x"), 1)] for id in (item.id, other.id)})

        async def ticks(count: int) -> None:
            for _ in range(count):
                time = model.tick({id: [((1, n), w) for n, w in flip(model, id, 1)] for id in (item.id, other.id)})
                await server.progress.wait(time - 1, 10)

        def rows(relation: int) -> list[tuple[object, ...]]:
            with server.mirrors.reading((relation,)):
                return server._sandbox.cursor().execute(f"SELECT c0, c1, t FROM r{relation}, clock").fetchall()

        async with serving(model) as server:
            await asyncio.gather(*map(asyncio.wrap_future, server.mirrors.need([item, other])))
            applied.clear()
            await ticks(3)
            assert applied == []
            assert rows(other.id) == [(*next(iter(model.now[other.id])), server.progress.time)]
            assert applied == [3]
            await ticks(1)
            assert applied == [3, 1]
            await ticks(1)  # the fifth one
            assert (applied[:2], sorted(applied[2:])) == ([3, 1], [1, 5])
            await ticks(1)
            assert rows(item.id) == [(*next(iter(model.now[item.id])), server.progress.time)]
            assert applied[4:] == [1, 1]

    run(work)


def test_changes_are_deferred_until_the_table_is_gone(model: ModelLake, run, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a tick drops a table that lacks changes, a statement that begins to read it waits for the tick."""
    set_clock, deferred = clock.set_clock, list[dict[int, Any]]()

    async def work() -> None:
        item, other = model.create("v", NARROW, (0,)), model.create("w", NARROW, (0,))
        async with serving(model) as server:
            await asyncio.gather(*map(asyncio.wrap_future, server.mirrors.need([item, other])))
            time = model.tick({item.id: [((1, "x"), 1)]})
            await server.progress.wait(time - 1, 10)

            def noted(connection: Any, state: State, lists: Any) -> None:
                if item.id not in state.catalog.items:
                    deferred.append(server.mirrors.deferral.lacking((item.id,)))
                set_clock(connection, state, lists)

            with server.mirrors.reading((other.id,)):
                monkeypatch.setattr(clock, "set_clock", noted)
                model.drop(item)
                await server.progress.wait(time, 10)
            assert [list(lacking) for lacking in deferred] == [[item.id]]
            assert server.mirrors.deferral.lacking() == {}

    run(work)


def test_relations_that_were_read_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement may end after the mirror that it has read was dropped."""
    monkeypatch.setattr(deferral, "EAGER_S", 0.0)
    monkeypatch.setattr(deferral, "READ_MAX", 10)
    changes = Deferral()
    for relation in range(100):
        changes.begin([relation])
        changes.end([relation])
    assert len(changes._read_at) <= 10
