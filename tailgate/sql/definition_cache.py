"""Results that follow from the definition of an item, kept from one version of the catalog to the next.

    key: the definition of the item itself     ──┐
    items that the definition reads, directly    ├─► result, for every catalog in which all of them are equal
    or through other items; functions; schemas ──┘

A statement changes few items, so most definitions keep their results. Without the cache, each
statement binds and compiles all views again: with 200 views, CREATE MATERIALIZED VIEW did so 409
times.

All functions count, because a new one may be a better match for a call. A name of a relation keeps
its meaning while the item and the schemas are equal: a schema has one item of a name, and stored
texts have a fixed search path.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from tailgate.lake.catalog import Catalog, Function, Item
from tailgate.lake.catalog.schemas import Schema

RESULTS_MAX = 2_000  # per cache; a plan has 20 to 100 nodes, so 20 KB on average
CHARACTERS_MAX = 4 << 20  # of the definitions of a cache's results: a plan takes about 100 bytes for each of them

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Result(Generic[T]):
    """A result, and everything that it was computed from. `characters`: of the definition."""

    value: T
    characters: int
    items: tuple[Item, ...]
    functions: tuple[Function, ...]
    schemas: Mapping[int, Schema]

    def follows_from(self, catalog: Catalog, functions: tuple[Function, ...]) -> bool:
        """Returns whether computing it in this catalog would give the same."""
        items = catalog.items
        return (
            self.schemas == catalog.schemas
            and self.functions == functions
            and all((current := items.get(item.id)) is item or current == item for item in self.items)
        )


class DefinitionCache(Generic[T]):
    """A cache of one kind of result. Safe for use by several threads."""

    def __init__(self, results_max: int = RESULTS_MAX) -> None:
        self._results_max = results_max
        self._results: OrderedDict[Hashable, _Result[T]] = OrderedDict()
        self._characters = 0
        self._lock = threading.Lock()
        self._functions: tuple[Catalog, tuple[Function, ...]] = (Catalog(), ())  # those of the catalog that was used last

    def get(self, key: Hashable, catalog: Catalog, compute: Callable[[], T], reads: Callable[[T], Iterable[int]], text: str) -> T:
        """Returns the result for a key, computed only if no result for it follows from the catalog.

        `reads`: the ids of the items that the definition of a result names. `text`: the definition.
        """
        functions = self._functions_of(catalog)
        with self._lock:
            cached = self._results.get(key)
            if cached is not None:
                self._results.move_to_end(key)
        if cached is not None and cached.follows_from(catalog, functions):
            return cached.value
        value = compute()
        items = _read_items(reads(value), catalog)
        if items is not None:
            with self._lock:
                self._keep(key, _Result(value, len(text), items, functions, catalog.schemas))
        return value

    def _keep(self, key: Hashable, result: _Result[T]) -> None:
        """Adds a result, and removes those above the limits that were used the longest time ago."""
        if (replaced := self._results.pop(key, None)) is not None:
            self._characters -= replaced.characters
        self._results[key] = result
        self._characters += result.characters
        while len(self._results) > self._results_max or (self._characters > CHARACTERS_MAX and len(self._results) > 1):
            _, oldest = self._results.popitem(last=False)
            self._characters -= oldest.characters

    def _functions_of(self, catalog: Catalog) -> tuple[Function, ...]:
        last_catalog, functions = self._functions
        if last_catalog is not catalog:
            functions = catalog.each(Function)
            self._functions = (catalog, functions)
        return functions


def _read_items(ids: Iterable[int], catalog: Catalog) -> tuple[Item, ...] | None:
    """Returns these items and all items below them.

    Returns None if one does not exist: in `Catalog.replaced`, definitions still name the items that
    others replace.
    """
    read_items: dict[int, Item] = {}
    waiting = list(ids)
    while waiting:
        id = waiting.pop()
        if id not in read_items:
            item = catalog.items.get(id)
            if item is None:
                return None
            read_items[id] = item
            waiting += item.depends
    return tuple(read_items.values())
