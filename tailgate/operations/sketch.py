"""The distribution of durations in a bounded space: counts in buckets whose limits grow by 5 %.

0 │ ≤ 1 │ ≤ 1.05 │ ≤ 1.1025 │ …      a quantile is right to 5 % or one unit; the maximum is exact
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

GROWTH = 1.05
LOG_GROWTH = math.log(GROWTH)
STEP_S = 10  # of the history of freshness lag, and of the last minute
BUCKETS_MAX = 512  # the last one begins at 18 hours in microseconds, two years in milliseconds


class Sketch:
    """A distribution of durations, all in one unit. `missing`: how often there was no value."""

    __slots__ = ("_counts", "max", "missing")

    def __init__(self, counts: Mapping[int, int] | None = None, max: float | None = None, missing: int = 0) -> None:
        self._counts: dict[int, int] = dict(counts or {})
        self.max, self.missing = max, missing

    @property
    def counts(self) -> dict[int, int]:
        """Returns the number of values by bucket."""
        return dict(self._counts)

    def add(self, duration: float) -> None:
        """Counts a value."""
        bucket = 0 if duration <= 0 else min(BUCKETS_MAX, max(1, math.ceil(math.log(duration) / LOG_GROWTH) + 1))
        self._counts[bucket] = self._counts.get(bucket, 0) + 1
        self.peak(duration)

    def add_all(self, durations: np.ndarray) -> None:
        """Counts many values."""
        if not len(durations):
            return
        buckets = np.clip(np.ceil(np.log(np.maximum(durations, 1e-9)) / LOG_GROWTH) + 1, 1, BUCKETS_MAX).astype(int)
        for bucket, count in zip(*np.unique(np.where(durations <= 0, 0, buckets), return_counts=True), strict=True):
            self._counts[int(bucket)] = self._counts.get(int(bucket), 0) + int(count)
        self.peak(float(durations.max()))

    def peak(self, duration: float) -> None:
        """Raises the maximum without counting a value."""
        if self.max is None or duration > self.max:
            self.max = duration

    def merge(self, other: Sketch) -> None:
        """Adds the values of another sketch. The other may change meanwhile."""
        for bucket, count in list(other._counts.items()):
            self._counts[bucket] = self._counts.get(bucket, 0) + count
        self.missing += other.missing
        if other.max is not None:
            self.peak(other.max)

    def quantile(self, fraction: float) -> float | None:
        """Returns a quantile, or None without values.

        >>> sketch = Sketch()
        >>> for value in range(1, 101): sketch.add(value)
        >>> 94 <= sketch.quantile(0.95) <= 100
        True
        """
        return self.quantiles((fraction,))[0]

    def quantiles(self, fractions: Sequence[float]) -> list[float | None]:
        """Returns the quantiles of fractions in ascending order, each None without values."""
        counts = sorted(self._counts.items())
        total, below, ranks = sum(self._counts.values()), 0, iter(fractions)
        quantiles: list[float | None] = []
        fraction = next(ranks, None)
        for bucket, count in counts:
            below += count
            while fraction is not None and below >= fraction * total:
                upper = GROWTH ** (bucket - 1) if bucket else 0.0
                quantiles.append(upper if self.max is None else min(upper, self.max))
                fraction = next(ranks, None)
            if fraction is None:
                break
        return quantiles + [None] * (len(fractions) - len(quantiles))


class Window:
    """The distribution of the last `steps` times `step_s` seconds, to one step."""

    def __init__(self, step_s: float, steps: int) -> None:
        self._step_s = step_s
        self._sketches: deque[tuple[int, Sketch]] = deque(maxlen=steps + 1)
        self._ended: tuple[tuple[int, int], Sketch] = ((0, 0), Sketch())  # the oldest and the newest step of a total, and the sum before it

    def current(self, now_s: float) -> Sketch:
        """Returns the sketch of the current step."""
        step = int(now_s / self._step_s)
        if not self._sketches or self._sketches[-1][0] != step:
            self._sketches.append((step, Sketch()))
        return self._sketches[-1][1]

    def complete(self, after: int, now_s: float) -> list[tuple[int, Sketch]]:
        """Returns the steps later than `after` that have ended, each with its number."""
        return [(step, sketch) for step, sketch in list(self._sketches) if after < step < int(now_s / self._step_s)]

    def total(self, now_s: float) -> Sketch:
        """Returns the distribution of the whole window. Steps before the newest one do not change, so their sum is kept."""
        oldest = int(now_s / self._step_s) - (self._sketches.maxlen or 1) + 1
        sketches = [(step, sketch) for step, sketch in list(self._sketches) if step >= oldest]
        if not sketches:
            return Sketch()
        newest, latest = sketches.pop()
        steps, ended = self._ended
        if steps != (oldest, newest):
            ended = Sketch()
            for _, sketch in sketches:
                ended.merge(sketch)
            self._ended = ((oldest, newest), ended)
        total = Sketch(ended._counts, ended.max, ended.missing)
        total.merge(latest)
        return total
