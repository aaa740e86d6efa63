"""The stream of each materialized view of a catalog; each view is bound, rewritten and compiled once."""

from __future__ import annotations

from collections.abc import Callable

from tailgate.engine.plan import compile
from tailgate.engine.plan.change import Stream
from tailgate.engine.plan.sizes import with_scan_sizes
from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.errors import StatementTooComplex
from tailgate.sql.definitions import bind_definition
from tailgate.sql.plan import Relation
from tailgate.sql.plan.traversal import tree_size

PlanOf = Callable[[Item, Catalog], Relation]


# Limit for the nodes of a view's plan. Each becomes an operator or a part of one, for every place
# where it is used. TPC-H's largest query has 60.
NODES_MAX = 10_000


def bound_plan(item: Item, catalog: Catalog) -> Relation:
    """Returns the plan of a view's text. Raises 54001 if it is too large to maintain."""
    plan = bind_definition(item, catalog).plan
    if tree_size(plan) > NODES_MAX:
        raise StatementTooComplex(
            f'the query of {item.kind} "{item.name}" is too complex',
            detail=f"Its plan may have at most {NODES_MAX} nodes; a query that is named more than once counts as often.",
            hint="Make a materialized view of what is named more than once.",
        )
    return plan


class Streams:
    """The streams of a catalog's materialized views: `streams(item)` returns the stream of a view.

    A view that is not ready reads replacements instead of the items that they replace, because they
    become ready together.
    """

    def __init__(self, catalog: Catalog, plan_of: PlanOf = bound_plan) -> None:
        self._catalog = catalog
        self._plan_of = plan_of
        self._coming = catalog.replaced()
        self._known: dict[int, Stream] = {}

    def __call__(self, item: Item) -> Stream:
        if item.id not in self._known:
            catalog = self._catalog if item.ready else self._coming
            self._known[item.id] = compile.stream(with_scan_sizes(self._plan_of(item, catalog), item), catalog, self)
        return self._known[item.id]
