"""Retries and deletes dead letters. The record of a letter enters each view at most once.

    RETRY     letters ──► inbox, channel $retry/<source node> ──► decoder ──► rows, or a letter again
    DELETE    letters ──► inbox, channel $forget/<node that keeps them> ──► the letter is deleted

If RETRY succeeds, the letter is deleted.

A record is a letter either for all views, present and future, or only for the views that could not
decode it during their fill (a registry may lose a schema). The rules:

- A fill of an append-only source excludes every record that was a letter at some time since the
  view was created (`Passed`). RETRY sends it to the new view as to all others.
- Fills of one source run one after the other; so do RETRY and DELETE.
- RETRY sends a record to the views that lack it. These are all views, except those that decoded it
  before it became a letter in another view's fill (`has`).

A tick either takes in a letter and deletes it, or does neither. After a crash the inbox is read
first, and then letters are looked up again.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tailgate.engine.plan.circuit.graph import Graph
from tailgate.engine.plan.views import nodes
from tailgate.lake.catalog import Catalog, DeadLetters, Item, MaterializedView, Source
from tailgate.lake.catalog.formats import Backfilled
from tailgate.lake.catalog.items import ItemType
from tailgate.lake.errors import ObjectNotInPrerequisiteState
from tailgate.lake.readers import reading
from tailgate.lake.tables.weights import positive
from tailgate.lake.writer.inbox import Record

if TYPE_CHECKING:
    from tailgate.engine.runtime.ticks.engine import Engine

PIECE = 5_000  # letters per tick
RETRY, FORGET = "$retry/", "$forget/"
KEY = ["topic", "partition", "offset"]
# headers of a retried letter (tailgate/engine/java, Circuit)
ATTEMPTS, SINCE, BACKFILL, EXCEPT = "attempts", "since", "backfill", "except"
# option of a view: {source id: [ends of its fill from that source, time of completion]}

Offsets = dict[int, list[int]]  # by partition, ascending


@dataclass(slots=True)
class Backfill:
    """The part of a source that a view gets by its fill: the records before `ends`, by partition.

    `done`: the time in ms when all were read, None before that.
    """

    ends: dict[str, int]
    done: int | None = None


def of_source(source: Source, catalog: Catalog) -> DeadLetters:
    """Returns the relation of a source's dead letters."""
    return next(i for i in catalog.dependents(source.id) if isinstance(i, DeadLetters))


