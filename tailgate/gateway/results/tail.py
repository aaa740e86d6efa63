"""The rows of TAIL and SUBSCRIBE: the changes of a relation or a query, with their times.

    serving.followers.changes ──► Batch(time, rows and weights) ──► mz_timestamp [, mz_progressed], shape's columns ──► fetch, or pieces

A follower pulls its changes. It holds a position in the log and at most one batch, so a slow follower uses little memory. Each batch
caches its rows and their encoded bytes, so they are computed once for all followers of the same relation in the same format.

A progress row with time t promises that no row with a time below t follows. It is sent after every complete time, and once a second
while nothing changes.

Source: Materialize 0.26, `TAIL`; 0.27, `SUBSCRIBE`; streaming-sql.md 1.1 to 1.3 about FETCH in its tests.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from tailgate.gateway.results.envelopes import Shape
from tailgate.gateway.serving.following import Batch
from tailgate.gateway.serving.prepared import Prepared
from tailgate.gateway.serving.service import Serving
from tailgate.lake.catalog import Item
from tailgate.lake.types import BOOL, Field, numeric
from tailgate.sql.authorization import Authorized, Followed

PROGRESS_EVERY_S = 1.0
OPENING_S = 1.0  # limits how long `close` waits for a feed that is still opening
CONSTANT_TIME = 2**64 - 1  # the time of rows that never change
MZ_TIMESTAMP = Field("mz_timestamp", numeric(0), False)
MZ_PROGRESSED = Field("mz_progressed", BOOL, False)


def columns(shape: Shape, progress: bool) -> tuple[Field, ...]:
    """Returns the columns of a TAIL. `progress`: with mz_progressed."""
    return (MZ_TIMESTAMP, MZ_PROGRESSED, *shape.outputs) if progress else (MZ_TIMESTAMP, *shape.outputs)


@dataclass(frozen=True, slots=True)
class Target:
    """The relation that a bound statement follows, or None for a query, and the shape of its rows."""

    item: Item | None
    shape: Shape


class SharedRows:
    """Rows that several followers share, with a cache of their encoded bytes by format."""

    __slots__ = ("_bytes", "_grown", "table")

    def __init__(self, table: pa.Table, grown: Callable[[int], None] = lambda size: None) -> None:
        """Calls `grown` with the size of each addition to the cache."""
        self.table = table
        self._bytes: dict[Hashable, bytes] = {}
        self._grown = grown

    def encoded(self, form: Hashable, encode: Callable[[pa.Table], bytes]) -> bytes:
        """Returns the rows encoded with `encode`. `form`: the cache key, equal for equal encodings."""
        data = self._bytes.get(form)
        if data is None:
            data = self._bytes[form] = encode(self.table)
            self._grown(len(data))
        return data


@dataclass(frozen=True, slots=True)
class TailOptions:
    """The options of a TAIL.

    `after`: changes later than this time are returned, and before them, with `snapshot`, the rows at this time. `up_to`: the time at
    which it ends. `progress`: with progress rows. `begins`: a progress row with the time `after` comes first. `constant`: the query reads
    no relation. `limit`: the number of rows after which it ends. `durable`: of a subscription, whose `fetch` returns complete times, and
    whose progress rows have the newest complete time.
    """

    after: int
    snapshot: bool
    progress: bool
    up_to: int | None = None
    constant: bool = False
    begins: bool = False
    durable: bool = False
    limit: int | None = None


class TailRows:
    """The rows of one TAIL, SUBSCRIBE or subscription.

    Call `fetch` or `piece` until `ended`, then `close`. Changes from while a view fails are returned with the next time at which it does
    not.
    """

    def __init__(
        self,
        serving: Serving,
        source: Authorized[Followed | Prepared],
        shape: Shape,
        options: TailOptions,
        values: Sequence[object] = (),
        changes: AsyncIterator[Batch] | None = None,
    ) -> None:
        """Begins to follow. `changes`: in place of those of the log."""
        after, snapshot, up_to = options.after, options.snapshot, options.up_to
        self.columns = columns(shape, options.progress)
        self.ended = False
        self._shape = shape
        self._serving = serving
        self._progress = options.progress
        self._up_to = up_to
        self._constant = options.constant
        self._remaining = options.limit  # rows until the end, or None
        self._position = after - 1 if snapshot else after  # everything up to this time has been read
        source_columns = shape.columns if isinstance(source.plan, Followed) else None
        self._iterator = changes or serving.followers.changes(
            source, after=after, snapshot=snapshot, values=values, patient=options.durable, columns=source_columns
        )
        self._begun = False
        self._durable = options.durable
        self._failure: BaseException | None = None  # raised after the rows that precede it were returned
        self._collected = 0  # rows of the running or last fetch
        self._pending: asyncio.Task[Batch | None] | None = None
        self._ready: list[SharedRows] = []
        self._schema = pa.schema([pa.field(f"c{i}", f.type.arrow) for i, f in enumerate(self.columns)])
        if options.begins and options.progress:
            self._ready.append(self._progress_row(after))
        if (options.constant and not snapshot) or (up_to is not None and up_to <= after) or options.limit == 0:
            self.ended = True

    async def fetch(self, limit: int | None, timeout: float | None = None) -> pa.Table:
        """Returns at most `limit` rows. If `durable`, returns complete times: more rows than that if the first time has more.

        Without a timeout, waits for the first row and then returns the available rows. With one, waits until there are `limit`
        rows or `timeout` seconds have passed.
        """
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        out: list[pa.Table] = []
        count = self._collected = 0
        while limit is None or count < limit:
            if self._ready:
                table = self._ready.pop(0).table
                if limit is not None and count + table.num_rows > limit and (count or not self._durable):
                    if self._durable:
                        self._ready.insert(0, SharedRows(table))
                        break
                    self._ready.insert(0, SharedRows(table.slice(limit - count)))
                    table = table.slice(0, limit - count)
                out.append(table)
                count += table.num_rows
                self._collected = count
            elif self.ended or (deadline is None and count and self._current):
                break
            elif self._failure is not None:
                if count:
                    break
                raise self._failure
            elif deadline is None or (loop.time() >= deadline and not self._current):
                await self._read(None)
            elif not await self._read(max(deadline - loop.time(), 0.0)) and loop.time() >= deadline and self._current:
                break
        return pa.concat_tables(out) if out else self._schema.empty_table()

    async def piece(self) -> SharedRows | None:
        """Waits for the next rows, which other followers may share. Returns None at the end."""
        while not self._ready:
            if self.ended:
                return None
            if self._progress or not self._begun or self._pending is not None:
                await self._read(None)
            else:  # waits for nothing else, so a task is not necessary
                self._arrived(await self._next())
        return self._ready.pop(0)

    @property
    def waiting(self) -> bool:
        """Returns whether no rows are available now."""
        return not self._ready

    @property
    def position(self) -> int:
        """Returns the time up to which everything has been read."""
        return self._position

    @property
    def empty(self) -> bool:
        """Returns whether no rows are available, and the last or running fetch has none."""
        return not self._ready and not self._collected

    @property
    def _promised(self) -> int:
        """Returns the time of a progress row. No row with an earlier time follows."""
        return self._position if self._durable else self._position + 1

    @property
    def _current(self) -> bool:
        """Returns whether everything up to the mirrors' time has been read."""
        return self._position >= self._serving.progress.time

    async def _read(self, wait: float | None) -> bool:
        """Reads the next batch into `_ready`. Returns False if none arrives within `wait` seconds."""
        if self._pending is None:
            self._pending = asyncio.ensure_future(self._next())
            self._pending.add_done_callback(_retrieve)
        patience = PROGRESS_EVERY_S if self._progress else None
        if wait is not None and (patience is None or wait < patience):
            patience = wait
        await asyncio.wait((self._pending,), timeout=patience)
        if not self._pending.done():
            if self._progress and (wait is None or wait >= PROGRESS_EVERY_S):
                self._ready.append(self._progress_row(self._promised))
            return False
        task, self._pending = self._pending, None
        if self._durable and task.exception() is not None:
            self._failure = task.exception()
        else:
            self._arrived(task.result())
        return True

    def _arrived(self, batch: Batch | None) -> None:
        self._begun = True
        if batch is None:
            self.ended = True
        else:
            self._take(batch)

    async def _next(self) -> Batch | None:
        try:
            return await self._iterator.__anext__()
        except StopAsyncIteration:
            return None

    def _take(self, batch: Batch) -> None:
        if self._up_to is not None and batch.time >= self._up_to:
            self.ended = True
            return
        self._position = batch.time
        if batch.table is not None and batch.table.num_rows:
            self._ready.append(self._limited(batch.shared((self._shape, self._progress, self._constant), self._shared_rows)))
        if self._progress and not self._constant:
            self._ready.append(self._progress_row(self._promised))
        if self._up_to is not None and batch.time + 1 >= self._up_to:
            self.ended = True  # no earlier time can follow

    def _limited(self, rows: SharedRows) -> SharedRows:
        """Returns the rows up to the limit, and ends there."""
        if self._remaining is None:
            return rows
        count = rows.table.num_rows
        out = rows if count <= self._remaining else SharedRows(rows.table.slice(0, self._remaining))
        self._remaining = max(self._remaining - count, 0)
        self.ended = self.ended or not self._remaining
        return out

    def _shared_rows(self, batch: Batch, grown: Callable[[int], None]) -> SharedRows:
        assert batch.table is not None
        shaped = self._shape.shaped(batch.table, batch.released)
        count = len(shaped[0])
        head = [_repeat(CONSTANT_TIME if self._constant else batch.time, count)]
        if self._progress:
            head.append(pa.repeat(pa.scalar(False), count))
        output = pa.Table.from_arrays([*head, *shaped], schema=self._schema)
        grown(output.nbytes)
        return SharedRows(output, grown)

    def _progress_row(self, time: int) -> SharedRows:
        rest = [pa.nulls(1, field.type) for field in list(self._schema)[2:]]
        return SharedRows(pa.Table.from_arrays([_repeat(time, 1), pa.array([True]), *rest], schema=self._schema))

    async def close(self) -> None:
        self.ended = True
        pending, self._pending = self._pending, None
        if pending is not None:
            try:
                if not self._begun:  # a feed cannot be closed while it is opening
                    await asyncio.wait((pending,), timeout=OPENING_S)
            finally:
                pending.cancel()
            with contextlib.suppress(BaseException):
                await pending
        aclose = getattr(self._iterator, "aclose", None)
        if aclose is not None:
            with contextlib.suppress(Exception):
                await aclose()


def _retrieve(task: asyncio.Task[Batch | None]) -> None:
    """Retrieves the task's exception, so that asyncio does not log it if the follower has already ended."""
    if not task.cancelled():
        task.exception()


def _repeat(time: int, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(Decimal(time), MZ_TIMESTAMP.type.arrow), count)
