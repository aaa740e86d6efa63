"""The stream of every materialized view of a catalog: bound, rewritten, compiled, once each."""

from __future__ import annotations

from collections.abc import Callable

from engine.plan import compile
from engine.plan.change import Stream
from engine.plan.sizes import sized
from lake.catalog import Catalog, Item
from lake.errors import StatementTooComplex
from sql.definitions import bind_definition
from sql.plan import Relation
from sql.relations import places

PlanOf = Callable[[Item, Catalog], Relation]


# Nodes of a view's plan. Each becomes an operator or part of one, wherever it stands; TPC-H's largest query has 60.
NODES_MAX = 10_000


def bound(item: Item, catalog: Catalog) -> Relation:
    """The plan of a view's text. Raises 54001 if it is too large to be maintained."""
    plan = bind_definition(item, catalog).plan
    if places(plan) > NODES_MAX:
        raise StatementTooComplex(
            f'the query of {item.kind} "{item.name}" is too complex',
            detail=f"Its plan may have at most {NODES_MAX} nodes; a query that is named more than once counts as often.",
            hint="Make a materialized view of what is named more than once.",
        )
    return plan


class Streams:
    """`streams(item)`: how a materialized view of this catalog is kept up to date.

    One that is being filled reads what replaces other items, for it is ready when they are.
    """

    def __init__(self, catalog: Catalog, plan_of: PlanOf = bound) -> None:
        self._catalog = catalog
        self._plan_of = plan_of
        self._coming = catalog.replaced()
        self._known: dict[int, Stream] = {}

    def __call__(self, item: Item) -> Stream:
        if item.id not in self._known:
            catalog = self._catalog if item.ready else self._coming
            self._known[item.id] = compile.stream(sized(self._plan_of(item, catalog), item), catalog, self)
        return self._known[item.id]
