"""The age of an entry: for how long, in ms, engines had been running on the lake when it was written.

Retention counts in ages and not in times. A time follows the wall clock, which an operator or a time service may set by a day in
either direction; an age follows the monotonic clock of the engine that writes. A step from one entry to the next counts a minute
at most, so neither a machine that was suspended nor a process that was paused makes anything old. While no engine runs, nothing
ages.
"""

from __future__ import annotations

import time

STEP_MAX_MS = 60_000  # an idle engine appends an entry every 10 s


def now() -> int:
    """Milliseconds of a clock that nobody sets."""
    return time.monotonic_ns() // 1_000_000


class Ages:
    """The ages of the entries that one writer appends."""

    def __init__(self, age: int) -> None:
        self._age, self._at = age, now()

    def next(self) -> int:
        """The age of an entry that is written now."""
        return self._age + min(now() - self._at, STEP_MAX_MS)

    def appended(self, age: int) -> None:
        """An entry of this age is in the log."""
        self._age, self._at = age, now()
