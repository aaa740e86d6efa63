"""The pauses of the garbage collector, which stops all threads of the process.

    survivors of a full collection ──freeze──► permanent: no collection examines them
    twice as many as when all objects were examined ──unfreeze──► the next full collection examines all

A full collection takes about 1 ms for 4,000 objects. Without `freeze_survivors` it examines all objects of the process: with 1,000
streams of events these are 100,000. Frozen objects are freed as others are, when nothing refers to them; only cycles of them wait
until all objects are examined again.
"""

from __future__ import annotations

import gc
from typing import Any

# A young collection after 700 new objects, a middle one after 6 of them, a full one after 3 of those: they examine at most 4,200 and about
# 13,000 objects, in 2 and 5 ms. With Python's (700, 10, 10), a full one examined 77,000 new objects of 1,000 streams of events in 31 ms.
THRESHOLDS = (700, 5, 2)
FULL = 2  # the generation whose collection examines all objects that are not frozen
GROWTH = 2  # a larger process has more garbage in frozen cycles, and pauses longer when all objects are examined


class _Survivors:
    """Freezes the survivors of full collections. `limit`: the number of frozen objects above which all are examined again."""

    def __init__(self) -> None:
        self.limit, self.unfrozen = 0, True

    def collected(self, phase: str, info: dict[str, Any]) -> None:
        """Handles the begin and the end of a collection, in the thread that has caused it."""
        if phase != "stop" or info["generation"] != FULL:
            return
        gc.freeze()
        count = gc.get_freeze_count()
        if self.unfrozen:
            self.limit, self.unfrozen = GROWTH * count, False
        elif count > self.limit:
            gc.unfreeze()
            self.unfrozen = True


def freeze_survivors() -> None:
    """Collects garbage now, and from now on freezes what survives a full collection."""
    gc.set_threshold(*THRESHOLDS)
    gc.callbacks.append(_Survivors().collected)
    gc.collect()
    gc.collect()  # Python delays a full collection until the new objects are a quarter of those that survived the last one: now of few
