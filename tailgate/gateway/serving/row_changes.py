"""The changes of the rows that streams of events follow by key. One follower of a relation serves all streams of its rows.

changes of a time ──► rows whose key has a stream ──► old and new object, written once for each endpoint ──► the queue of each stream

The cost of a tick is that of its changes, and of the streams whose row has changed. A stream that is not read has at most
PENDING_BYTES_MAX in its queue; then it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tailgate.gateway.resources import garbage
from tailgate.gateway.resources.budgets import Charge
from tailgate.gateway.serving.following import Batch
from tailgate.gateway.serving.lookup_plans import AccessPath, Lookup
from tailgate.gateway.serving.service import Serving
from tailgate.lake.errors import ConfigurationLimitExceeded, TailgateError, UndefinedTable
from tailgate.lake.types import Field
from tailgate.sql.authorization import Followed, shared
from tailgate.values import raw

PENDING_BYTES_MAX = 256 * 1024  # of a stream's events that are not sent
PIECE_ROWS = 250  # changed rows that are searched at once, in about 0.5 ms
STREAMS_AT_ONCE = 3  # streams that get an event before requests have a turn: sending one takes 0.05 to 0.1 ms
STREAMS_COLLECTED = 100  # streams that get an event before the garbage of sending is collected, which takes 2 ms

Row = tuple[Any, ...]  # of raw values
EventOf = Callable[[int, bytes | None], bytes]  # returns the event of a time, with the new object or None


@dataclass(frozen=True, slots=True)
class Target:
    """The row that a stream follows: the one with `key`, if it meets `others`.

    `lookup`: by the relation's key. `form`: streams with equal forms have equal events. `write`: returns the object of a row.
    """

    lookup: Lookup
    key: Row
    others: Sequence[tuple[int, Any]]
    form: Hashable
    write: Callable[[Row], bytes]
    event: EventOf

    def has(self, row: Row | None) -> bool:
        """Returns whether a row meets `others`."""
        return row is not None and all(row[column] == value for column, value in self.others)

    def change(self, time: int, old: Row | None, new: Row | None) -> bytes:
        """Returns the event of a change, empty if the object stays as it is."""
        before, after = (self.write(row) if row is not None and self.has(row) else None for row in (old, new))
        return b"" if before == after else self.event(time, after)


class _Stream:
    """A stream that is registered. `position`: its events are later. `error`: the one that ends it."""

    def __init__(self, target: Target, position: int, held: Charge) -> None:
        self.target, self.position, self._held = target, position, held
        self._waiting: asyncio.Future[None] | None = None
        self.error: Exception | None = None
        self._pending: deque[tuple[int, bytes]] = deque()
        self._size = 0

    def offer(self, time: int, old: Row | None, new: Row | None, written: dict[Hashable, bytes]) -> None:
        """Adds the event of a change. `written`: the events of this change by form."""
        target = self.target
        if time <= self.position or self.error is not None:
            return
        form = target.form, target.has(old), target.has(new)
        data = written.get(form)
        if data is None:
            data = written[form] = target.change(time, old, new)
        if not data:
            return
        if self._pending and self._size + len(data) > PENDING_BYTES_MAX:
            self.fail(ConfigurationLimitExceeded("the client of a stream of events does not read fast enough"))
            return
        try:
            self._held.add(len(data))
        except TailgateError as error:
            self.fail(error)
            return
        self._pending.append((time, data))
        self._size += len(data)
        self.wake()

    def fail(self, error: Exception) -> None:
        """Ends the stream after the events that wait."""
        self.error = error
        self.wake()

    def wake(self) -> None:
        """Ends `wait`."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def wait(self, seconds: float) -> None:
        """Waits until there is an event or an error, `wake` is called or the time is over."""
        if self._pending or self.error is not None:
            return
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        timer = loop.call_later(seconds, self.wake)
        try:
            await self._waiting
        finally:
            timer.cancel()
            self._waiting = None

    def take(self) -> list[tuple[int, bytes]]:
        """Returns the events that wait."""
        events = list(self._pending)
        self._pending.clear()
        self._held.add(-self._size)
        self._size = 0
        return events


