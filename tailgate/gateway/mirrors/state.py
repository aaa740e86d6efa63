"""The position of the mirrors in the log."""

from __future__ import annotations

from dataclasses import dataclass

from tailgate.lake.catalog import Catalog

CATALOGS_KEPT = 20  # older catalogs, for blocks that began at them


@dataclass(frozen=True, slots=True)
class State:
    """The position of the mirrors in the log.

    `failing` has the items whose errors sum above zero, `catalog_n` is the entry that last changed
    the catalog, and `inbox` is the last inbox entry that the mirrors contain.
    """

    n: int
    time: int
    catalog: Catalog
    catalog_n: int
    failing: frozenset[int] = frozenset()
    inbox: int = 0


class Catalogs:
    """The newest catalogs of the mirrors, by the entry that has changed the catalog. One thread at a time calls `keep`."""

    def __init__(self, state: State) -> None:
        self._newest = [(state.catalog_n, state.catalog)]

    def at(self, n: int) -> Catalog:
        """Returns the catalog at entry `n`, or the newest one if that is older than those that are kept."""
        return next((catalog for first, catalog in reversed(self._newest) if first <= n), self._newest[-1][1])

    def keep(self, state: State) -> None:
        """Adds the catalog of a state, unless it is the newest one."""
        if state.catalog_n != self._newest[-1][0]:
            self._newest = [*self._newest[-CATALOGS_KEPT:], (state.catalog_n, state.catalog)]
