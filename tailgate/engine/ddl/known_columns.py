"""The number of a relation's columns that each of its readers knows, when columns are added to the relation."""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.catalog import WIDTHS, Item

READERS = ("view", "materialized view", "function", "sink")  # kinds of items whose texts contain columns of a source


def with_recorded_width(other: Item, relation: Item) -> Item:
    """Records in an item that reads `relation` how many columns the relation has now."""
    widths = other.options.get(WIDTHS, {})
    return replace(other, options={**other.options, WIDTHS: {str(relation.id): len(relation.columns), **widths}})
