"""Figures of the mirrors, for metrics. The follower thread changes it; any thread may read it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable

from tailgate.lake.log.entry import Header
from tailgate.operations.metrics import Counter, Histogram

ENTRIES_KEPT = 2_000  # some minutes of ticks


class Figures:
    """The figures of a process's mirrors. `delays`: from the start of each tick until the mirrors show it.

    `updates`: how long the mirrors take to read new entries and to apply them.
    `rows` and `bytes`: changes by relation, whose label is its id. `at_end`: when the mirrors were last at the end of the log.
    `entries`: the newest entries that the mirrors show, each with the time in ms since when; `began`: the first one. `newest`: the header
    of the newest one.
    """

    def __init__(self) -> None:
        self.began = 0
        self.entries: deque[tuple[int, int]] = deque(maxlen=ENTRIES_KEPT)
        self.newest: Header | None = None
        self.delays, self.updates = Histogram(), Histogram()
        self.rows, self.bytes = Counter(), Counter()
        self.at_end = time.monotonic()
        self.trace: Callable[[int, int, int], None] | None = None  # entry, begin and end in ns of each tick, with --otlp

    def applied(self, relation: int, rows: int, size: int) -> None:
        """Counts changes of a relation, with their bytes."""
        self.rows.add(str(relation), by=rows)
        self.bytes.add(str(relation), by=size)

    def dropped(self, relation: int) -> None:
        """Forgets a relation that was dropped."""
        self.rows.remove(str(relation))
        self.bytes.remove(str(relation))

    def shown(self, headers: Iterable[Header], began_ns: int) -> None:
        """Observes the delay of entries that the mirrors show from now on. `began_ns`: when they began to read them."""
        now = time.time()
        self.updates.observe(max(0.0, now - began_ns / 1e9))
        for header in headers:
            self.delays.observe(max(0.0, now - header.time / 1000))
            self.entries.append((header.n, round(now * 1000)))
            self.newest = header
            if self.trace is not None and header.kind == "tick":
                self.trace(header.n, began_ns, round(now * 1e9))

    def reached_end(self) -> None:
        """Records that the mirrors show all entries."""
        self.at_end = time.monotonic()

    @property
    def behind_s(self) -> float:
        """Returns the seconds since the mirrors were last at the end of the log."""
        return time.monotonic() - self.at_end
