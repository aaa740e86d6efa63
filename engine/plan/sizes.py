"""How many rows a view's inputs had when it was planned, which is what joins are ordered by.

    CREATE … ──► rows of what it reads, about ──► options["sizes"] {id: rows} ──► Scan.rows ──► rewrites

They are kept with the view, so that it has the same plan as long as it lives, however its inputs grow: an operator's state is found by
what the operator is (`digest`). A view without them is joined as it was typed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from engine.plan import nodes
from engine.plan.change import Joined, Stream, stateful
from engine.plan.digest import digest
from lake.catalog import Catalog, Item
from sql.plan import Relation, Scan
from sql.relations import bottom_up

SIZES = "sizes"  # option of a materialized view
FEW = 100  # rows
ALIKE = 4  # a relation that has not grown or shrunk by more than this is taken to be as large as for the newest view that reads it


def sized(plan: Relation, item: Item) -> Relation:
    """The plan of a view with the sizes that it keeps."""
    sizes: Mapping[str, int] | None = item.options.get(SIZES)
    if sizes is None:
        return plan
    return bottom_up(plan, lambda node: replace(node, rows=sizes.get(str(node.relation), 0)) if isinstance(node, Scan) else node)


def measured(item: Item, rows: Mapping[int, int], catalog: Catalog, stream: Callable[[Item], Stream]) -> Item:
    """The view, not yet numbered, with the sizes to be planned by. `rows`: of what it reads, as far as known; `stream`: of the view with
    these options or others.

    A join that other views keep already is not joined in another order: if more of its joins are theirs as it was typed, it has no sizes.
    """
    others = [i for i in catalog.items.values() if i.kind == "materialized view" and i.ready and i.id != item.id]
    sizes = {str(id): _like_others(id, _about(n), others) for id, n in sorted(rows.items())}
    typed = replace(item, options={name: value for name, value in item.options.items() if name != SIZES})
    sized = replace(item, options={**item.options, SIZES: sizes})
    theirs = frozenset().union(*map(nodes.digests, others))

    def shared(view: Item) -> int:
        return sum(digest(o, view, catalog) in theirs for o in stateful(stream(view)) if isinstance(o, Joined))

    return typed if theirs and shared(typed) > shared(sized) else sized


def _about(rows: int) -> int:
    """To one digit; those of which there are few are taken to be alike."""
    return max(FEW, int(float(f"{rows:.0e}"))) if rows else 0


def _like_others(id: int, rows: int, views: list[Item]) -> int:
    """The size by which the newest view that reads the relation was planned, if it is about the same: equal joins are then in one order."""
    for view in sorted(views, key=lambda i: -i.id):
        known = int(view.options.get(SIZES, {}).get(str(id), 0))
        if known and known <= rows * ALIKE and rows <= known * ALIKE:
            return known
    return rows
