"""The number of a relation's columns that each of its readers knows, when columns are added to the relation."""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.catalog import Catalog, Item, Reader
from tailgate.lake.errors import ObjectNotInPrerequisiteState


def with_recorded_width(other: Reader, relation: Item) -> Reader:
    """Records in an item that reads `relation` how many columns the relation has now."""
    return replace(other, known_columns={relation.id: len(relation.columns), **other.known_columns})


def readers_with_width(relation: Item, catalog: Catalog) -> tuple[Reader, ...]:
    """Returns the items that read a relation, with the number of its columns recorded."""
    return tuple(with_recorded_width(other, relation) for other in catalog.dependents(relation.id) if isinstance(other, Reader))


def check_no_backfill(item: Item, catalog: Catalog) -> None:
    """Raises 55000 if an item is being backfilled from the relation: a backfill uses the old columns."""
    coming = catalog.replacements()
    for other in catalog.items.values():
        if (not other.ready or other.id in coming) and item.id in catalog.below(other):
            raise ObjectNotInPrerequisiteState(f'{other.kind} "{other.name}" is still being filled', hint="Try again when it is ready.")
