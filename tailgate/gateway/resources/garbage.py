"""The pauses of the garbage collector, which stops all threads of the process.

    survivors of a middle or full collection ──freeze──► permanent: no collection examines them
    three times the memory in use when all objects were examined ──unfreeze──► the next full collection examines all

A collection takes about 1 ms for 2,000 new objects. Without `freeze_survivors` a full one examines all objects of the process: with 1,000
streams of events these are 100,000; and if only full ones froze them, each would examine the objects of three middle ones, in 5 to 10 ms.
Python begins its count of middle collections again when objects are frozen, so a full one is only made after `unfreeze`. Frozen objects
are freed as others are, when nothing refers to them; only cycles of them wait until all objects are examined again: at the latest when
memory is short (`server.pressure`).
"""

from __future__ import annotations

import gc
import sys
from typing import Any

# A young collection after 700 new objects, a middle one after 6 of them, which examines at most 4,200 objects, in 2 ms. With Python's
# (700, 10, 10) and without freezing, a full one examined 77,000 new objects of 1,000 streams of events in 31 ms.
THRESHOLDS = (700, 5, 2)
MIDDLE = 1  # the generation whose collection examines the objects since the last one
FULL = 2  # the generation whose collection examines all objects that are not frozen
GROWTH = 3  # a larger process has more garbage in frozen cycles; to examine all objects takes 150 ms for 250,000


class _Survivors:
    """Freezes the survivors of collections. `limit`: the number of blocks in use above which all objects are examined again, which the
    next full collection does while `unfrozen`.

    Blocks of memory are counted by pools in 0.1 ms. Python counts frozen objects one by one: of 160,000 in 15 to 30 ms.
    """

    def __init__(self) -> None:
        self.limit, self.unfrozen = 0, True

    def collected(self, phase: str, info: dict[str, Any]) -> None:
        """Handles the begin and the end of a collection, in the thread that has caused it."""
        if phase != "stop" or info["generation"] < (FULL if self.unfrozen else MIDDLE):
            return
        gc.freeze()
        blocks = sys.getallocatedblocks()
        if self.unfrozen:
            self.limit, self.unfrozen = GROWTH * blocks, False
        elif blocks > self.limit:
            gc.unfreeze()
            self.unfrozen = True


def freeze_survivors() -> None:
    """Collects garbage now, and from now on freezes what survives a middle or full collection."""
    gc.set_threshold(*THRESHOLDS)
    gc.callbacks.append(_Survivors().collected)
    gc.collect()
    gc.collect()  # Python delays a full collection until the new objects are a quarter of those that survived the last one: now of few


def collect_all() -> None:
    """Collects all garbage, also that in frozen cycles. What survives is frozen again, if `freeze_survivors` was called."""
    gc.unfreeze()
    gc.collect()


def collect_new() -> None:
    """Collects the garbage among the objects since the last middle collection.

    For work that replaces many objects by new ones. Python counts new objects without as many that are freed, so it would examine the
    objects of a lot of such work at once: 500 events of streams replace 10,000.
    """
    gc.collect(MIDDLE)
