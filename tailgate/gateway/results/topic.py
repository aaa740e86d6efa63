"""The records of a topic as they arrive, of a PRINT that continues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from tailgate.lake.types import Field


class Lines(Protocol):
    """Lines that arrive. `next` waits for some and returns none at the end."""

    async def next(self) -> list[str]: ...

    def close(self) -> None: ...


class TopicRows:
    """A row for each line. The first row is NULL: a client that waits for it knows that the topic is read."""

    def __init__(self, columns: Sequence[Field], lines: Lines) -> None:
        self.columns = columns
        self.ended = False
        self._lines = lines
        self._ready: list[str | None] = [None]

    async def fetch(self, limit: int | None, timeout: float | None = None) -> pa.Table:
        if not self._ready and not self.ended:
            self._ready += await self._lines.next()
            self.ended = not self._ready
        count = len(self._ready) if limit is None else limit
        rows, self._ready = self._ready[:count], self._ready[count:]
        return pa.table([pa.array(rows, pa.string())], names=["c0"])

    async def close(self) -> None:
        self.ended = True
        self._lines.close()
