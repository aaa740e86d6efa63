"""Waits for the records that Kafka holds at the time of a call (`SET real_time_recency`).

    relations ──► their sources ──► current ends of the topics ──► first entry with those offsets

A SELECT waits for that entry or fails after a timeout.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.engine.runtime.kafka.readers import reader_name
from tailgate.lake.catalog import Catalog, Source
from tailgate.lake.errors import QueryCanceled

if TYPE_CHECKING:
    from tailgate.engine.runtime.ticks.engine import Engine


class Recency:
    """Waits for the control interface. Thread safe."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __call__(self, relations: Iterable[int], timeout: float) -> dict[str, Any]:
        """Returns {"n", "time"} of an entry with all records that the topics hold at the call.

        The topics are those of the sources below these relations. Raises 57014 after `timeout`
        seconds.
        """
        engine = self._engine
        deadline = time.monotonic() + timeout
        bounds_by_source = {s.id: kafka.topic(*engine.place(s)).bounds for s in sources(relations, engine.catalog)}
        n = 0
        while True:
            newest = engine.wait_newer(n, max(deadline - time.monotonic(), 0.0)) if n else engine.newest
            missing = [engine.catalog[id].name for id, bounds in bounds_by_source.items() if not self._reached(newest.offsets, id, bounds)]
            if not missing:
                return {"n": newest.n, "time": newest.time}
            if time.monotonic() >= deadline:
                raise QueryCanceled(
                    "canceling statement due to real_time_recency_timeout", detail=f"Not all of {', '.join(sorted(missing))} is in yet."
                )
            n = newest.n

    def _reached(self, offsets: Mapping[str, Any], id: int, bounds: dict[str, tuple[int, int]]) -> bool:
        """Returns whether the offsets of an entry have reached these bounds of a source's topic."""
        source = self._engine.catalog.items.get(id)
        if not isinstance(source, Source):
            return True  # dropped meanwhile: the SELECT reports it
        at = offsets.get(reader_name(source), {}).get(source.topic)
        return at is None or all(at.get(p, 0) >= high for p, (_, high) in bounds.items())


def sources(relations: Iterable[int], catalog: Catalog) -> list[Source]:
    """Returns the Kafka sources among these relations and the relations that they depend on."""
    result: dict[int, Source] = {}
    queue = [catalog[id] for id in relations if id in catalog.items]
    visited = {item.id for item in queue}
    while queue:
        item = queue.pop()
        if isinstance(item, Source) and item.topic:
            result[item.id] = item
        for id in item.depends:
            if id not in visited and id in catalog.items:
                visited.add(id)
                queue.append(catalog[id])
    return list(result.values())
