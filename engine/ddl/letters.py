"""Relations of dead letters of lakes from before they had all their columns."""

from __future__ import annotations

from dataclasses import replace

from engine.ddl.refresh import READERS, knowing
from lake.catalog import DEAD_LETTERS, Catalog, Change, Item


def widened(catalog: Catalog) -> Change:
    """Gives relations of dead letters the columns that came later; what reads them keeps those that it knows."""
    put: list[Item] = []
    for item in catalog.items.values():
        if item.kind == "dead letters" and len(item.columns) < len(DEAD_LETTERS):
            put.append(replace(item, columns=DEAD_LETTERS))
            put += [knowing(r, item) for r in catalog.dependents(item.id) if r.kind in READERS]
    return Change(put=tuple(put))
