"""Sizes of a view's inputs at the time of its creation; they determine the order of its joins.

    CREATE … ──► approximate rows of inputs ──► options["sizes"] {id: rows} ──► Scan.rows ──► rewrites

The sizes are stored with the view, so its plan does not change when its inputs grow. This is
necessary because the state of an operator is found by the operator's `digest`. A view without sizes
keeps the join order of its text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tailgate.engine.plan import change, nodes
from tailgate.engine.plan.change import Stream, stateful
from tailgate.engine.plan.digest import digest
from tailgate.lake.catalog import Catalog, Item
from tailgate.sql.plan import Relation, Scan
from tailgate.sql.plan.traversal import bottom_up

SIZES = "sizes"  # option of a materialized view
ROWS_MIN = 100  # rows
# a known size of the same relation is reused if the two differ by at most this factor
SIMILAR_FACTOR = 4


def with_scan_sizes(plan: Relation, item: Item) -> Relation:
    """Returns the plan of a view with the view's stored sizes in its scans."""
    sizes: Mapping[str, int] | None = item.options.get(SIZES)
    if sizes is None:
        return plan
    return bottom_up(plan, lambda node: replace(node, rows=sizes.get(str(node.relation), 0)) if isinstance(node, Scan) else node)


def with_sizes(item: Item, rows: Mapping[int, int], catalog: Catalog, stream: Callable[[Item], Stream]) -> Item:
    """Returns the view, not numbered yet, with the sizes to plan by.

    `rows`: the known sizes of its inputs. `stream`: returns the stream of the view, for any
    options. If the join order of the text shares more joins with existing views than the best
    order, the view gets no sizes.
    """
    others = [i for i in catalog.items.values() if i.kind == "materialized view" and i.ready and i.id != item.id]
    sizes = {str(id): _similar_size(id, _rounded(n), others) for id, n in sorted(rows.items())}
    typed = replace(item, options={name: value for name, value in item.options.items() if name != SIZES})
    with_scan_sizes = replace(item, options={**item.options, SIZES: sizes})
    theirs = frozenset().union(*map(nodes.digests, others))

    def shared(view: Item) -> int:
        return sum(digest(o, view, catalog) in theirs for o in stateful(stream(view)) if isinstance(o, change.Join))

    return typed if theirs and shared(typed) > shared(with_scan_sizes) else with_scan_sizes


def _rounded(rows: int) -> int:
    """Rounds a number of rows to one digit; numbers below FEW become FEW, except 0."""
    return max(ROWS_MIN, int(float(f"{rows:.0e}"))) if rows else 0


def _similar_size(id: int, rows: int, views: list[Item]) -> int:
    """Returns the size that the newest view over this relation was planned with, if it is similar.

    Equal joins then get equal orders. Without such a view `rows` is returned.
    """
    for view in sorted(views, key=lambda i: -i.id):
        size = int(view.options.get(SIZES, {}).get(str(id), 0))
        if size and size <= rows * SIMILAR_FACTOR and rows <= size * SIMILAR_FACTOR:
            return size
    return rows
