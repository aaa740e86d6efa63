"""Waits for the records that Kafka holds at the time of a call.

    relations ──► their sources ──► current ends of the topics ──► first entry with those offsets

A SELECT with `SET real_time_recency` waits for that entry or fails after a timeout. A statement that joins a stream
with tables as of arrival waits for the tables, so that old records of the stream find the rows that are in Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tailgate.engine.runtime.control.control import Client
from tailgate.engine.runtime.control.fill_waits import WAIT_S
from tailgate.engine.runtime.control.turns import check_canceled
from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.engine.runtime.kafka.readers import reader_name
from tailgate.lake.catalog import Catalog, Change, MaterializedView, Source
from tailgate.lake.errors import AdminShutdown, ObjectNotInPrerequisiteState, QueryCanceled
from tailgate.sql.definitions import bind_definition
from tailgate.sql.plan import ArrivalJoin, Scan
from tailgate.sql.plan.traversal import walk

if TYPE_CHECKING:
    from tailgate.engine.runtime.ticks.engine import Engine


class Ends:
    """The ends of the topics of these sources at the time of the call."""

    def __init__(self, engine: Engine, sources: Iterable[Source]) -> None:
        self._engine = engine
        self._bounds = {s.id: kafka.topic(*engine.place(s)).bounds for s in sources}

    def unread(self, offsets: Mapping[str, Any]) -> list[Source]:
        """Returns the sources whose records are not all before these offsets of an entry, without those that were dropped."""
        catalog = self._engine.catalog
        existing = (catalog.items.get(id) for id in self._bounds)
        return [s for s in existing if isinstance(s, Source) and not self._reached(offsets, s)]

    def _reached(self, offsets: Mapping[str, Any], source: Source) -> bool:
        at = offsets.get(reader_name(source), {}).get(source.topic)
        return at is None or all(at.get(p, 0) >= high for p, (_, high) in self._bounds[source.id].items())


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
        ends = Ends(engine, sources(relations, engine.catalog))
        n = 0
        while True:
            newest = engine.wait_newer(n, max(deadline - time.monotonic(), 0.0)) if n else engine.newest
            unread = ends.unread(newest.offsets)
            if not unread:
                return {"n": newest.n, "time": newest.time}
            if time.monotonic() >= deadline:
                names = ", ".join(sorted(s.name for s in unread))
                raise QueryCanceled("canceling statement due to real_time_recency_timeout", detail=f"Not all of {names} is in yet.")
            n = newest.n


class JoinedTables:
    """The tables that the views of one statement join as of arrival, as Kafka holds them when `are_read` is first called."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ends: Ends | None = None

    def are_read(self, change: Change, catalog: Catalog) -> bool:
        """Returns whether the newest entry has the records of the tables that the new views of a change join.

        Paused tables count as they are.
        """
        if self._ends is None:
            after = catalog.apply(change)
            views = (i for i in change.put if isinstance(i, MaterializedView) and not i.ready)
            joins = (node for view in views for node in walk(bind_definition(view, after).plan) if isinstance(node, ArrivalJoin))
            tables = {node.relation for join in joins for node in walk(join.right) if isinstance(node, Scan)}
            self._ends = Ends(self._engine, sources(tables, after))
        return not self._unread()

    def wait(self, client: Client) -> None:
        """Waits until the tables are read. Raises 57014 if the client cancels, 55000 if a topic cannot be read."""
        engine = self._engine
        while unread := self._unread():
            check_canceled(client)
            if engine.stopping:
                raise AdminShutdown("the engine is stopping")
            for source in unread:
                if (stall := engine.health.of(source)) is not None:
                    raise ObjectNotInPrerequisiteState(f'the records of "{source.name}" cannot be read', detail=stall.error)
            engine.wait_newer(engine.newest.n, WAIT_S)

    def _unread(self) -> list[Source]:
        assert self._ends is not None
        return [source for source in self._ends.unread(self._engine.newest.offsets) if not source.paused]


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
