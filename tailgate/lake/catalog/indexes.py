"""User-defined indexes: the columns by which rows of a relation are looked up."""

from __future__ import annotations

from tailgate.lake.catalog.catalog import Catalog
from tailgate.lake.catalog.items import Index, Item
from tailgate.lake.catalog.names import quoted

# types whose equal values have the same stored form, so that a look-up by stored form finds all equal values
KEY_TYPES = frozenset(
    (
        "int2",
        "int4",
        "int8",
        "text",
        "varchar",
        "bool",
        "date",
        "timestamp",
        "timestamptz",
        "uuid",
        "enum",
        "inet",
        "cidr",
        "macaddr",
        "macaddr8",
        "bit",
        "varbit",
    )
)


def indexes(catalog: Catalog, relation: int | None = None) -> tuple[Index, ...]:
    """Returns all indexes by id, or those of one relation."""
    return tuple(i for i in catalog.visible if isinstance(i, Index) and relation in (None, i.depends[0]))


def definition(index: Index, on: str, relation: Item) -> str:
    """Returns the CREATE INDEX statement, as pg_get_indexdef() prints it. `on`: the name of the relation."""
    parts = []
    for column, descending, first in zip(index.positions, index.descending, index.nulls_first, strict=True):
        text = quoted(relation.columns[column].name) + " DESC" * descending
        parts.append(text if first == descending else f"{text} NULLS {'FIRST' if first else 'LAST'}")
    include = f" INCLUDE ({', '.join(quoted(relation.columns[i].name) for i in index.include)})" if index.include else ""
    nulls = "" if index.nulls_distinct else " NULLS NOT DISTINCT"
    return f"CREATE {'UNIQUE ' * index.unique}INDEX {quoted(index.name)} ON {on} USING {index.method} ({', '.join(parts)}){include}{nulls}"
