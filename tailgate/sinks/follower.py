"""A notification of new log entries. One thread waits for the log, and all workers wait for that thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta


class Follower:
    """The newest entry of the log, and the workers that wait for a later one."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._changed = threading.Condition()

    def arrived(self, n: int) -> None:
        """Reports that the log has entries up to n."""
        with self._changed:
            self._n = n
            self._changed.notify_all()

    def wake(self) -> None:
        """Wakes all workers so that they check whether to end."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, n: int, timeout: timedelta, ending: Callable[[], bool]) -> None:
        """Waits for an entry after `n`, for `ending()`, or for the timeout. May return early."""
        with self._changed:
            if self._n <= n and not ending():
                self._changed.wait(timeout.total_seconds())
