"""Materialized views that have failed: they keep the rows of their last tick, and no tick changes them any more.

A failed view has the option `failed`. The entry that sets it also adds one row to the view's errors, so
readers of the view's changes end or wait there, as with any error of its rows. Its rows at the time of
the failure stay readable as long as the view exists, because they are its newest rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

import pyarrow as pa

from tailgate.lake.catalog import ERRORS, Catalog, Item
from tailgate.lake.types import arrow_schema

FAILED = "failed"  # option of an item
SQLSTATE = "55000"  # of the row in the view's errors


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason of a failure. `time`: the view's last tick. `message`: the text of the row in its errors."""

    time: int
    message: str


def failure(item: Item) -> Failure | None:
    """Returns why the view failed, or None if it has not."""
    found = item.options.get(FAILED)
    return None if found is None else Failure(**found)


def failed(item: Item, why: Failure) -> Item:
    """Returns the view, marked as failed."""
    return replace(item, options={**item.options, FAILED: asdict(why)})


def error_change(message: str, weight: int) -> pa.Table:
    """Returns a change of an errors relation: a row with SQLSTATE 55000 is added (1) or removed (-1)."""
    return pa.table([[SQLSTATE], [message], [weight]], schema=arrow_schema(ERRORS, weight=True))


def readable_at(items: Iterable[Item]) -> int | None:
    """Returns the newest time at which all of the items are readable if some of them have failed, otherwise None."""
    return min((why.time for item in items if (why := failure(item)) is not None), default=None)


def owner(catalog: Catalog, relation: int) -> Item | None:
    """Returns the failed view whose rows or errors the relation holds, or None."""
    for item in catalog.items.values():
        if relation in (item.id, item.errors) and failure(item) is not None:
            return item
    return None
