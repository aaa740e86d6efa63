"""A time limit on queries in the event loop, enforced by a thread that interrupts them.

A query runs in the event loop if its last run took about a millisecond. If it takes longer now, it
is interrupted and runs on a thread instead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

AGAIN_S = 0.005  # between interrupts: DuckDB ignores an interrupt before the statement has started


class Watchdog:
    """A watchdog that calls `interrupt` after `limit` seconds. Its thread starts at the first use."""

    def __init__(self, interrupt: Callable[[], None], limit: float) -> None:
        self._interrupt, self._limit = interrupt, limit
        self._changed = threading.Condition()
        self._busy = self._stopped = False
        self._thread: threading.Thread | None = None

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Interrupts the code in the block, repeatedly, once the limit has passed."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="tailgate-patience", daemon=True)
            self._thread.start()
        with self._changed:
            self._busy = True
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        with self._changed:
            while not self._stopped:
                if not self._busy:
                    self._changed.wait()
                elif not self._changed.wait_for(lambda: not self._busy or self._stopped, self._limit):
                    while self._busy and not self._stopped:
                        self._interrupt()
                        self._changed.wait(AGAIN_S)
