"""The answer of `GET /freshness`: the oldest records that no tick has read, and the oldest that each of the newest ticks has read.

A request waits while nothing has changed since the client's last answer. A record, a write, and the end of a tick are changes: the
doorbell starts a tick for each of them (`Ages`). An answer is given between two ticks, unless one takes longer than TICK_S, because a
short tick has read the records before the client knows them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from py4j.protocol import Py4JError

from tailgate.engine.runtime.kafka.readers import freshness_channels, reader_name
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.lake.catalog import Source, Table
from tailgate.lake.control import FRESHNESS_HOLD_S
from tailgate.lake.writer.inbox import TABLE

TICK_S = 0.1  # longest wait for the end of a tick
STARTING, STALLED = "the engine is starting", "the source cannot be read"
CONNECTING = "the source is being connected"

Fetched = Mapping[str, Mapping[str, Any]]  # the answer of `TickLoop.pending`, by reader

T = TypeVar("T")


class Freshness:
    """Answers requests of gateways. Safe from many threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._inherited = engine.inbox.newest  # the last entry that an earlier engine may have written

    def __call__(self, after: int, version: int = 0) -> dict[str, Any]:
        """Returns {"n", "version", "inputs", "reads", "failing", "ticks"}. Waits while this is the version, at most FRESHNESS_HOLD_S.

        - `inputs`: by id of a source or table, the time of the oldest record that no tick up to entry `n` has read, and why it is not
          known.
        - `reads`: by the same ids, the entry of the tick that reads all these records. Missing if more ticks may be needed.
        - `failing`: the ids of views that have errors.
        - `ticks`: those later than entry `after`: n, when it began, was computed and was committed, and by id of a source or table the
          time and arrival of the oldest record.
        """
        engine = self._engine
        version = engine.ages.changed(version, FRESHNESS_HOLD_S)
        ticks = engine.ages.between(TICK_S)
        n, catalog = engine.newest.n, engine.catalog  # before the pending records: a record is rather counted twice than not at all
        inputs = [item for item in catalog.items.values() if isinstance(item, Source | Table)]
        channels = {item.id: _channels(item) for item in inputs}
        fetched, waiting = self._fetched(), engine.ages.waiting()
        next_tick = n + 1 if ticks is not None and engine.ages.between(0) == ticks else n + 2  # the first that begins later
        return {
            "n": n,
            "version": version,
            "inputs": {item.id: self._input(item, fetched, waiting) for item in inputs},
            "reads": {item.id: next_tick for item in inputs if _fits_tick(item, fetched)},
            "failing": [item.id for item in catalog.items.values() if item.errors and engine.failing.has_error(item)],
            "ticks": [
                [t.n, t.began, t.computed, t.committed, {id: list(at) for id, of in channels.items() if (at := _first(t.oldest, of))}]
                for t in engine.ages.after(after)
            ],
        }

    def _fetched(self) -> Fetched:
        """Returns the times of the oldest records that no tick has read."""
        loop = self._engine.runner.loop
        if loop is None:
            return {}
        try:
            return dict(json.loads(loop.pending()))
        except Py4JError:  # the JVM is ending
            return {}

    def _input(self, item: Source | Table, fetched: Fetched, waiting: dict[str, int]) -> tuple[int | None, str | None]:
        if isinstance(item, Table):
            return _first(waiting, _channels(item)), STARTING if self._engine.newest.inbox < self._inherited else None
        if item.paused or self._engine.health.of(item) is not None:
            return None, STALLED
        reader = reader_name(item)
        if reader not in fetched or not self._engine.inputs.reads(item):
            return None, CONNECTING
        oldest: dict[str, int | None] = {f"{reader}/{topic}": at for topic, at in fetched[reader]["topics"].items()}
        if oldest.get(item.channel, 0) is None:  # no fetch was answered
            return None, CONNECTING
        return _first(oldest, _channels(item)), None


def _fits_tick(item: Source | Table, fetched: Fetched) -> bool:
    """Returns whether the next tick reads all records of an input that are there now."""
    return isinstance(item, Table) or bool(fetched.get(reader_name(item), {}).get("fits_tick"))


def _channels(item: Source | Table) -> tuple[str, ...]:
    """Returns the names under which the oldest records of an input are reported, the best first."""
    return (f"{TABLE}{item.id}",) if isinstance(item, Table) else freshness_channels(item)


def _first(oldest: Mapping[str, T], channels: tuple[str, ...]) -> T | None:
    return next((oldest[channel] for channel in channels if channel in oldest), None)
