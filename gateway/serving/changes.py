"""Following: the rows at a time, then what each later time changed, for any number of followers.

    after ──► rows at `after` ──► entry n+1 ──► entry n+2 ──► … as far as the mirrors are ──► wait

A follower never sees a time that a SELECT would not. It ends with the error of a view that it reads (42P01 once that is
dropped), after the changes of all earlier times. It is pulled, so one that is slow costs nothing but its place in the log; if its next
entry was removed meanwhile it ends with an error and skips nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from gateway.serving.entries import Entries, Known
from gateway.serving.feeds import Feed
from gateway.serving.mirrors import State
from gateway.serving.snapshots import error_of
from lake.catalog import Item
from lake.errors import ObjectNotInPrerequisiteState, TailgateError, UndefinedTable
from lake.stored import begun
from lake.weights import total

Made = TypeVar("Made")
Aside = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Batch:
    """Net changes of one time, `__weight` last. None: nothing changed up to and including `time`."""

    time: int
    table: pa.Table | None
    known: Known | None = None  # the entry that brought them, where what is made of them for all is remembered
    feed: Hashable = None

    def shared(self, form: Hashable, make: Callable[[Batch, Callable[[int], None]], Made]) -> Made:
        """What is made of the batch in this form: the same object for all who follow the same thing. `make` is given what is to be
        told of memory that it takes later."""
        if self.known is None:
            return make(self, lambda size: None)
        known = self.known
        return known.shared((self.feed, form), lambda: make(self, known.grow))


class Failing:
    """Errors of the items that are followed, summed."""

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

    @property
    def error(self) -> TailgateError | None:
        """One that there is now."""
        for relation, sums in self._sums.items():
            for (state, message), weight in sums.items():
                if weight > 0:
                    return error_of(self._items[relation], state, message)
        return None

    def check(self) -> None:
        if (error := self.error) is not None:
            raise error


async def follow(
    feed: Feed,
    entries: Entries,
    after: int,
    snapshot: bool,
    state: Callable[[], State],
    moved: Callable[[int], Awaitable[None]],
    aside: Aside,
    patient: bool = False,
) -> AsyncIterator[Batch]:
    """`state()`: where the mirrors are; `moved(n)`: returns once they are later than entry n. `patient`: what changes while a view fails
    comes with the first time at which it does not, and the error is only raised if it is there at the newest. `aside(work, …)` runs what
    takes long on a thread."""
    while state().time < after:
        await moved(state().n)
    n = await aside(entries.at, after)
    failing = Failing(feed.items)
    await aside(_errors_at, feed, failing, after)
    withheld: list[pa.Table] = []  # of times at which a view failed
    if not patient:
        failing.check()
    if snapshot:
        rows = await aside(feed.rows, n, after)
        if failing.error is None:
            yield Batch(after, rows)
        else:
            withheld.append(rows)
    if not feed.items:
        return
    while True:
        progress: int | None = None
        newest = state().n
        while n < newest:
            known = entries.recent(n + 1) or await aside(entries.get, n + 1)
            n += 1
            progress = known.header.time
            _check_drop(feed, known)
            for relation in failing.relations & known.relations:
                changes = known.changes(relation)
                assert changes is not None
                failing.add(relation, changes)
            if not patient:
                failing.check()
            table = None
            if feed.touched(known):
                there, table = known.derived(feed.key)
                if not there:
                    table = feed.delta(known) if feed.inline(known) else await aside(feed.delta, known)
            if failing.error is not None:
                withheld += [] if table is None else [table]
            elif withheld:
                table = total([*withheld, *([] if table is None else [table])], withheld[0].schema)
                withheld.clear()
                yield Batch(progress, table)
                progress = None
            elif table is not None and table.num_rows:
                yield Batch(progress, table, known, feed.key)
                progress = None
        failing.check()
        if progress is not None:
            yield Batch(progress, None)
        await moved(n)


def _errors_at(feed: Feed, failing: Failing, time: int) -> None:
    for relation in failing.relations:
        failing.add(relation, feed.lake.snapshot(relation, at=time))


def _check_drop(feed: Feed, known: Known) -> None:
    change = known.header.catalog
    if change is not None:
        for item in feed.items:
            if item.id in change.drop:
                raise UndefinedTable(f'relation "{item.name}" does not exist', detail=f"It was dropped at {known.header.time}.")
            if item.id in begun(change):
                raise ObjectNotInPrerequisiteState(f'{item.kind} "{item.name}" is being filled again', hint="Follow it again when it is.")
