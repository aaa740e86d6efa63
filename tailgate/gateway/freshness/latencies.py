"""The latency of endpoints in this gateway: a distribution for each step of STEP_S seconds of the last minute, for objectives."""

from __future__ import annotations

import time

from tailgate.lake.catalog import Catalog, Endpoint
from tailgate.operations.sketch import STEP_S, Sketch, Window


class Latencies:
    """The latencies of requests by endpoint, in milliseconds. The event loop changes them; any thread may read."""

    def __init__(self) -> None:
        self._windows: dict[int, Window] = {}

    def add(self, endpoint: int, ms: float) -> None:
        """Counts a request."""
        window = self._windows.get(endpoint)
        if window is None:
            window = self._windows[endpoint] = Window(STEP_S, 6)
        window.current(time.time()).add(ms)

    def steps(self, catalog: Catalog, after: int) -> list[tuple[int, int, int, float | None, dict[int, int]]]:
        """Returns the steps that have ended, later than `after`, in the form of `rows.steps`. Forgets endpoints that were dropped."""
        now = time.time()
        for id in [id for id in self._windows if not isinstance(catalog.items.get(id), Endpoint)]:
            del self._windows[id]
        return [(id, step, *_figures(sketch)) for id, window in list(self._windows.items()) for step, sketch in window.complete(after, now)]


def _figures(sketch: Sketch) -> tuple[int, float | None, dict[int, int]]:
    return sketch.missing, sketch.max, sketch.counts
