"""The stream of each materialized view of a catalog; each view is bound, rewritten and compiled once for all catalogs in
which it means the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace

from tailgate.engine.plan.rules import compile
from tailgate.engine.plan.rules.change import ORDERED, ArrivalJoin, Stream, WithinJoin, stateful
from tailgate.lake.catalog import ROUNDS, Catalog, Item, MaterializedView
from tailgate.lake.errors import StatementTooComplex
from tailgate.sql.definition_cache import DefinitionCache
from tailgate.sql.definitions import bind_definition, definition_key
from tailgate.sql.plan import Recursive, Relation, Scan
from tailgate.sql.plan.traversal import bottom_up, tree_size

StreamOf = Callable[[Item, Catalog, Callable[[Item], Stream]], Stream]


# Limit for the nodes of a view's plan. Each becomes an operator or a part of one, for every place
# where it is used. TPC-H's largest query has 60.
NODES_MAX = 10_000


def as_planned(plan: Relation, item: Item) -> Relation:
    """Returns the plan of a view with the choices of its creation in its scans: sizes, and columns of shared joins."""
    if not isinstance(item, MaterializedView) or (item.sizes is None and not item.join_columns):
        return plan
    sizes, columns = item.sizes, item.join_columns

    def rule(node: Relation) -> Relation:
        if not isinstance(node, Scan):
            return node
        return replace(node, rows=None if sizes is None else sizes.get(node.relation, 0), join_columns=columns.get(node.relation))

    return bottom_up(plan, rule)


def bound_plan(item: Item, catalog: Catalog) -> Relation:
    """Returns the plan of a view's text, with the choices of its creation. Raises 54001 if it is too large to maintain."""
    plan = as_planned(bind_definition(item, catalog).plan, item)
    if isinstance(item, MaterializedView) and item.recursion_limit != ROUNDS:
        limit = item.recursion_limit
        plan = bottom_up(plan, lambda node: replace(node, limit=limit) if isinstance(node, Recursive) else node)
    if tree_size(plan) > NODES_MAX:
        raise StatementTooComplex(
            f'the query of {item.kind} "{item.name}" is too complex',
            detail=f"Its plan may have at most {NODES_MAX} nodes; a query that is named more than once counts as often.",
            hint="Create a materialized view of the part that is named more than once.",
        )
    return plan


def plan_key(item: Item) -> Hashable:
    """Returns what an item itself contributes to its plan: its definition, and the choices of its creation."""
    if not isinstance(item, MaterializedView):
        return definition_key(item), None, ROUNDS, frozenset[object]()
    sizes = None if item.sizes is None else frozenset(item.sizes.items())
    return definition_key(item), sizes, item.recursion_limit, frozenset(item.join_columns.items())


_streams: DefinitionCache[Stream] = DefinitionCache()


def stream_of(item: Item, catalog: Catalog, streams: Callable[[Item], Stream]) -> Stream:
    """Returns the stream of a view, compiled once for all catalogs in which its definition means the same.

    `streams`: returns the streams of the views that it reads.
    """
    stored = catalog.stored

    def compiled() -> Stream:
        return compile.stream(bound_plan(item, stored), stored, streams)

    return _streams.get(plan_key(item), stored, compiled, lambda _: bind_definition(item, stored).depends, item.query)


class Streams:
    """The streams of a catalog's materialized views: `streams(item)` returns the stream of a view.

    A view that is not ready reads replacements instead of the items that they replace, because they
    become ready together.
    """

    def __init__(self, catalog: Catalog, compiled: StreamOf = stream_of) -> None:
        self._catalog = catalog
        self._compiled = compiled
        self._coming = catalog.replaced()
        self._known: dict[int, Stream] = {}

    def __call__(self, item: Item) -> Stream:
        if item.id not in self._known:
            self._known[item.id] = self._compiled(item, self._catalog if item.ready else self._coming, self)
        return self._known[item.id]


def joins_in_order(item: Item, catalog: Catalog) -> bool:
    """Returns whether a view joins a stream with another or with a table. It cannot be filled again with the same rows."""
    return any(isinstance(o, ArrivalJoin | WithinJoin) for o in stateful(Streams(catalog)(item)))


def depends_on_order(item: Item, catalog: Catalog) -> bool:
    """Returns whether a view depends on the order of its input. Its live changes wait while it is being filled."""
    return any(isinstance(o, ORDERED) for o in stateful(Streams(catalog)(item)))
