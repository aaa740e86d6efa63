"""Stored relations, and the form of their Delta tables.

A relation with a key has one row per key, or at most one row if the key has no columns. A relation
without a key may hold duplicates; a hidden last column `__count` has the number of copies.

Columns are in their stored form (`lake.types`), general numerics as text (`delta_forms`), and use no
feature that only one of Delta's writers supports. All are nullable: for a non-nullable column next to
a timestamp without time zone, delta-rs writes a protocol that Spark refuses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, count

import pyarrow as pa

from tailgate.lake.catalog import ERRORS, Catalog, Change, Item, Table
from tailgate.lake.tables.delta_forms import delta_schema
from tailgate.lake.types import Field, arrow_schema

FOLDER = "tables"
COUNT = "__count"


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored relation: an item's rows, or the weighted errors of its rows. `ready`: the backfill has finished, so its table follows."""

    id: int
    name: str
    columns: tuple[Field, ...]
    key: tuple[int, ...] | None
    ready: bool

    @property
    def changes(self) -> pa.Schema:
        """Returns the schema of its sections in the log."""
        return arrow_schema(self.columns, weight=True)

    @property
    def table(self) -> pa.Schema:
        """Returns the schema of its Delta table."""
        schema = delta_schema(arrow_schema(self.columns))
        return schema if self.key is not None else schema.append(pa.field(COUNT, pa.int64()))

    @property
    def key_names(self) -> list[str]:
        """Returns the columns that identify a row of the table: the key, or all columns except the count."""
        return [self.columns[i].name for i in self.key] if self.key is not None else [c.name for c in self.columns]


def relations(catalog: Catalog) -> dict[int, Stored]:
    """Returns all stored relations by id."""
    out: dict[int, Stored] = {}
    for item in catalog.items.values():
        if item.stored:
            out[item.id] = Stored(item.id, str(catalog.name_of(item)), stored_columns(item), item.key, item.ready)
        if item.errors:
            out[item.errors] = Stored(item.errors, f"{catalog.name_of(item)} errors", ERRORS, None, item.ready)
    return out


def stored_columns(item: Item) -> tuple[Field, ...]:
    """Returns the columns of an item with their names in its Delta table, which do not change.

    Delta ignores the case of names: of k and K, the second is stored as K_2. New columns are the last ones, so others keep their names.
    A relation without a key has the column COUNT, too.
    """
    names = item.stored_names if isinstance(item, Table) else {}
    first = [names.get(i, column.name) for i, column in enumerate(item.columns)]
    used: set[str] = {COUNT} if item.key is None else set()
    if not names and len(used.union(name.lower() for name in first)) == len(used) + len(first):
        return item.columns
    columns = []
    for column, name in zip(item.columns, first, strict=True):
        free = next(n for n in chain((name,), (f"{name}_{number}" for number in count(2))) if n.lower() not in used)
        used.add(free.lower())
        columns.append(replace(column, name=free))
    return tuple(columns)


def begun(change: Change | None) -> frozenset[int]:
    """Returns the ids of the relations that a change makes empty: those of items put as not ready, new or to be backfilled again."""
    items = () if change is None else change.put
    return frozenset(id for item in items if not item.ready for id in (item.id, item.errors) if id)


def table_name(relation: int | str) -> str:
    """Returns the name of a relation's Delta table, a folder of the store."""
    return f"{FOLDER}/{relation}"
