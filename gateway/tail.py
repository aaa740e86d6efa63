"""TAIL as rows: the changes of a relation or a query in the columns and with the timing that TAIL promises.

    serving.changes ──► Batch(time, rows and weights) ──► mz_timestamp [, mz_progressed], mz_diff, columns… ──► fetch(count, timeout)

A follower is pulled: it holds a place in the log and at most one batch, so a slow one costs no memory.

A progress row with time t promises that no row with a time below t follows. It is sent after every time that is complete, and again
once a second while nothing happens.

Source: Materialize 0.26, `TAIL`; streaming-sql.md 1.1 and 1.3 for what its tests say about FETCH.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from lake.types import BOOL, INT8, WEIGHT, Field, numeric

if TYPE_CHECKING:
    from gateway.serving import Batch, Prepared, Serving

PROGRESS_EVERY_S = 1.0
OPENING_S = 1.0  # that the end of a follower waits for its beginning
CONSTANT_TIME = 2**64 - 1  # of rows that can never change
MZ_TIMESTAMP = Field("mz_timestamp", numeric(0), False)
MZ_PROGRESSED = Field("mz_progressed", BOOL, False)
MZ_DIFF = Field("mz_diff", INT8)


def columns(relation: Sequence[Field], progress: bool) -> tuple[Field, ...]:
    if not progress:
        return (MZ_TIMESTAMP, MZ_DIFF, *relation)
    return (MZ_TIMESTAMP, MZ_PROGRESSED, MZ_DIFF, *relation)


class TailRows:
    """`fetch` until `ended`; `close` at the end. `after`: the time whose rows come first, if `snapshot`, and whose changes do not."""

    def __init__(
        self,
        serving: Serving,
        source: int | Prepared,
        relation: Sequence[Field],
        *,
        values: Sequence[object] = (),
        after: int,
        snapshot: bool,
        progress: bool,
        up_to: int | None = None,
        constant: bool = False,
    ) -> None:
        self.columns = columns(relation, progress)
        self.ended = False
        self._relation = tuple(relation)
        self._serving = serving
        self._progress = progress
        self._up_to = up_to
        self._constant = constant
        self._position = after - 1 if snapshot else after  # all up to this time has been read
        self._iterator: AsyncIterator[Batch] = serving.changes(source, after=after, snapshot=snapshot, values=values)
        self._begun = False
        self._pending: asyncio.Task[Batch | None] | None = None
        self._ready: list[pa.Table] = []
        self._schema = pa.schema([pa.field(f"c{i}", f.type.arrow) for i, f in enumerate(self.columns)])
        if constant and not snapshot:
            self.ended = True

    async def fetch(self, limit: int | None, timeout: float | None = None) -> pa.Table:
        """At most `limit` rows.

        Without a timeout: waits for the first row, then gives what there is. With one: waits until there are `limit` rows or
        so many seconds have passed.
        """
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        out: list[pa.Table] = []
        count = 0
        while limit is None or count < limit:
            if self._ready:
                table = self._ready.pop(0)
                if limit is not None and count + table.num_rows > limit:
                    self._ready.insert(0, table.slice(limit - count))
                    table = table.slice(0, limit - count)
                out.append(table)
                count += table.num_rows
            elif self.ended or (deadline is None and count and self._current):
                break
            elif deadline is None or (loop.time() >= deadline and not self._current):
                await self._read(None)
            elif not await self._read(max(deadline - loop.time(), 0.0)) and loop.time() >= deadline and self._current:
                break
        return pa.concat_tables(out) if out else self._schema.empty_table()

    @property
    def _current(self) -> bool:
        """Whether all that the mirrors have has been read."""
        return self._position >= self._serving.time

    async def _read(self, wait: float | None) -> bool:
        """Reads the next batch into `_ready`; False if none came within `wait` seconds."""
        if self._pending is None:
            self._pending = asyncio.ensure_future(self._next())
        patience = PROGRESS_EVERY_S if self._progress else None
        if wait is not None and (patience is None or wait < patience):
            patience = wait
        await asyncio.wait((self._pending,), timeout=patience)
        if not self._pending.done():
            if self._progress and (wait is None or wait >= PROGRESS_EVERY_S):
                self._ready.append(self._progress_row())
            return False
        task, self._pending = self._pending, None
        self._begun = True
        batch = task.result()
        if batch is None:
            self.ended = True
        else:
            self._take(batch)
        return True

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
            self._ready.append(self._rows(batch.time, batch.table))
        if self._progress and not self._constant:
            self._ready.append(self._progress_row())

    def _rows(self, time: int, table: pa.Table) -> pa.Table:
        count = table.num_rows
        head = [_repeat(CONSTANT_TIME if self._constant else time, count)]
        if self._progress:
            head.append(pa.repeat(pa.scalar(False), count))
        weights = table.column(table.num_columns - 1)
        assert table.column_names[-1] == WEIGHT
        return pa.Table.from_arrays([*head, weights, *table.columns[:-1]], schema=self._schema)

    def _progress_row(self) -> pa.Table:
        rest = [pa.nulls(1, field.type) for field in list(self._schema)[2:]]
        return pa.Table.from_arrays([_repeat(self._position + 1, 1), pa.array([True]), *rest], schema=self._schema)

    async def close(self) -> None:
        self.ended = True
        if self._pending is not None:
            if not self._begun:  # a feed that is being opened can only be closed once it is open
                await asyncio.wait((self._pending,), timeout=OPENING_S)
            self._pending.cancel()
            with contextlib.suppress(BaseException):
                await self._pending
            self._pending = None
        aclose = getattr(self._iterator, "aclose", None)
        if aclose is not None:
            with contextlib.suppress(Exception):
                await aclose()


def _repeat(time: int, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(Decimal(time), MZ_TIMESTAMP.type.arrow), count)
