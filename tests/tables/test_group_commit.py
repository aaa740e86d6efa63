"""Writes that are accepted while an entry of the inbox is made durable share the next entry."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from tailgate.engine.runtime.ticks.writes import Writes
from tailgate.lake.catalog import Item
from tailgate.lake.control import Part, Write
from tailgate.lake.errors import IoError
from tailgate.lake.log.entry import stream
from tailgate.lake.types import arrow_schema
from tailgate.lake.writer.inbox import Record
from tests.tables.world import World

WAIT_S = 30.0


class Held:
    """Writes over an inbox whose entries become durable one after the other, each when `next` says so."""

    def __init__(self, world: World) -> None:
        with psycopg.connect(world.dsn, autocommit=True) as c:
            c.execute("CREATE TABLE t (k int PRIMARY KEY)")
        world.together()
        self.table: Item = world.engine.writer.catalog.relation("t")
        self.base = world.engine.inbox.newest
        self.groups: list[int] = []  # how many records each entry has
        self._inbox, self._turns = world.engine.inbox, threading.Semaphore(0)
        self._entered = threading.Semaphore(0)
        self._error: Exception | None = None
        self.writes = Writes(world.engine.inbox, lambda: world.engine.writer.catalog, self._enter)
        self._pool = ThreadPoolExecutor(16)

    def _enter(self, records: list[Record], durable: Callable[[int], None]) -> int:
        self.groups.append(len(records))
        self._entered.release()
        assert self._turns.acquire(timeout=WAIT_S)
        if self._error is not None:
            raise self._error
        number = self._inbox.write(records)
        durable(number)
        return number

    def write(self, *keys: int, reads: Sequence[int] = ()) -> Future[dict[str, Any]]:
        """Inserts rows in a thread."""
        rows = pa.table([pa.array(keys, pa.int32()), pa.array([1] * len(keys))], schema=arrow_schema(self.table.columns, weight=True))
        hashes = memoryview(b"".join(key.to_bytes(8, sys.byteorder) for key in keys)).cast("Q")
        body = Write(self.base, tuple(reads), (Part(self.table.id, stream(rows), hashes),)).encode()
        return self._pool.submit(self.writes.write, body)

    def await_group(self) -> None:
        """Waits until an entry is being made durable."""
        assert self._entered.acquire(timeout=WAIT_S)

    def await_accepted(self, count: int) -> None:
        """Waits until this many writes are accepted and not durable."""
        deadline = time.monotonic() + WAIT_S
        while len(self.writes._accepted) != count:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def next(self, error: Exception | None = None) -> None:
        """Makes the entry durable, or fails with an error."""
        self._error = error
        self._turns.release()


@pytest.fixture
def held(world: World) -> Held:
    return Held(world)


def test_writes_during_an_entry_share_the_next_one(held: Held) -> None:
    first = held.write(1)
    held.await_group()
    others = [held.write(key) for key in range(2, 10)]
    held.await_accepted(9)
    held.next()
    held.await_group()
    held.next()
    assert first.result(WAIT_S) == {"number": held.base + 1}
    assert [other.result(WAIT_S) for other in others] == [{"number": held.base + 2}] * 8
    assert held.groups == [1, 8]


def test_a_write_of_the_same_key_waits_and_has_a_conflict(held: Held) -> None:
    first = held.write(1)
    held.await_group()
    second, third = held.write(1), held.write(2, reads=[held.table.id])
    other = held.write(3)
    held.await_accepted(2)
    held.next()
    held.await_group()
    assert first.result(WAIT_S) == {"number": held.base + 1}
    assert second.result(WAIT_S) == {"conflict": held.base + 1}
    assert not third.done()  # it has read the table, which the entry with key 3 changes
    held.next()
    assert other.result(WAIT_S) == {"number": held.base + 2}
    assert third.result(WAIT_S) == {"conflict": held.base + 2}


def test_an_entry_that_fails_fails_its_writes_only(held: Held) -> None:
    first = held.write(1)
    held.await_group()
    others = [held.write(2), held.write(3)]
    held.await_accepted(3)
    held.next(IoError("no space"))
    held.await_group()
    held.next()
    with pytest.raises(IoError):
        first.result(WAIT_S)
    assert [other.result(WAIT_S) for other in others] == [{"number": held.base + 1}] * 2
    again = held.write(1)  # nothing of the failed write is remembered
    held.await_group()
    held.next()
    assert again.result(WAIT_S) == {"number": held.base + 2}


def test_a_change_of_a_table_is_alone(held: Held) -> None:
    first = held.write(1)
    held.await_group()
    alone, left = threading.Event(), threading.Event()

    def change() -> int:
        with held.writes.accepted(Write(held.base, (held.table.id,), ())) as conflict:
            alone.set()
            assert left.wait(WAIT_S)
            return conflict

    with ThreadPoolExecutor(1) as pool:
        changed = pool.submit(change)
        assert not alone.wait(0.1)  # an entry is being written
        second = held.write(2)
        held.next()
        assert alone.wait(WAIT_S)
        assert len(held.writes._accepted) == 0
        left.set()
        assert changed.result(WAIT_S) == held.base + 1
        held.await_group()
        held.next()
        assert first.result(WAIT_S) == {"number": held.base + 1}
        assert second.result(WAIT_S) == {"number": held.base + 2}
