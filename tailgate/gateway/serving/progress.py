"""The position of the mirrors in the log: their time and catalog, and waiting for later ones."""

from __future__ import annotations

import asyncio
import time as clocks
from collections.abc import Callable, Iterable

from tailgate.gateway.mirrors.entries import CachedEntry
from tailgate.gateway.mirrors.mirrors import Mirrors
from tailgate.gateway.mirrors.state import State
from tailgate.gateway.serving.prepared import Prepared
from tailgate.lake.catalog import Catalog
from tailgate.lake.folder import Lake
from tailgate.lake.readers import reading

SINCE_KEPT = 1.0  # seconds that the result of `oldest` is cached


class Progress:
    """The position of the mirrors. It belongs to one event loop; the properties may be read from any thread."""

    def __init__(self, lake: Lake, mirrors: Mirrors) -> None:
        self._lake, self._mirrors = lake, mirrors
        self._callbacks: list[Callable[[int], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._advance: asyncio.Future[None] | None = None
        self._writes: list[tuple[int, asyncio.Future[None]]] = []  # entries of the inbox that sessions wait for
        self._since = (0, 0.0)
        mirrors.on_advance(self._moved)

    def start(self) -> None:
        """Starts to pass advances of the mirrors to the current event loop."""
        self._loop = asyncio.get_running_loop()
        self._advance = self._loop.create_future()

    def stop(self) -> None:
        """Stops passing advances on."""
        self._loop = None

    @property
    def catalog(self) -> Catalog:
        return self._mirrors.state.catalog

    @property
    def time(self) -> int:
        """Returns the newest time of the mirrors; 0 before the first entry."""
        return self._mirrors.state.time

    @property
    def known(self) -> tuple[Catalog, int]:
        """Returns the catalog and the number of the entry that last changed it."""
        state = self._mirrors.state
        return state.catalog, state.catalog_n

    @property
    def catalog_n(self) -> int:
        """Returns the number of the entry that last changed the catalog; a cache key."""
        return self._mirrors.state.catalog_n

    @property
    def inbox(self) -> int:
        """Returns the last inbox entry in the mirrors; writes evaluated from now on see it."""
        return self._mirrors.state.inbox

    @property
    def state(self) -> State:
        """Returns the state of the mirrors."""
        return self._mirrors.state

    def entries_after(self, n: int) -> list[CachedEntry] | None:
        """Returns the entries after `n` that the mirrors show, or None if some of them are not in memory."""
        return self._mirrors.entries_after(n)

    async def readable_since(self, relations: Iterable[int]) -> int:
        """Returns the oldest time at which all of these relations can be read."""
        return await asyncio.to_thread(reading.readable_since, self._lake, tuple(relations))

    def oldest(self) -> int:
        """Returns the oldest time that can still be read, up to SINCE_KEPT seconds late."""
        since, at = self._since
        now = clocks.monotonic()
        if now - at > SINCE_KEPT:
            since = reading.since(self._lake)
            self._since = (since, now)
        return since

    def on_advance(self, callback: Callable[[int], None]) -> None:
        """Registers a callback that the event loop calls with the new time after each advance."""
        self._callbacks.append(callback)

    async def wait(self, after: int, timeout: float) -> int:
        """Waits until the mirrors are later than `after`, at most `timeout` seconds.

        Returns the time of the mirrors.
        """
        deadline = clocks.monotonic() + timeout
        while self.time <= after and (left := deadline - clocks.monotonic()) > 0:
            assert self._advance is not None
            await asyncio.wait([self._advance], timeout=left)
        return self.time

    async def wait_inbox(self, number: int) -> None:
        """Waits until an inbox entry is committed and mirrored."""
        if self.inbox < number:
            mirrored = asyncio.get_running_loop().create_future()
            self._writes.append((number, mirrored))
            await mirrored

    async def wait_entry(self, n: int) -> None:
        """Waits until the mirrors are later than entry `n`."""
        while self._mirrors.state.n <= n:
            assert self._advance is not None
            await asyncio.shield(self._advance)  # a future that many tasks wait for

    def changed_since(self, prepared: Prepared, time: int) -> bool:
        """Tells whether the result may differ from that at `time`; if not, cached bytes are valid."""
        state = self._mirrors.state
        if prepared.volatile or prepared.catalog_n != state.catalog_n:
            return True
        return any(
            self._mirrors.changed_at(i.id) > time or (i.errors and self._mirrors.changed_at(i.errors) > time) for i in prepared.items
        )

    def _moved(self, state: State) -> None:
        """Passes a new state from the mirrors' thread to the event loop."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._tell, state)

    def _tell(self, state: State) -> None:
        if self._advance is not None and self._loop is not None:
            advance, self._advance = self._advance, self._loop.create_future()
            advance.set_result(None)
        waiting, self._writes = self._writes, []
        for number, mirrored in waiting:
            if mirrored.done():  # its task was canceled
                continue
            if number <= self.inbox:
                mirrored.set_result(None)
            else:
                self._writes.append((number, mirrored))
        for callback in self._callbacks:
            callback(state.time)
