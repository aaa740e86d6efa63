"""Ticks wait while snapshots of the state are uploaded too slowly, because versions without one are limited (engine/java, Snapshots).

    versions since the last uploaded snapshot     0 … 40 % of the limit      no wait
                                                  … 100 %                    up to 2 s before each tick, growing with the square
                                                  beyond                     10 s, doubled every ten versions

An upload that hangs for two minutes at any rate of ticks brings them to about one a second. A wait ends when an upload has succeeded.
Beyond the limit, a tick passes now and then all the same: an upload that failed is only repeated with a newer snapshot.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

log = logging.getLogger("tailgate.engine")

FREE = 0.4  # of the limit: no wait
WAIT_S = 2.0  # before a tick at the limit
BEYOND_S, DOUBLED = 10.0, 10  # before a tick beyond it, doubled every so many versions
LOOK_S = 0.05


def wait_of(lineage: int, limit: int) -> float:
    """Returns the seconds to wait before a tick.

    >>> [round(wait_of(n, 700), 2) for n in (280, 490, 700, 710, 720)]
    [0.0, 0.5, 10.0, 20.0, 40.0]
    """
    if lineage >= limit:
        return float(BEYOND_S * 2 ** ((lineage - limit) / DOUBLED))
    return float(WAIT_S * max(0.0, (lineage / limit - FREE) / (1 - FREE)) ** 2)


class Pacing:
    """Waits before ticks. One thread calls `wait`; the newest tick tells `lineage`."""

    def __init__(self, snapshots: Any) -> None:
        self._snapshots = snapshots
        self._limit = int(snapshots.limit())
        self.lineage = 0
        self._told = False

    def wait(self, stopping: Callable[[], bool]) -> None:
        """Returns when the next tick may begin."""
        began = time.monotonic()
        while (wait := wait_of(self.lineage, self._limit)) > time.monotonic() - began and not stopping():
            if self.lineage >= self._limit and not self._told:
                log.error("%d versions of the state have no uploaded snapshot; ticks wait until one is uploaded", self.lineage)
                self._told = True
            time.sleep(min(wait, LOOK_S))
            self.lineage = int(self._snapshots.lineage())
        if self._told and self.lineage < self._limit:
            log.warning("a snapshot of the state is uploaded; ticks go on")
            self._told = False
