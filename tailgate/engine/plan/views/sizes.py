"""Sizes of a view's inputs at the time of its creation; they determine the order of its joins.

    CREATE … ──► approximate rows of inputs ──► MaterializedView.sizes ──► Scan.rows ──► rewrites

The sizes are stored with the view, so its plan does not change when its inputs grow. This is
necessary because the state of an operator is found by the operator's `digest`. A view without sizes
keeps the join order of its text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from tailgate.engine.plan.rules import change
from tailgate.engine.plan.rules.change import stateful
from tailgate.engine.plan.views import nodes
from tailgate.engine.plan.views.digest import digest
from tailgate.engine.plan.views.streams import Streams
from tailgate.lake.catalog import Catalog, Change, MaterializedView

ROWS_MIN = 100  # rows
# a known size of the same relation is reused if the two differ by at most this factor
SIMILAR_FACTOR = 4


def with_sizes(item: MaterializedView, rows: Mapping[int, int], catalog: Catalog) -> MaterializedView:
    """Returns the view, not numbered yet, with the sizes to plan by.

    `rows`: the known sizes of its inputs. If the join order of the text shares more joins with
    existing views than the best order, the view gets no sizes.
    """
    others = [i for i in catalog.each(MaterializedView) if i.ready and i.id != item.id]
    sizes = {id: _similar_size(id, _rounded(n), others) for id, n in sorted(rows.items())}
    typed = replace(item, sizes=None)
    sized = replace(item, sizes=sizes)
    theirs = frozenset().union(*map(nodes.digests, others))
    return typed if theirs and joins_among(typed, catalog, theirs) > joins_among(sized, catalog, theirs) else sized


def joins_among(item: MaterializedView, catalog: Catalog, digests: Collection[str]) -> int:
    """Returns how many joins of a view have one of these digests. The catalog may have another version of the view."""
    stream = Streams(catalog.apply(Change(put=(item,))))(item)
    return sum(digest(o, item, catalog) in digests for o in stateful(stream) if isinstance(o, change.Join))


def _rounded(rows: int) -> int:
    """Rounds a number of rows to one digit; numbers below ROWS_MIN become ROWS_MIN, except 0."""
    return max(ROWS_MIN, int(float(f"{rows:.0e}"))) if rows else 0


def _similar_size(id: int, rows: int, views: list[MaterializedView]) -> int:
    """Returns the size that the newest view over this relation was planned with, if it is similar.

    Equal joins then get equal orders. Without such a view `rows` is returned.
    """
    for view in sorted(views, key=lambda i: -i.id):
        size = (view.sizes or {}).get(id, 0)
        if size and size <= rows * SIMILAR_FACTOR and rows <= size * SIMILAR_FACTOR:
            return size
    return rows
