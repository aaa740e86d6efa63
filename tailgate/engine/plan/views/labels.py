"""The materialized views whose rows contain labels of an enum type as text."""

from __future__ import annotations

from tailgate.engine.plan.views.digest import expressions
from tailgate.engine.plan.views.replacements import readers
from tailgate.engine.plan.views.streams import Streams
from tailgate.lake.catalog import Catalog, Item, MaterializedView
from tailgate.lake.readers.failed import failure


def printing(before: Catalog, after: Catalog) -> tuple[MaterializedView, ...]:
    """Returns the maintained views that compute other values after a label was renamed, and those that read them."""
    old, new = Streams(before), Streams(after)
    views = {item.id: item for item in after.visible if _is_maintained(item)}
    changed = [id for id, item in views.items() if expressions(old(before[id]), item, before) != expressions(new(item), item, after)]
    above = [item.id for item in readers(changed, after)]
    return tuple(after.expect(MaterializedView, id) for id in dict.fromkeys((*changed, *above)) if id in views)


def _is_maintained(item: Item) -> bool:
    return isinstance(item, MaterializedView) and item.ready and failure(item) is None and not item.paused
