"""Plain views in FROM: a view is replaced by the plan of its query.

    FROM v  ──► plan of v, from the statement, from the cache, or bound now
            ──► privileges that v needs, of its owner and of the owners of the views below it

A view is bound once for all catalogs in which it means the same. Its plan depends on nothing of the
statement that names it: a view has no parameters, and it sees no outer names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tailgate.lake.catalog import Catalog, MaterializedView, View
from tailgate.lake.errors import ProgramLimitExceeded
from tailgate.lake.uncommitted import is_evaluated
from tailgate.sql.binder.context import QueryBinder
from tailgate.sql.binder.queries.full_columns import as_columns, with_full_columns
from tailgate.sql.binder.relation_names import ExpandedView, Names
from tailgate.sql.binder.types.parameters import Parameters
from tailgate.sql.definition_cache import DefinitionCache
from tailgate.sql.grammar.parser import parse_query
from tailgate.sql.numeric_types import typed_by
from tailgate.sql.plan import Project, Relation
from tailgate.sql.time_zones import UTC, in_zone

LEVELS_MAX = 100  # of views over views; a deeper nesting is a mistake
VIEWS_MAX = 512  # in the cache, also temporary views; a plan takes 20 KB on average

_views: DefinitionCache[ExpandedView] = DefinitionCache(VIEWS_MAX)


def plan_of_view(item: View | MaterializedView, names: Names, queries: QueryBinder, at: int | None) -> Relation:
    """Returns the plan of a plain view that a text names, and records its privileges as needs of the text.

    If a statement names the view several times, it gets the same object each time. Raises 54000 if
    views are nested too deep.
    """
    view = _expanded(item, names, queries)
    if names.depth + view.levels > LEVELS_MAX:
        raise ProgramLimitExceeded("views over views are nested too deep", position=at)
    names.take_over(view)
    return view.plan


def _expanded(item: View | MaterializedView, names: Names, queries: QueryBinder) -> ExpandedView:
    key = item.id, names.inside
    view = names.views.get(key)
    if view is None:
        view = _views.get(key, names.catalog.stored, lambda: _bound(item, names, queries), lambda _: (item.id,), item.query)
        names.views[key] = view
    return view


def _bound(item: View | MaterializedView, names: Names, queries: QueryBinder) -> ExpandedView:
    """Binds the query of a view. The plan has the view's column names.

    The views that it reads are bound first, so many levels of views need few levels of calls.
    """
    below = names.below(item)
    for lower in _views_below(item, below.catalog):
        _expanded(lower, below, queries)
    with typed_by(item.numeric_rules), in_zone(UTC):
        plan = replace(queries, parameters=Parameters(), view=True, outer=None).query(parse_query(item.query), below)
    plan = with_full_columns(plan)
    if plan.columns != item.columns:
        plan = Project(plan, as_columns(plan), item.columns)
    return below.expanded(plan)


def _views_below(view: View | MaterializedView, catalog: Catalog) -> Iterator[View | MaterializedView]:
    """Yields the plain views that a view reads directly or through other views, each after those that it reads."""
    visited: set[int] = set()
    waiting = [(view, False)]
    while waiting:
        item, ready = waiting.pop()
        if ready and item is not view:
            yield item
        elif item.id not in visited:
            visited.add(item.id)
            waiting.append((item, True))
            lower = (catalog.items.get(id) for id in item.depends)
            waiting += [(v, False) for v in lower if is_evaluated(v)]