class Letters:
    """The dead letters of all sources. Thread safe."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._using: dict[tuple[str, int], threading.Lock] = {}
        # of views being filled, by view and source; replaced, never modified
        self._backfills: Mapping[int, Mapping[int, Backfill]] = {}

    def begin(self, view: Item, backfills: Mapping[int, Backfill]) -> None:
        """Records which part of each source a view is filled with. A restarted fill replaces it."""
        items = self._engine.catalog.items
        noted = {id: of for id, of in self._backfills.items() if id in items and not items[id].ready}
        self._backfills = {**noted, view.id: backfills}

    @contextmanager
    def filling(self, source: Source, backfill: Backfill) -> Iterator[None]:
        """Lets one fill at a time read the source.

        Marks the backfill as done when the block ends.
        """
        with self._turn("fill", source):
            yield
            backfill.done = self._engine.newest.time

    def noted(self, view: ItemType) -> ItemType:
        """Returns the view, now filled, with a record of what its fills covered."""
        backfilled = {source: Backfilled(b.ends, b.done) for source, b in self._backfills.get(view.id, {}).items()}
        return replace(view, backfilled=backfilled) if backfilled and isinstance(view, MaterializedView) else view

    def _turn(self, what: str, source: Source) -> threading.Lock:
        """Returns the lock for this kind of work on a source."""
        with self._lock:
            return self._using.setdefault((what, source.id), threading.Lock())

    def retry(self, source: Source) -> int:
        """Retries each letter of a source once. Returns their number."""
        with self._turn("letters", source):
            rows = self._rows(source)
            node = nodes.source_node(source)
            if rows.num_rows and all(s.node != node for s in self._engine.graph.sources):
                raise ObjectNotInPrerequisiteState(f'no materialized view reads source "{source.name}"', hint="Create a view of it first.")
            for piece in _pieces(rows):
                having = _Having(self._engine, source, self._backfills)
                self._enter(source, [_again(f"{RETRY}{node}", row, having(row)) for row in piece])
        return int(rows.num_rows)

    def delete(self, source: Source, chosen: Callable[[pa.Table], pa.Table]) -> int:
        """Deletes the letters that `chosen` selects from the table. Returns their number."""
        with self._turn("letters", source):
            rows = chosen(self._rows(source)).select(KEY)
            channel = f"{FORGET}{nodes.upsert_node(of_source(source, self._engine.catalog))}"
            for piece in _pieces(rows):
                self._enter(source, [Record(channel, row["topic"].encode(), None, row["partition"], row["offset"]) for row in piece])
        return int(rows.num_rows)

    def _rows(self, source: Source) -> pa.Table:
        """Returns the letters in record order, after all earlier inbox entries are read."""
        engine = self._engine
        engine.wait_inbox(engine.inbox.newest, lambda: source.id in engine.catalog.items)
        letters = of_source(source, engine.catalog)
        return reading.snapshot(engine.lake, letters.id, engine.newest.time).sort_by([("partition", "ascending"), ("offset", "ascending")])

    def _enter(self, source: Source, records: list[Record]) -> None:
        """Writes records to the inbox and waits for their tick. Raises `Replaced` if the next engine may not read them."""
        engine = self._engine
        number = engine.enter(records)
        engine.wait_inbox(number, lambda: source.id in engine.catalog.items)
        engine.confirm(number)


class _Having:
    """Determines which operators and relations already have the rows of a letter."""

    def __init__(self, engine: Engine, source: Source, filling: Mapping[int, Mapping[int, Backfill]]) -> None:
        self._catalog, self._graph, self._source = engine.catalog, engine.graph, source
        # None: the view dates from a version that did not record backfills
        self._backfills: dict[int, Backfill | None] = {}
        for view in self._catalog.each(MaterializedView):
            if view.ready:
                noted = view.backfilled.get(source.id)
                self._backfills[view.id] = None if noted is None else Backfill(dict(noted.ends), noted.done)
            elif source.id in filling.get(view.id, {}):
                self._backfills[view.id] = filling[view.id][source.id]
        self._known: dict[frozenset[int], str] = {}

    def __call__(self, row: Mapping[str, Any]) -> str:
        """Returns the ids of those that have the rows of this letter, separated by commas."""
        if not row["backfill"]:  # no view could decode it
            return ""
        since = _milliseconds(row["since"])
        assert since is not None
        views = frozenset(id for id, backfill in self._backfills.items() if has(backfill, row["partition"], row["offset"], since))
        if views not in self._known:
            self._known[views] = ",".join(map(str, sorted(inputs(self._catalog, self._graph, self._source, views))))
        return self._known[views]


def has(backfill: Backfill | None, partition: int, offset: int, since: int) -> bool:
    """Returns whether a view has the rows of a record that became a letter in another view's fill.

    >>> [has(Backfill({"0": 10}, done), 0, offset, since=100) for done, offset in ((99, 9), (100, 9), (None, 9), (None, 10))]
    [True, False, False, True]
    """
    if backfill is None or offset >= backfill.ends.get(str(partition), 0):
        # It came as a live change and was decoded. Only a view without history gets such records
        # by its fill.
        return True
    return backfill.done is not None and backfill.done < since


def inputs(catalog: Catalog, graph: Graph, source: Source, views: Set[int]) -> set[int]:
    """Returns the operators and relations that get rows of the source for these views only."""
    node = nodes.source_node(source)
    users: dict[int, set[int]] = {}  # the views that use each operator
    for view in catalog.each(MaterializedView):
        for _, operator in view.nodes:
            users.setdefault(operator, set()).add(view.id)
    below = {e.to: users.get(e.to, set()) for e in graph.edges if e.origin == node}
    below |= {o.relation: {o.relation} for o in graph.outputs if o.origin == node}
    return {to for to, of in below.items() if of and of <= views}


class Passed:
    """The records of a source that were letters at some time since a log entry.

    Fills exclude them.
    """

    def __init__(self, engine: Engine, source: Source, n: int, time: int) -> None:
        self._engine, self._letters, self._n = engine, of_source(source, engine.catalog), n
        self._offsets: dict[int, set[int]] = {}
        self._add(reading.snapshot(engine.lake, self._letters.id, time))

    def offsets(self) -> Offsets:
        """Returns their offsets as of the newest entry."""
        newest = self._engine.newest.n
        for entry in self._engine.lake.log.after(self._n, newest):
            if (changes := entry.changes(self._letters.id)) is not None:
                self._add(positive(changes))
        self._n = newest
        return {partition: sorted(offsets) for partition, offsets in self._offsets.items()}

    def _add(self, rows: pa.Table) -> None:
        for partition, offset in zip(rows.column(1).to_pylist(), rows.column(2).to_pylist(), strict=True):
            self._offsets.setdefault(partition, set()).add(offset)


def between(offsets: Offsets, partition: int, begin: int, end: int) -> list[int]:
    """Returns the offsets of a partition in [begin, end)."""
    of = offsets.get(partition, [])
    return of[bisect_left(of, begin) : bisect_left(of, end)]


def _pieces(rows: pa.Table) -> Iterator[list[dict[str, Any]]]:
    """Yields the rows in pieces of PIECE letters."""
    return (rows.slice(at, PIECE).to_pylist() for at in range(0, rows.num_rows, PIECE))


def _milliseconds(time: Any) -> int | None:
    """Returns a timestamp in ms since the epoch."""
    return None if time is None else round(time.timestamp() * 1000)


def _again(channel: str, row: Mapping[str, Any], have: str) -> Record:
    """Returns the inbox record that retries a letter. `have`: ids that must not get its rows."""
    backfill = "true" if row["backfill"] else None
    headers = {ATTEMPTS: row["attempts"] + 1, SINCE: _milliseconds(row["since"]), BACKFILL: backfill, EXCEPT: have or None}
    encoded = tuple((name, str(value).encode()) for name, value in headers.items() if value is not None)
    return Record(channel, row["key"], row["value"], row["partition"], row["offset"], _milliseconds(row["time"]) or 0, encoded)
