"""The freshness lag of relations, from answers of the engine and from the newest entry of the mirrors.

    engine: oldest record that no tick has read ─┐
    engine: oldest record of each tick ──────────┼─► oldest record that the mirrors do not show ──► lag of a source ──► of a relation
    mirrors: entry that they show, and since when ┘

The freshness lag of a relation is the age of the oldest record that its topics hold and that it does not show yet; 0 if it shows all.
It is unknown if a source below it cannot be read. Times are in milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tailgate.lake.catalog import Catalog, Item, MaterializedView, Source, Table
from tailgate.lake.readers.failed import failure
from tailgate.operations.sketch import STEP_S, Window

ANSWER_AGE_MAX_MS = 2_000  # an older answer of the engine says nothing about the present
NO_ENGINE = "the engine does not answer"
BACKFILL, FAILED, PAUSED, ERRORS = "the view is being backfilled", "the view has failed", "the view is paused", "the view has errors"


@dataclass(frozen=True, slots=True)
class Phases:
    """The durations, in milliseconds, of the steps of the oldest record in the newest tick that has read an input."""

    kafka: int
    wait: int
    tick: int
    commit: int
    mirror: int


@dataclass(frozen=True, slots=True)
class Lag:
    """A freshness lag in milliseconds; None if it is unknown, for a reason. `slowest`: the input that causes it."""

    ms: float | None
    reason: str | None = None
    slowest: int | None = None


@dataclass
class History:
    """The distributions of a relation's freshness lag."""

    minute: Window = field(default_factory=lambda: Window(STEP_S, 6))
    hour: Window = field(default_factory=lambda: Window(300, 12))
    day: Window = field(default_factory=lambda: Window(3600, 24))

    @property
    def windows(self) -> tuple[Window, Window, Window]:
        return self.minute, self.hour, self.day


@dataclass(frozen=True, slots=True)
class Tick:
    """A committed tick, as the engine answers. `oldest`: time and arrival of the oldest record of each input."""

    n: int
    began: int
    computed: int
    committed: int
    oldest: Mapping[int, tuple[int, int]]


class Lags:
    """The lags of all inputs and relations. One thread changes them; any may read. `newest` returns the entry that the mirrors show."""

    def __init__(self, newest: Callable[[], int] = lambda: 0) -> None:
        self._newest = newest
        self._answered_at = 0
        self._inputs: dict[int, tuple[int | None, str | None]] = {}
        self._reads: dict[int, int] = {}  # by input: the entry of the tick that reads all its records of the last answer
        self._failing: frozenset[int] = frozenset()
        self._hidden: list[Tick] = []  # ticks that the mirrors do not show, in order
        self.phases: dict[int, Phases] = {}  # by input
        self.histories: dict[int, History] = {}  # by relation
        self._below: tuple[Catalog | None, dict[int, frozenset[int]]] = (None, {})
        self.n = 0  # the newest tick that the engine has reported
        self.version = 0  # of the engine's last answer

    def answered(self, answer: Mapping[str, Any], now: int) -> None:
        """Takes the engine's answer to a request for the ticks after `n`."""
        self._answered_at = now
        self._inputs = {int(id): (oldest, reason) for id, (oldest, reason) in answer["inputs"].items()}
        self._reads = {int(id): n for id, n in answer.get("reads", {}).items()}  # missing in answers of earlier versions
        self._failing = frozenset(answer["failing"])
        self.version = answer.get("version", 0)
        for n, began, computed, committed, oldest in answer["ticks"]:
            if n > self.n:
                by_input = {int(id): (int(at), int(arrival)) for id, (at, arrival) in oldest.items()}
                self._hidden.append(Tick(n, began, computed, committed, by_input))
                self.n = n

    def lost(self) -> None:
        """Records that the engine does not answer: its last answer says nothing about the present."""
        self._answered_at = 0

    def shown(self, entries: Sequence[tuple[int, int]]) -> dict[int, int]:
        """Takes the newest entries that the mirrors show, each with the time since when. Returns the peak lag of each input in them."""
        peaks: dict[int, int] = {}
        if not self._hidden or not entries:
            return peaks
        since, newest = dict(entries), entries[-1][0]
        while self._hidden and self._hidden[0].n <= newest:
            tick = self._hidden.pop(0)
            at = since.get(tick.n)
            if at is None:
                continue  # the mirrors began after it
            for id, (time, arrival) in tick.oldest.items():
                peaks[id] = max(peaks.get(id, 0), at - time)
                self.phases[id] = Phases(
                    max(0, arrival - time),
                    max(0, tick.began - arrival),
                    max(0, tick.computed - tick.began),
                    max(0, tick.committed - tick.computed),
                    max(0, at - tick.committed),
                )
        return peaks

    def lag(self, catalog: Catalog, item: Item, now: int) -> Lag:
        """Returns the freshness lag of a relation now."""
        if now - self._answered_at > ANSWER_AGE_MAX_MS:
            return Lag(None, NO_ENGINE)
        if (reason := self._unreadable(item)) is not None:
            return Lag(None, reason)
        worst = Lag(0.0)
        for id in self.inputs(catalog, item):
            oldest, reason = self._oldest(id)
            if reason is not None:
                return Lag(None, reason, id)
            age = 0.0 if oldest is None else max(0.0, now - oldest)
            if worst.slowest is None or age > (worst.ms or 0):
                worst = Lag(age, None, id)
        return worst

    def inputs(self, catalog: Catalog, item: Item) -> frozenset[int]:
        """Returns the ids of the sources and tables below a relation, or its own."""
        if self._below[0] is not catalog:
            self._below = (catalog, {})
        return _inputs(catalog, item, self._below[1])

    def observe(self, catalog: Catalog, relations: Iterable[Item], peaks: Mapping[int, int], now: int) -> None:
        """Adds the present lags and the peaks to the histories of relations, and forgets relations that do not exist."""
        existing = {item.id: item for item in relations}
        for id in self.histories.keys() - existing.keys():
            del self.histories[id]
        for item in existing.values():
            lag = self.lag(catalog, item, now)
            peak = max((peaks.get(id, 0) for id in self.inputs(catalog, item)), default=0)
            history = self.histories.setdefault(item.id, History())
            for window in history.windows:
                sketch = window.current(now / 1000)
                if lag.ms is None:
                    sketch.missing += 1
                else:
                    sketch.add(lag.ms)
                    sketch.peak(peak)

    def _oldest(self, id: int) -> tuple[int | None, str | None]:
        """Returns the time of the oldest record of an input that the mirrors do not show, and why it is not known."""
        pending, reason = self._inputs.get(id, (None, None))
        newest = self._newest()
        if newest >= self._reads.get(id, newest + 1):
            pending = None
        times = [tick.oldest[id][0] for tick in list(self._hidden) if tick.n > newest and id in tick.oldest]
        return min([*times, *([] if pending is None else [pending])], default=None), reason

    def _unreadable(self, item: Item) -> str | None:
        if not isinstance(item, MaterializedView):
            return None
        if failure(item) is not None:
            return FAILED
        if item.paused:
            return PAUSED
        if not item.ready or item.stale is not None:
            return BACKFILL
        return ERRORS if item.id in self._failing else None


def _inputs(catalog: Catalog, item: Item, inputs: dict[int, frozenset[int]]) -> frozenset[int]:
    if item.id not in inputs:
        if isinstance(item, Source | Table):
            inputs[item.id] = frozenset({item.id})
        else:
            below = [catalog.items[id] for id in item.depends if id in catalog.items]
            inputs[item.id] = frozenset().union(*(_inputs(catalog, other, inputs) for other in below))
    return inputs[item.id]
