"""The errors of views at the newest entry, kept in memory so that status need not read the lake."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from tailgate.lake.catalog import Catalog, Change, Item
from tailgate.lake.folder import Lake
from tailgate.lake.readers import reading
from tailgate.lake.types import WEIGHT

Error = tuple[str, str]  # sqlstate, message


class Failing:
    """The error counts of each errors relation."""

    def __init__(self, lake: Lake, catalog: Catalog) -> None:
        self._lock = threading.Lock()
        self._relations = {i.errors for i in catalog.items.values() if i.errors}
        self._sums: dict[int, Counter[Error]] = {}
        for item in catalog.items.values():
            if item.errors:
                self._add(item.errors, reading.snapshot(lake, item.errors))

    def watch(self, change: Change) -> None:
        """Starts to count the errors of new items, and forgets those of dropped ones.

        Those of an item to be filled start from zero.
        """
        for relation in change.drop:
            self._relations.discard(relation)
            self._sums.pop(relation, None)
        for item in change.put:
            if item.errors:
                self._relations.add(item.errors)
                if not item.ready:
                    self._sums.pop(item.errors, None)

    def add(self, changes: Iterable[tuple[int, bytes | memoryview | pa.Table | Path]]) -> None:
        """Adds the changes of a log entry."""
        for relation, data in changes:
            if relation in self._relations:
                self._add(relation, data if isinstance(data, pa.Table) else _read(data))

    def error(self, item: Item) -> Error | None:
        """Returns the first error of a view by SQLSTATE and message, or None."""
        with self._lock:
            return min((e for e, n in self._sums.get(item.errors, {}).items() if n > 0), default=None)

    def has(self, item: Item, error: Error) -> bool:
        """Returns whether a view has this error."""
        with self._lock:
            return self._sums.get(item.errors, Counter())[error] > 0

    def has_error(self, item: Item) -> bool:
        """Returns whether a view has an error. It takes no lock, so it never delays a tick."""
        return any(n > 0 for n in list(self._sums.get(item.errors, {}).values()))

    def _add(self, relation: int, changes: pa.Table) -> None:
        """Adds changes to the error counts of a relation."""
        with self._lock:
            sums = self._sums.setdefault(relation, Counter())
            states, messages = changes.column(0).to_pylist(), changes.column(1).to_pylist()
            for state, message, weight in zip(states, messages, changes.column(WEIGHT).to_pylist(), strict=True):
                sums[state, message] += weight
                if not sums[state, message]:
                    del sums[state, message]


def _read(changes: bytes | memoryview | Path) -> pa.Table:
    """Reads an Arrow stream from bytes or a file."""
    return pa.ipc.open_stream(pa.memory_map(str(changes)) if isinstance(changes, Path) else changes).read_all()
