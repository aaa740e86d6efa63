"""The rows of a running statement, and its command tag."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from tailgate.gateway.results.scrolling import moved
from tailgate.lake.types import Field


class Rows(Protocol):
    """The rows of a running statement.

    `fetch` waits for at least one row and returns at most `limit`. It returns none after the last row, when `ended` is true.
    """

    @property
    def columns(self) -> Sequence[Field]: ...

    @property
    def ended(self) -> bool: ...

    async def fetch(self, limit: int | None, timeout: float | None = None) -> pa.Table: ...

    async def close(self) -> None: ...


class TableRows:
    """The rows of a complete result, which is in memory.

    `step`: the maximal number of rows per fetch, which bounds the work of encoding. `at`: the cursor's position: the number of the
    last fetched row, counted from 1; 0 before the first row, and the number of rows plus 1 after the last.
    """

    def __init__(self, columns: Sequence[Field], table: pa.Table, step: int = 65_536) -> None:
        self.columns = columns
        self._table = table
        self._step = step
        self.at = 0
        self.ended = False

    async def fetch(self, limit: int | None, timeout: float | None = None) -> pa.Table:
        return self.scroll("forward", self._step if limit is None else min(limit, self._step))

    def scroll(self, way: str, count: int | None) -> pa.Table:
        """Moves the cursor and returns the rows. `way` and `count`: as in `moved`. `ended` refers to the forward direction."""
        size = self._table.num_rows
        first, number, self.at = moved(self.at, size, way, count)
        self.ended = self.at >= size
        return self._table.slice(first, number) if number > 0 else self._table.take(pa.array(np.arange(first, first + number, -1)))

    @property
    def current(self) -> pa.Table | None:
        """Returns the row at the cursor's position; None if it is not on a row."""
        return self._table.slice(self.at - 1, 1) if 1 <= self.at <= self._table.num_rows else None

    @property
    def nbytes(self) -> int:
        return int(self._table.nbytes)

    async def close(self) -> None:
        self.ended = True


class Tagged:
    """Rows with a command tag other than SELECT. `counted`: the tag contains the number of rows."""

    def __init__(self, rows: Rows, word: str, *, counted: bool = True) -> None:
        self.columns = rows.columns
        self.word = word
        self.counted = counted
        self.rows = rows

    @property
    def ended(self) -> bool:
        return self.rows.ended

    async def fetch(self, limit: int | None, timeout: float | None = None) -> pa.Table:
        return await self.rows.fetch(limit, timeout)

    async def close(self) -> None:
        await self.rows.close()


def tag(rows: Rows, count: int) -> str:
    """Returns the command tag for `count` rows."""
    if isinstance(rows, Tagged):
        return f"{rows.word} {count}" if rows.counted else rows.word
    return f"SELECT {count}"
