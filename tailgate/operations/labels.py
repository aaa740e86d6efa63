"""The names of relations in labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tailgate.lake.catalog import Catalog, Item
from tailgate.operations.metrics import Labels


def label(catalog: Catalog, item: Item) -> str:
    """Returns the name of an item with its schema, without quotes."""
    return f"{catalog.schema_of(item).name}.{item.name}"


def by_name(catalog: Catalog, by_id: Mapping[Labels, float]) -> dict[Labels, float]:
    """Returns series whose only label is an id, by the item's name. Items that no longer exist are left out."""
    items = catalog.items
    return {(label(catalog, items[int(id)]),): value for (id,), value in by_id.items() if int(id) in items}


def each(catalog: Catalog, items: Iterable[Item], value: Callable[[Item], float | None]) -> dict[Labels, float]:
    """Returns a series for each item that has a value."""
    values = ((item, value(item)) for item in items)
    return {(label(catalog, item),): number for item, number in values if number is not None}