class _Relation:
    """The streams of the rows of one relation, and its follower.

    `head`: the newest time that is delivered, or being delivered. `delivered`: the newest one whose events all streams have.
    """

    def __init__(self, serving: Serving, lookup: Lookup, ended: Callable[[_Relation], None]) -> None:
        self._serving, self._way, self.fields, self._ended = serving, lookup.way, lookup.fields, ended
        self._streams: dict[Row, set[_Stream]] = {}
        self._held = Charge(serving.budget)
        self._catalog = serving.progress.catalog
        self.head = self.delivered = serving.progress.time
        self._users = 0
        self._error: Exception | None = None
        self._task = asyncio.ensure_future(self._run())

    @property
    def count(self) -> int:
        """Returns the number of registered streams."""
        return len(self._all())

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Keeps the follower while the block runs."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._task.cancel()
                self._ended(self)

    @contextlib.contextmanager
    def registered(self, target: Target, position: int) -> Iterator[_Stream]:
        """Registers a stream whose position is not before `head`. Raises the error with which the follower has ended."""
        if self._error is not None:
            raise self._error
        stream = _Stream(target, position, self._held)
        self._streams.setdefault(target.key, set()).add(stream)
        try:
            yield stream
        finally:
            stream.take()
            self._streams[target.key].discard(stream)
            if not self._streams[target.key]:
                del self._streams[target.key]

    def changes(self, after: int) -> AsyncGenerator[Batch, None]:
        """Yields the changes of all rows after a time. Streams are authorized before they begin."""
        item = self._serving.progress.catalog.items.get(self._way.relation)
        if item is None:
            raise UndefinedTable("the relation of the endpoint does not exist")
        return self._serving.followers.changes(shared(Followed(item)), after=after, snapshot=False, columns=self.fields)

    async def _run(self) -> None:
        try:
            async with contextlib.aclosing(self.changes(self.head)) as changes:
                async for batch in changes:
                    self.head = batch.time
                    if batch.table is not None:
                        await self._deliver(batch.time, batch.table)
                    self.delivered = batch.time
                    if self._serving.progress.catalog is not self._catalog:
                        self._catalog = self._serving.progress.catalog
                        await self._wake()
        except Exception as error:  # noqa: BLE001  # each stream raises it
            self._error = error
            for stream in self._all():
                stream.fail(error)
            self._ended(self)

    async def _wake(self) -> None:
        """Lets each stream check whether it may continue."""
        for n, stream in enumerate(self._all(), 1):
            stream.wake()
            if n % STREAMS_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _all(self) -> list[_Stream]:
        return [stream for streams in self._streams.values() for stream in streams]

    async def _deliver(self, time: int, table: pa.Table) -> None:
        changed: dict[Row, list[Row | None]] = {}
        for start in range(0, table.num_rows, PIECE_ROWS):
            changed_rows(self.fields, self._way, table.slice(start, PIECE_ROWS), self._streams, changed)
            if table.num_rows > PIECE_ROWS:
                await asyncio.sleep(0)
        offered = 0
        for key, (old, new) in changed.items():
            written: dict[Hashable, bytes] = {}
            for stream in tuple(self._streams.get(key, ())):
                if stream in self._streams.get(key, ()):  # it has not ended since then
                    stream.offer(time, old, new, written)
                offered += 1
                if offered % STREAMS_AT_ONCE == 0:
                    await asyncio.sleep(0)
                if offered % STREAMS_COLLECTED == 0:
                    garbage.collect_new()


def changed_rows(fields: Sequence[Field], way: AccessPath, changes: pa.Table, keys: Any, changed: dict[Row, list[Row | None]]) -> None:
    """Adds to `changed`, by key, the old and the new row of those of `keys` that changes have."""

    def values(table: pa.Table, column: int) -> list[Any]:
        return raw.values(raw.stored(table.column(column), fields[column].type), fields[column].type)

    positions = [n for n, key in enumerate(zip(*(values(changes, i) for i in way.columns), strict=True)) if key in keys]
    if not positions:
        return
    part = changes.take(positions)
    weights = part.column(part.num_columns - 1).to_pylist()
    for row, weight in zip(zip(*(values(part, i) for i in range(len(fields))), strict=True), weights, strict=True):
        changed.setdefault(tuple([row[i] for i in way.columns]), [None, None])[weight > 0] = row


class RowChanges:
    """The followed relations of a gateway."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._relations: dict[tuple[AccessPath, tuple[Field, ...]], _Relation] = {}

    async def follow(self, target: Target, after: int, every: Callable[[], float]) -> AsyncGenerator[tuple[int, bytes], None]:
        """Yields time and event of each change of a row after a time, and a time without event after at most `every()` seconds."""
        key = target.lookup.way, target.lookup.fields
        relation = self._relations.get(key)
        if relation is None:
            relation = self._relations[key] = _Relation(self._serving, target.lookup, lambda ended: self._remove(key, ended))
        position = after
        with relation.used():
            if position < relation.head:
                async with contextlib.aclosing(relation.changes(position)) as missed:
                    async for batch in missed:
                        position = batch.time
                        yield position, _event_of(target, batch)
                        if position >= relation.head:
                            break
            with relation.registered(target, position) as stream:
                while True:
                    await stream.wait(every())
                    events = stream.take()
                    if not events and stream.error is not None:
                        raise stream.error
                    position = max(position, relation.delivered)
                    for event in events or [(position, b"")]:
                        yield event

    def _remove(self, key: tuple[AccessPath, tuple[Field, ...]], relation: _Relation) -> None:
        if self._relations.get(key) is relation:
            del self._relations[key]


def _event_of(target: Target, batch: Batch) -> bytes:
    """Returns the event of a target's row in a batch, empty if it has not changed."""
    changed: dict[Row, list[Row | None]] = {}
    if batch.table is not None:
        changed_rows(target.lookup.fields, target.lookup.way, batch.table, {target.key}, changed)
    old, new = changed.get(target.key, (None, None))
    return target.change(batch.time, old, new)
