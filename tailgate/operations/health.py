"""Whether a process lives, has started, and is ready for clients."""

from __future__ import annotations

import threading
from collections.abc import Callable

BEHIND_MAX_S = 5.0  # a process that has not been at the end of the log for so long is not ready


class Health:
    """The health of a process. `check` returns why it is not ready, or None; it is called once the process has started."""

    def __init__(self, check: Callable[[], str | None] = lambda: None) -> None:
        self._check = check
        self._started = threading.Event()

    def started(self, check: Callable[[], str | None] | None = None) -> None:
        """Records that the process has started, and how to check whether it is ready."""
        if check is not None:
            self._check = check
        self._started.set()

    def stands_by(self) -> None:
        """Records that the process has started, and stands by until it may replace another one."""
        self.started(lambda: "the process stands by")

    def unstarted(self) -> str | None:
        """Returns why the process has not started, or None."""
        return None if self._started.is_set() else "the process is starting"

    def unready(self) -> str | None:
        """Returns why the process is not ready, or None."""
        return self.unstarted() or self._check()
