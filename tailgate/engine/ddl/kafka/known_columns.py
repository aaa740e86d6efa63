"""The number of a relation's columns that each of its readers knows, when columns are added to the relation."""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.catalog import Item, Reader


def with_recorded_width(other: Reader, relation: Item) -> Reader:
    """Records in an item that reads `relation` how many columns the relation has now."""
    return replace(other, known_columns={relation.id: len(relation.columns), **other.known_columns})
