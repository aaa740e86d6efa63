"""Follows a relation or query: the rows at a time, then the changes of each later time.

    after ──► rows at `after` ──► entry n+1 ──► entry n+2 ──► … up to the mirrors' entry ──► wait

A follower never sees a time that a SELECT does not see. If a view that it reads has an error, the
follower receives all changes of earlier times and then this error (42P01 if the view was dropped).
Followers pull, so a slow one has no buffer; it only has a position in the log. If the next entry
has been removed from the log, the follower ends with an error. It never skips an entry.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from tailgate.gateway.mirrors.entries import CachedEntry, Entries
from tailgate.gateway.mirrors.snapshots import error_of
from tailgate.gateway.resources.budgets import TASK_BUDGET, Charge
from tailgate.gateway.serving.feeds import Feed
from tailgate.gateway.serving.progress import Progress
from tailgate.lake.catalog import Item
from tailgate.lake.errors import ObjectNotInPrerequisiteState, TailgateError, UndefinedTable
from tailgate.lake.readers import reading
from tailgate.lake.tables.stored_relations import begun
from tailgate.lake.tables.weights import total

Made = TypeVar("Made")
RunInThread = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Batch:
    """Net changes of one time, with `__weight` as last column.

    A `table` of None says that nothing has changed up to and including `time`. `n`: the number of the newest entry that it includes;
    a view of samples has none.
    """

    time: int
    table: pa.Table | None
    entry: CachedEntry | None = None  # the log entry, which caches what all its followers share
    feed: Hashable = None
    n: int = 0

    @property
    def released(self) -> Mapping[str, int]:
        """Returns which windows left because of their retention, as of `Header`."""
        return {} if self.entry is None else self.entry.header.released

    def shared(self, form: Hashable, make: Callable[[Batch, Callable[[int], None]], Made]) -> Made:
        """Returns `make(self, grow)`, cached per form for all followers of the same feed.

        `make` calls `grow(bytes)` for memory that its result allocates later.
        """
        if self.entry is None:
            return make(self, lambda size: None)
        entry = self.entry
        shared: Made = entry.shared((self.feed, form), lambda: make(self, entry.size.grow))
        return shared


class Failing:
    """The current errors of the followed items, as sums of weights."""

    def __init__(self, items: tuple[Item, ...]) -> None:
        self._items = {item.errors: item for item in items if item.errors}
        self._sums: dict[int, Counter[tuple[str, str]]] = {relation: Counter() for relation in self._items}

    @property
    def relations(self) -> frozenset[int]:
        return frozenset(self._items)

    def add(self, relation: int, changes: pa.Table) -> None:
        sums = self._sums[relation]
        states, messages, weights = (column.to_pylist() for column in changes.columns)
        for state, message, weight in zip(states, messages, weights, strict=True):
            sums[state, message] += weight
            if sums[state, message] == 0:
                del sums[state, message]

    def read(self, entry: CachedEntry) -> None:
        """Adds the changes of errors in a log entry."""
        for relation in self.relations & entry.relations:
            changes = entry.changes(relation)
            assert changes is not None
            self.add(relation, changes)

    @property
    def error(self) -> TailgateError | None:
        """Returns a current error, or None."""
        for relation, sums in self._sums.items():
            for (state, message), weight in sums.items():
                if weight > 0:
                    return error_of(self._items[relation], state, message)
        return None

    def check(self) -> None:
        if (error := self.error) is not None:
            raise error


class Withheld:
    """The changes of times at which a view had errors, charged to the session that follows it."""

    def __init__(self) -> None:
        self._parts: list[pa.Table] = []
        self._held = Charge(TASK_BUDGET.get())

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, changes: pa.Table | None) -> None:
        """Adds the changes of a time, None for no changes. Raises 53200 if the session's budget does not allow it."""
        if changes is not None:
            self._held.add(changes.nbytes)
            self._parts.append(changes)

    def taken(self) -> pa.Table:
        """Removes the changes and returns their sum."""
        changes = total(self._parts, self._parts[0].schema)
        self.close()
        return changes

    def close(self) -> None:
        """Removes the changes."""
        self._parts.clear()
        self._held.set(0)


async def follow(
    feed: Feed,
    entries: Entries,
    after: int,
    snapshot: bool,
    progress: Progress,
    run_in_thread: RunInThread,
    patient: bool = False,
) -> AsyncIterator[Batch]:
    """Yields the batches of a feed; see the module.

    `run_in_thread(work, …)` runs long work on a thread. With `patient`, changes made while a view has
    errors are withheld until it has none; an error is raised only if it remains at the newest time.
    """
    while progress.state.time < after:
        await progress.wait_entry(progress.state.n)
    n = await run_in_thread(entries.at, after)
    failing = Failing(feed.items)
    await run_in_thread(_errors_at, feed, failing, after)
    with contextlib.closing(Withheld()) as withheld:
        if not patient:
            failing.check()
        if snapshot:
            rows = await run_in_thread(feed.rows, n, after)
            if failing.error is None:
                yield Batch(after, rows, n=n)
            else:
                withheld.add(rows)
        if not feed.items:
            return
        while True:
            read: int | None = None  # the time that was read and not yet yielded
            newest = progress.state.n
            while n < newest:
                entry = entries.recent(n + 1) or await run_in_thread(entries.get, n + 1)
                n += 1
                read = entry.header.time
                _check_drop(feed, entry)
                failing.read(entry)
                if not patient:
                    failing.check()
                table = await _delta(feed, entry, run_in_thread)
                if failing.error is not None:
                    withheld.add(table)
                elif withheld:
                    withheld.add(table)
                    yield Batch(read, withheld.taken(), n=n)
                    read = None
                elif table is not None and table.num_rows:
                    yield Batch(read, table, entry, feed.key, n)
                    read = None
            failing.check()
            if read is not None:
                yield Batch(read, None, n=n)
            await progress.wait_entry(n)


async def _delta(feed: Feed, entry: CachedEntry, run_in_thread: RunInThread) -> pa.Table | None:
    """Returns the net changes of an entry, computed once for all followers of the feed, or None if there are none."""
    if not feed.touched(entry):
        return None
    derived, table = entry.derived(feed.key)
    if derived:
        return table
    return feed.delta(entry) if feed.inline(entry) else await run_in_thread(feed.delta, entry)


def _errors_at(feed: Feed, failing: Failing, time: int) -> None:
    for relation in failing.relations:
        failing.add(relation, reading.snapshot(feed.lake, relation, at=time))


def _check_drop(feed: Feed, entry: CachedEntry) -> None:
    change = entry.header.catalog
    if change is not None:
        for item in feed.items:
            if item.id in change.drop:
                raise UndefinedTable(f'relation "{item.name}" does not exist', detail=f"It was dropped at {entry.header.time}.")
            if item.id in begun(change):
                raise ObjectNotInPrerequisiteState(f'{item.kind} "{item.name}" is being filled again', hint="Follow it again when it is.")
