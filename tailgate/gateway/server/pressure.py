"""The reaction to memory pressure: evicts caches and collects all garbage, then ends long-running statements with 53200.

The event loop checks the gateway's memory twenty times a second. The kernel refuses faster growth (`gateway.resources.memory.hold`).
"""

from __future__ import annotations

import asyncio
import logging
import time

from tailgate.gateway.resources import garbage, memory
from tailgate.gateway.serving.service import Serving

log = logging.getLogger("tailgate.gateway")

LOOK_S = 0.05
GIVE_BACK_S = 1.0
COLLECT_S = 60.0  # between two collections of all garbage, which stop the process for 150 ms with 250,000 objects
MUCH = 0.4  # share of the memory above which freed memory is returned to the kernel
HIGH = 0.85  # share of the memory above which caches are evicted and statements are ended


class Pressure:
    """The monitor of a gateway's memory."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._over = 0  # consecutive checks above the limit
        self._collected_at = -COLLECT_S

    async def watch(self) -> None:
        """Checks the memory every LOOK_S seconds until it is cancelled."""
        given_back_at = 0.0
        while True:
            resident = memory.hold(int(HIGH * self._serving.memory.total), self._serving.memory.total)
            self.look(resident)
            if resident > MUCH * self._serving.memory.total and time.monotonic() - given_back_at > GIVE_BACK_S:
                await asyncio.to_thread(memory.give_back)
                given_back_at = time.monotonic()
            await asyncio.sleep(LOOK_S)

    def look(self, resident: int) -> None:
        """Evicts caches and collects all garbage if `resident` bytes exceed the limit. Then ends statements, those of superusers last."""
        if resident <= HIGH * self._serving.memory.total:
            self._over = 0
            return
        self._over += 1
        freed = self._serving.budget.evict()
        collects = self._over == 1 and time.monotonic() - self._collected_at > COLLECT_S
        if collects:
            garbage.collect_all()
            self._collected_at = time.monotonic()
        ended = self._serving.end_long(superusers=self._over > 2) if self._over > 1 or not (freed or collects) else 0
        if self._over == 1 or ended:
            log.warning(
                "memory is short: %d of %d MiB; %d MiB of caches are forgotten, %d statements ended",
                resident >> 20, self._serving.memory.total >> 20, freed >> 20, ended,
            )  # fmt: skip
