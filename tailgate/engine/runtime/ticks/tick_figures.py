"""Figures of the ticks, for metrics. The thread of the ticks changes it; any thread may read it."""

from __future__ import annotations

import time
from collections.abc import Iterable

from tailgate.engine.runtime.ticks.ages import TickAge
from tailgate.engine.runtime.ticks.tick_result import Ticked
from tailgate.operations.metrics import Counter, Histogram

MS = 1_000_000  # nanoseconds


def intervals(tick: TickAge, result: Ticked) -> list[tuple[str, int, int]]:
    """Returns the steps of a tick with begin and end, in nanoseconds since the epoch. The first is from the arrival of its oldest record.

    The steps in the JVM follow one another from the beginning of the tick.
    """
    arrivals = [arrival for _, arrival in tick.oldest.values()]
    steps = [("read", min([*arrivals, tick.began]) * MS, tick.began * MS)]
    at = tick.began * MS
    for step, nanoseconds in result.took:
        steps.append((step, at, at + nanoseconds))
        at += nanoseconds
    return [*steps, ("entry", tick.computed * MS, tick.committed * MS)]


class TickFigures:
    """The figures of an engine's ticks. `rows` and `bytes`: changes by relation, whose label is its id.

    `failing`: whether the newest tick failed. `committed_at`: when the newest tick was committed. `began_at`: when the
    tick that runs began, None between ticks. Both are times of the monotonic clock.
    """

    def __init__(self) -> None:
        self.phases, self.rows, self.bytes = Histogram(), Counter(), Counter()
        self.failures = 0
        self.failing = False
        self.committed_at = time.monotonic()
        self.began_at: float | None = None

    @property
    def running_s(self) -> float:
        """Returns for how long a tick has been running, 0 between ticks."""
        began_at = self.began_at
        return 0.0 if began_at is None else time.monotonic() - began_at

    @property
    def busy_s(self) -> float:
        """Returns for how long ticks have been running since the start, without those that failed."""
        committed = self.phases.series().get(("total",))
        return (0.0 if committed is None else committed.sum) + self.running_s

    def began(self, at: float) -> None:
        """Records the begin of a tick."""
        self.began_at = at

    def committed(self, start: float, computed: float, result: Ticked) -> None:
        """Records a tick that is committed now. `start` and `computed`: when it began, and when the JVM had its result."""
        now = time.monotonic()
        for phase, seconds in (("circuit", computed - start), ("commit", now - computed), ("total", now - start)):
            self.phases.observe(seconds, phase)
        for relation, (rows, size) in result.sizes.items():
            self.rows.add(str(relation), by=rows)
            self.bytes.add(str(relation), by=size)
        self.failing, self.committed_at, self.began_at = False, now, None

    def dropped(self, relations: Iterable[int]) -> None:
        """Forgets relations that were dropped."""
        for relation in relations:
            self.rows.remove(str(relation))
            self.bytes.remove(str(relation))

    def failed(self) -> None:
        """Records a tick that failed."""
        self.failures += 1
        self.failing, self.began_at = True, None
