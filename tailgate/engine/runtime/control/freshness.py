"""The answer of `GET /freshness`: the oldest records that no tick has read, and the oldest that each of the newest ticks has read.

A request waits while nothing has changed since the client's last answer. A record, a write, and the end of a tick are changes: the
doorbell starts a tick for each of them (`Ages`). An answer has positions in the inputs, which the client compares with those of the
entry that it shows. So it is right for any such entry: before, while and after a tick reads the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from py4j.protocol import Py4JError

from tailgate.engine.runtime.kafka.readers import freshness_channels, reader_name
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.lake.catalog import Source, Table
from tailgate.lake.control import FRESHNESS_HOLD_S
from tailgate.lake.writer.inbox import TABLE

STARTING, ENDING, STALLED = "the engine is starting", "the engine is ending", "the source cannot be read"
CONNECTING = "the source is being connected"

Unread = Sequence[Sequence[int]]  # the times of the oldest records, each with the position behind the records

T = TypeVar("T")


class Freshness:
    """Answers requests of gateways. Safe from many threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._inherited = engine.inbox.newest  # the last entry that an earlier engine may have written

    def __call__(self, after: int, version: int = 0) -> dict[str, Any]:
        """Returns {"version", "inputs", "unread", "failing", "ticks"}. Waits while this is the version, at most FRESHNESS_HOLD_S.

        - `inputs`: by id of a source or table, the time of the oldest record that no tick has read, and why it is not known.
        - `unread`: by the same ids, the times of the oldest records, each with a position: an entry that has read the input up to it does
          not lack the record. A position is an entry of the inbox, or the sum of the next offsets of the topic's partitions.
        - `failing`: the ids of views that have errors.
        - `ticks`: those later than entry `after`: n, when it began, was computed and was committed, and by id of a source or table the
          time and arrival of the oldest record.
        """
        engine = self._engine
        version = engine.ages.changed(version, FRESHNESS_HOLD_S)
        catalog = engine.catalog
        inputs = [item for item in catalog.items.values() if isinstance(item, Source | Table)]
        channels = {item.id: _channels(item) for item in inputs}
        read = {item.id for item in inputs if isinstance(item, Source) and engine.inputs.reads(item)}  # before the fetched records
        fetched = self._fetched()  # before the ticks, so that a record is rather in both than in none
        waiting = engine.ages.waiting(fetched["inbox"])
        states = {item.id: self._input(item, item.id in read, fetched["readers"], waiting) for item in inputs}
        if engine.stopping:  # no reader looks for records any more
            states = {item.id: ((), ENDING) for item in inputs}
        return {
            "version": version,
            "inputs": {id: (min((time for time, _ in unread), default=None), reason) for id, (unread, reason) in states.items()},
            "unread": {id: unread for id, (unread, _) in states.items() if unread},
            "failing": [item.id for item in catalog.items.values() if item.errors and engine.failing.has_error(item)],
            "ticks": [
                [t.n, t.began, t.computed, t.committed, {id: list(at) for id, of in channels.items() if (at := _first(t.oldest, of))}]
                for t in engine.ages.after(after)
            ],
        }

    def _fetched(self) -> dict[str, Any]:
        """Returns the answer of `TickLoop.unread`."""
        loop = self._engine.runner.loop
        if loop is not None:
            with suppress(Py4JError):  # the JVM is ending
                return loop.unread()
        return {"inbox": 0, "readers": {}}

    def _input(
        self, item: Source | Table, read: bool, readers: Mapping[str, Mapping[str, Unread | None]], waiting: Mapping[str, Unread]
    ) -> tuple[Unread, str | None]:
        if isinstance(item, Table):
            return _first(waiting, _channels(item)) or (), STARTING if self._engine.newest.inbox < self._inherited else None
        if item.paused or self._engine.health.of(item) is not None:
            return (), STALLED
        reader = reader_name(item)
        if reader not in readers or not read or not self._engine.inputs.reads(item):
            return (), CONNECTING  # also if a reader with or without the topic was added meanwhile
        unread = {f"{reader}/{topic}": records for topic, records in readers[reader].items()}
        if unread.get(item.channel, ()) is None:  # no fetch was answered, or none since a connection was lost
            return (), CONNECTING
        return _first(unread, _channels(item)) or (), None


def _channels(item: Source | Table) -> tuple[str, ...]:
    """Returns the names under which the oldest records of an input are reported, the best first."""
    return (f"{TABLE}{item.id}",) if isinstance(item, Table) else freshness_channels(item)


def _first(oldest: Mapping[str, T], channels: tuple[str, ...]) -> T | None:
    return next((oldest[channel] for channel in channels if channel in oldest), None)
