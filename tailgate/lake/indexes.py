"""User-defined indexes: the columns by which rows of a relation are looked up.

An item of kind 'index' has no rows. A gateway builds the index from the relation's changes. The item
depends on its relation and is dropped with it. Uniqueness is not checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tailgate.lake.catalog import INDEX, Catalog, Item
from tailgate.lake.names import quoted

# types whose equal values have the same stored form, so that a look-up by stored form finds all equal values
KEY_TYPES = frozenset(("int2", "int4", "int8", "text", "varchar", "bool", "date", "timestamp", "timestamptz", "uuid"))


@dataclass(frozen=True, slots=True)
class Index:
    """The definition of an index.

    - `columns`: positions in the relation.
    - `descending`, `nulls_first`: for each column, as declared. They have no effect.
    - `include`: positions of the INCLUDE columns. They have no effect.
    """

    columns: tuple[int, ...]
    descending: tuple[bool, ...]
    nulls_first: tuple[bool, ...]
    include: tuple[int, ...] = ()
    unique: bool = False
    method: str = "btree"

    def options(self) -> dict[str, Any]:
        """Returns the item's options."""
        return {
            "columns": list(self.columns),
            "descending": list(self.descending),
            "nulls_first": list(self.nulls_first),
            "include": list(self.include),
            "unique": self.unique,
            "method": self.method,
        }


def index(item: Item) -> Index:
    """Returns the definition of an item of kind 'index'."""
    o = item.options
    return Index(
        tuple(o["columns"]), tuple(o["descending"]), tuple(o["nulls_first"]), tuple(o["include"]), o["unique"], o["method"]
    )  # fmt: skip


def indexes(catalog: Catalog, relation: int | None = None) -> tuple[Item, ...]:
    """Returns all indexes by id, or those of one relation."""
    return tuple(i for i in catalog.visible if i.kind == INDEX and relation in (None, i.depends[0]))


def definition(name: str, on: str, relation: Item, made: Index) -> str:
    """Returns the CREATE INDEX statement, as pg_get_indexdef() prints it. `on`: the name of the relation."""
    parts = []
    for column, descending, first in zip(made.columns, made.descending, made.nulls_first, strict=True):
        text = quoted(relation.columns[column].name) + " DESC" * descending
        parts.append(text if first == descending else f"{text} NULLS {'FIRST' if first else 'LAST'}")
    include = f" INCLUDE ({', '.join(quoted(relation.columns[i].name) for i in made.include)})" if made.include else ""
    return f"CREATE {'UNIQUE ' * made.unique}INDEX {quoted(name)} ON {on} USING {made.method} ({', '.join(parts)}){include}"
