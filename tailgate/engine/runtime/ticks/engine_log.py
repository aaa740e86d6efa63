"""The log as the running engine writes it: the newest entry, the catalog, and their lock.

A tick holds the lock `boundary` from start to end. Code that appends an entry or changes the circuit
holds it as well, so such changes happen between two ticks.

A tick that fails before its entry is written has no effect: no entry names its state. After an
error behind that point, memory and log no longer agree. The engine then ends (`committed_change`),
and the next engine starts from the log.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from tailgate.engine.runtime.ticks.ages import Ages
from tailgate.engine.runtime.ticks.view_errors import Failing
from tailgate.lake.catalog import Catalog, Change
from tailgate.lake.errors import CrashShutdown, Replaced, Uncertain
from tailgate.lake.folder import Lake
from tailgate.lake.log.entry import Header
from tailgate.lake.log.state_files import folder_of
from tailgate.lake.writer.log_writer import Writer

Changes = Sequence[tuple[int, bytes | memoryview | pa.Table]]


class EngineLog:
    """The newest entry and the catalog of a running engine, until it stops or fails."""

    def __init__(self, lake: Lake, writer: Writer) -> None:
        self.lake = lake
        self.writer = writer
        self.boundary = threading.RLock()
        self.committed = threading.Condition()
        self.newest: Header = writer.newest
        self.uploaded: int | None = None  # the entry whose state this engine has uploaded (`runtime.state`)
        self.lacks_state = False  # whether the entries since then are not enough to continue the state
        self.changed = self.newest.n  # the newest entry that changes relations or the catalog
        lake.log.looks = False  # this process appends the entries
        self.catalog: Catalog = lake.catalog()
        self.failing = Failing(lake, self.catalog)
        self.ages = Ages()
        self.ended = threading.Event()  # set when the engine stops or fails
        self._fatal: BaseException | None = None
        self._wakers: list[Callable[[], None]] = []

    # ---- entries ---------------------------------------------------------------------------------

    def append(self, changes: Changes = (), **fields: Any) -> Header:
        """Appends the next log entry and wakes the threads that wait for it.

        The caller holds the boundary.
        """
        fields.setdefault("time", max(time.time_ns() // 1_000_000, self.newest.time + 1))
        try:
            header = self.writer.append(changes=changes, **fields)
        except (Replaced, Uncertain) as error:
            self.end(error)
            raise
        with self.committed_change():
            if header.catalog is not None:
                self.failing.watch(header.catalog)
            self.failing.add(changes)
            self.lacks_state |= header.state != self.newest.state and not header.state_files
            with self.committed:
                self.newest = header
                if header.relations or header.catalog is not None:
                    self.changed = header.n
                self.committed.notify_all()
        return header

    def change(self, change: Change) -> None:
        """Changes items of the catalog that the circuit does not depend on, or the catalog before the first circuit runs."""
        with self.boundary:
            self.append(kind="catalog", catalog=change)
            with self.committed_change():
                self.catalog = self.catalog.apply(change)

    @contextmanager
    def committed_change(self) -> Iterator[None]:
        """Guards code that updates memory after a log entry: any error in it ends the engine."""
        try:
            yield
        except Exception as error:
            self.end(error)
            raise CrashShutdown(
                "the engine ends because its memory no longer agrees with the log",
                detail=f"The statement was carried out. Then this failed: {error}",
                hint="The engine starts again from the log.",
            ) from error

    def wait_inbox(self, number: int, alive: Callable[[], bool]) -> None:
        """Waits until the tick that read this inbox entry is in the log.

        Returns early if `alive` becomes false or the engine stops.
        """
        with self.committed:
            while self.newest.inbox < number and alive() and not self.stopping:
                self.committed.wait(1.0)

    def wait_newer(self, n: int, timeout: float) -> Header:
        """Waits for a log entry after `n`, at most `timeout` seconds. Returns the newest entry."""
        with self.committed:
            self.committed.wait_for(lambda: self.newest.n > n or self.stopping, timeout)
            return self.newest

    @property
    def state_folder(self) -> str:
        """Returns the name of the folder of the current state in the store of this machine."""
        return folder_of(self.newest)

    @property
    def state_path(self) -> str:
        """Returns the location of the current state, for Spark."""
        return self.lake.local.location(self.state_folder)

    # ---- the end ---------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stops the engine at the next boundary."""
        with self.boundary:
            self.finish()

    def finish(self) -> None:
        """Ends the engine now, also within a tick."""
        self.ended.set()
        self.ages.end()
        for wake in self._wakers:
            wake()
        with self.committed:
            self.committed.notify_all()

    def end(self, error: BaseException) -> None:
        """Ends the engine: `raise_failure` raises the error, and nothing more is committed."""
        if self._fatal is None:
            self._fatal = error
        self.finish()

    def raise_failure(self) -> None:
        """Raises the error that ended the engine, if there was one."""
        if self._fatal is not None:
            raise self._fatal

    @property
    def stopping(self) -> bool:
        """Returns whether the engine was stopped or ends because of an error."""
        return self.ended.is_set()

    def on_end(self, wake: Callable[[], None]) -> None:
        """Calls `wake` when the engine stops or fails."""
        self._wakers.append(wake)
