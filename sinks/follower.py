"""One look at the log for all sinks: the main thread waits for entries, the workers wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta


class Follower:
    def __init__(self, n: int) -> None:
        self._n = n
        self._changed = threading.Condition()

    def arrived(self, n: int) -> None:
        """The log has entries to n."""
        with self._changed:
            self._n = n
            self._changed.notify_all()

    def wake(self) -> None:
        """Lets everybody look whether they are to end."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, seen: int, timeout: timedelta, ending: Callable[[], bool]) -> None:
        """Until there is an entry after `seen`, or the end, or the time is over. May return early."""
        with self._changed:
            if self._n <= seen and not ending():
                self._changed.wait(timeout.total_seconds())
