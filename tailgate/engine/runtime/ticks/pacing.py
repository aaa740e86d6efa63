"""Delays ticks while snapshots of the state are uploaded too slowly.

The number of state versions without an uploaded snapshot is limited (tailgate/engine/java, Snapshots).

    versions since the last uploaded snapshot     0 … 40 % of the limit      no wait
                                                  … 100 %                    up to 2 s before each tick, growing with the square
                                                  beyond                     10 s, doubled every ten versions

If an upload hangs for two minutes, ticks slow down to about one per second, whatever their rate
was. A wait ends when an upload succeeds. Beyond the limit some ticks still run, because a failed
upload is repeated only with a newer snapshot.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

log = logging.getLogger("tailgate.engine")

# fraction of the limit up to which ticks do not wait
FREE = 0.4
WAIT_S = 2.0  # wait before a tick at the limit
# wait before a tick beyond the limit, and after how many versions it doubles
BEYOND_S, DOUBLED = 10.0, 10
LOOK_S = 0.05  # between two checks during a wait


def wait_of(lineage: int, limit: int) -> float:
    """Returns the seconds to wait before a tick.

    >>> [round(wait_of(n, 700), 2) for n in (280, 490, 700, 710, 720)]
    [0.0, 0.5, 10.0, 20.0, 40.0]
    """
    if lineage >= limit:
        return float(BEYOND_S * 2 ** ((lineage - limit) / DOUBLED))
    return float(WAIT_S * max(0.0, (lineage / limit - FREE) / (1 - FREE)) ** 2)


class Pacing:
    """Delays ticks. One thread calls `wait` before each tick, and `committed` after it. `lineage`: the newest number of versions."""

    def __init__(self, snapshots: Any) -> None:
        self._snapshots = snapshots
        self._limit = int(snapshots.limit())
        self.lineage = self._of_tick = 0
        self._told = False

    def wait(self, stopping: Callable[[], bool]) -> None:
        """Waits until the next tick may begin."""
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

    def committed(self, lineage: int) -> bool:
        """Sets the number of versions after a tick. Returns whether a snapshot was uploaded since the tick before, also during `wait`."""
        uploaded = lineage < self._of_tick
        self.lineage = self._of_tick = lineage
        return uploaded
