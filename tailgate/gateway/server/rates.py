"""The rate of requests."""

from __future__ import annotations

import math


class Rate:
    """The rate of requests: a bucket that holds the tokens of one second, at least one. A request takes one.

    >>> rate = Rate()
    >>> [rate.admits(at, 2) for at in (0.0, 0.0, 0.0, 0.5, 0.5)]
    [True, True, False, True, False]
    """

    def __init__(self) -> None:
        self._tokens, self._at = math.inf, 0.0

    def admits(self, now: float, most: float) -> bool:
        """Returns whether one more request is admitted. `now`: the monotonic time in seconds. `most`: requests per second."""
        self._tokens = min(max(1.0, most), self._tokens + (now - self._at) * most)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
