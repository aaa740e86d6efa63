"""The freshness lag of relations, from answers of the engine and from the newest entry of the mirrors.

    engine: oldest records that no tick has read, up to a position ─┐
    engine: oldest record of each tick ─────────────────────────────┼─► oldest record that the mirrors do not show ──► lag of a source
    mirrors: the entry that they show, and its positions ───────────┘                                              ──► of a relation

The freshness lag of a relation is the age of the oldest record that its topics hold and that it does not show yet; 0 if it shows all.
It is unknown if a source below it cannot be read. Times are in milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tailgate.lake.catalog import Catalog, Item, MaterializedView, Source, Table
from tailgate.lake.log.entry import Header
from tailgate.lake.readers.failed import failure
from tailgate.operations.sketch import STEP_S, Window

ANSWER_AGE_MAX_MS = 2_000  # an older answer of the engine says nothing about the present
NO_ENGINE = "the engine does not answer"
BACKFILL, FAILED, PAUSED, ERRORS = "the view is being backfilled", "the view has failed", "the view is paused", "the view has errors"


Unread = Sequence[tuple[int, int | None]]  # the times of the oldest records, each with the position behind the records


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
    """The lags of all inputs and relations. One thread changes them; any may read.

    `newest` returns the header of the entry that the mirrors show.
    """

    def __init__(self, newest: Callable[[], Header | None]) -> None:
        self._newest = newest
        self._answered_at = 0
        self._reasons: dict[int, str] = {}  # by input: why its oldest record is not known
        self._unread: dict[int, Unread] = {}  # by input
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
        for n, began, computed, committed, oldest in answer["ticks"]:
            if n > self.n:
                by_input = {int(id): (int(at), int(arrival)) for id, (at, arrival) in oldest.items()}
                self._hidden.append(Tick(n, began, computed, committed, by_input))
                self.n = n
        # after the ticks, so that a record is rather in both than in none
        unread = answer.get("unread")
        if unread is None:  # an engine of an earlier version
            unread = {id: [(oldest, None)] for id, (oldest, _) in answer["inputs"].items() if oldest is not None}
        self._unread = {int(id): records for id, records in unread.items()}
        self._reasons = {int(id): reason for id, (_, reason) in answer["inputs"].items() if reason is not None}
        self._failing = frozenset(answer["failing"])
        self.version = answer.get("version", 0)

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
            if id in self._reasons:
                return Lag(None, self._reasons[id], id)
            oldest = self._oldest(catalog.items[id])
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
        for id in self.phases.keys() - catalog.items.keys():
            del self.phases[id]
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

    def _oldest(self, item: Item) -> int | None:
        """Returns the time of the oldest record of an input that the mirrors do not show."""
        unread = self._unread.get(item.id, ())  # before the ticks, so that a record is rather in both than in none
        newest = self._newest()
        n = 0 if newest is None else newest.n
        times = [tick.oldest[item.id][0] for tick in list(self._hidden) if tick.n > n and item.id in tick.oldest]
        if unread:
            read = _position(newest, item)
            times += [time for time, position in unread if position is None or position > read]
        return min(times, default=None)

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


def _position(header: Header | None, item: Item) -> int:
    """Returns how far an entry has read an input: an entry of the inbox, or the sum of the next offsets of the topic's partitions."""
    if header is None:
        return 0
    if not isinstance(item, Source):
        return header.inbox
    reader, topic = item.channel.rsplit("/", 1)
    return sum(header.offsets.get(reader, {}).get(topic, {}).values())


def _inputs(catalog: Catalog, item: Item, inputs: dict[int, frozenset[int]]) -> frozenset[int]:
    if item.id not in inputs:
        if isinstance(item, Source | Table):
            inputs[item.id] = frozenset({item.id})
        else:
            below = [catalog.items[id] for id in item.depends if id in catalog.items]
            inputs[item.id] = frozenset().union(*(_inputs(catalog, other, inputs) for other in below))
    return inputs[item.id]
