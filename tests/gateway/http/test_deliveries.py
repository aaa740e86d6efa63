"""The delivery of a tick's events to many streams."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tailgate.gateway.resources.budgets import Budget, Charge
from tailgate.gateway.serving import row_changes


class Cycle:
    """An object that only the garbage collector frees."""

    def __init__(self) -> None:
        self.itself = self


def following(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Returns the streams of a relation, and the row that all of them follow. Each delivery changes the row."""
    relation = object.__new__(row_changes._Relation)
    relation._streams, relation._held, relation._error = {}, Charge(Budget("test", 100_000)), None
    target: Any = SimpleNamespace(key=(1,), form="", has=bool, change=lambda time, old, new: b"event")
    monkeypatch.setattr(relation, "fields", (), raising=False)
    monkeypatch.setattr(relation, "_way", None, raising=False)
    monkeypatch.setattr(row_changes, "changed_rows", lambda *arguments: arguments[-1].update({(1,): [None, (1,)]}))
    return relation, target


def test_a_stream_that_ends_during_a_delivery_holds_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others of its key have a turn before it."""
    relation, target = following(monkeypatch)

    async def run() -> None:
        with ExitStack() as streams:
            for _ in range(2 * row_changes.STREAMS_AT_ONCE):
                streams.enter_context(relation.registered(target, 0))
            delivery = asyncio.ensure_future(relation._deliver(1, pa.table({"a": [1]})))
            await asyncio.sleep(0)
            assert relation._held.size == row_changes.STREAMS_AT_ONCE * len(b"event")
        await delivery

    asyncio.run(run())
    assert relation._held.size == 0


def test_the_garbage_of_many_events_is_collected_during_a_delivery(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python alone would examine the objects of all events at once."""
    relation, target = following(monkeypatch)

    async def run() -> None:
        with ExitStack() as streams:
            for _ in range(row_changes.STREAMS_COLLECTED):
                streams.enter_context(relation.registered(target, 0))
            await relation._deliver(1, pa.table({"a": [1]}))

    gc.disable()
    try:
        cycle = Cycle()
        alive = weakref.ref(cycle)
        del cycle
        asyncio.run(run())
        assert alive() is None
    finally:
        gc.enable()
