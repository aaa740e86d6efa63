"""Materialized views that have failed: they keep the rows of their last tick, and no tick changes them any more.

The field `failed` of a view says why it failed. The entry that sets it also adds one row to the view's errors, so
readers of the view's changes end or wait there, as with any error of its rows. Its rows at the time of
the failure stay readable as long as the view exists, because they are its newest rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from tailgate.lake.catalog import ERRORS, Catalog, Item, MaterializedView
from tailgate.lake.catalog.formats import Failure
from tailgate.lake.types import arrow_schema

SQLSTATE = "55000"  # of the row in the view's errors


def failure(item: Item) -> Failure | None:
    """Returns why the view failed, or None if it has not."""
    return item.failed if isinstance(item, MaterializedView) else None


def failed(view: MaterializedView, why: Failure) -> MaterializedView:
    """Returns the view, marked as failed."""
    return replace(view, failed=why)


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
