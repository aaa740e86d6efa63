"""The age of an entry: how long, in ms, engines had been running on the lake when it was written.

Retention uses ages instead of times. A time follows the wall clock, which an operator or a time service
may set by a day in either direction. An age follows the monotonic clock of the writing engine. The age
grows by at most a minute from one entry to the next, so suspending the machine or pausing the process
makes nothing old. While no engine runs, ages do not grow.
"""

from __future__ import annotations

import time

STEP_MAX_MS = 60_000  # an idle engine appends an entry every 10 s


def now() -> int:
    """Returns the milliseconds of the monotonic clock."""
    return time.monotonic_ns() // 1_000_000


class Ages:
    """The ages of the entries that one writer appends."""

    def __init__(self, age: int) -> None:
        self._age, self._at = age, now()

    def next(self) -> int:
        """Returns the age of an entry that is written now."""
        return self._age + min(now() - self._at, STEP_MAX_MS)

    def appended(self, age: int) -> None:
        """Records that an entry of this age is in the log."""
        self._age, self._at = age, now()
