"""OWNER TO: the objects that change their owner with an item.

Source: PostgreSQL 15, src/backend/commands/tablecmds.c (ATExecChangeOwner).
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.catalog import Catalog, Companion, Index, Item, Sequence


def with_owner(item: Item, owner: int, catalog: Catalog) -> tuple[Item, ...]:
    """Returns an item, and its indexes, sequences and companions, with another owner."""
    belonging = (other for other in catalog.dependents(item.id) if isinstance(other, Companion | Index | Sequence))
    return tuple(replace(each, owner=owner) for each in (item, *belonging))
