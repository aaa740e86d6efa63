"""The relations whose rows are kept, and what a table of each looks like to Delta.

A relation with a key has one row a key, or one row at all if the key has no columns. One without may hold duplicates: a hidden
last column `__count` says how many.
Columns are in their stored form (`lake.types`), with no feature that only one of Delta's writers knows, and all nullable: a
column that is not, beside a timestamp without time zone, makes delta-rs write a protocol that Spark refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from lake.catalog import ERRORS, Catalog, Change
from lake.types import Field, arrow_schema

if TYPE_CHECKING:
    from lake.folder import Lake

COUNT = "__count"


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored relation: an item's rows, or the weighted errors of its rows. `ready`: filled, so that its table follows."""

    id: int
    name: str
    columns: tuple[Field, ...]
    key: tuple[int, ...] | None
    ready: bool

    @property
    def changes(self) -> pa.Schema:
        """Of its sections in the log."""
        return arrow_schema(self.columns, weight=True)

    @property
    def table(self) -> pa.Schema:
        """Of its Delta table."""
        schema = arrow_schema(self.columns)
        return schema if self.key is not None else schema.append(pa.field(COUNT, pa.int64()))

    @property
    def key_names(self) -> list[str]:
        """What tells rows of the table apart: the key, or all columns but the count."""
        return [self.columns[i].name for i in self.key] if self.key is not None else [c.name for c in self.columns]


def relations(catalog: Catalog) -> dict[int, Stored]:
    """All stored relations by id."""
    out: dict[int, Stored] = {}
    for item in catalog.items.values():
        if item.stored:
            out[item.id] = Stored(item.id, str(catalog.name_of(item)), item.columns, item.key, item.ready)
        if item.errors:
            out[item.errors] = Stored(item.errors, f"{catalog.name_of(item)} errors", ERRORS, None, item.ready)
    return out


def begun(change: Change | None) -> frozenset[int]:
    """The relations that an entry makes empty: of items put as not ready, new or to be filled anew; what they held is forgotten."""
    items = () if change is None else change.put
    return frozenset(id for item in items if not item.ready for id in (item.id, item.errors) if id)


def table_path(lake: Lake, relation: int | str) -> Path:
    return lake.path / "tables" / str(relation)
