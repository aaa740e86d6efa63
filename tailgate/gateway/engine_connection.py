"""A connection to the engine, and what exists until it ends: the view of a push query, a PRINT, an advisory lock."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from tailgate.lake import control
from tailgate.lake.control import StatementResult
from tailgate.lake.errors import SystemError_
from tailgate.lake.writer import engines

REPLACED_LOOK_S = 1.0  # between checks whether the engine was replaced


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection to the engine with this announcement."""

    engine: engines.Announcement
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def ended(self) -> bool:
        """Returns whether the engine has closed it."""
        return self.reader.at_eof() or self.writer.transport.is_closing()

    def close(self) -> None:
        self.writer.transport.abort()


@dataclass(frozen=True, slots=True)
class PushView:
    """The view of a running push query. The engine drops it when the connection ends."""

    result: StatementResult
    _connection: Connection

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True, slots=True)
class HeldLock:
    """An advisory lock. The engine releases it when the connection ends."""

    _connection: Connection
    _is_replaced: Callable[[engines.Announcement], bool]

    async def lost(self) -> None:
        """Waits until the connection ends, or another engine has replaced this one, which may hang or be out of reach."""
        end = asyncio.ensure_future(self._end())
        try:
            while not end.done() and not self._is_replaced(self._connection.engine):
                await asyncio.wait((end,), timeout=REPLACED_LOOK_S)
        finally:
            end.cancel()

    async def _end(self) -> None:
        with contextlib.suppress(OSError):
            await self._connection.reader.read()

    def release(self) -> None:
        self._connection.close()


@dataclass(frozen=True, slots=True)
class Printed:
    """A PRINT that continues, until its limit or until it is closed."""

    _connection: Connection

    async def next(self) -> list[str]:
        """Waits for records and returns their lines; none at the end. Raises the error of the PRINT, or 58000."""
        try:
            return await control.next_part(self._connection.reader)
        except (OSError, asyncio.IncompleteReadError, ValueError):
            raise SystemError_("the engine ended while it printed a topic", hint="Start the PRINT again.") from None

    def close(self) -> None:
        self._connection.close()
