"""Queries of the relations of the schema `tailgate`, whose rows are not in the log."""

from __future__ import annotations

from tailgate.lake.catalog import SYSTEM_RELATIONS
from tailgate.lake.catalog.schemas import is_system
from tailgate.sql.plan import Call, Filter, Project, Relation, Scan
from tailgate.sql.plan.query import Query
from tailgate.sql.plan.rewriting import walk as walk_scalar
from tailgate.sql.plan.traversal import scalars_of, walk

HISTORY = SYSTEM_RELATIONS["freshness_history"]


def reads_system(plan: Relation) -> bool:
    """Returns whether a query reads a relation of the schema `tailgate`."""
    return any(isinstance(node, Scan) and is_system(node.relation) for node in walk(plan))


def follows_history(query: Query) -> bool:
    """Returns whether each row of a query is made of one row of tailgate.freshness_history, at any time in the same way.

    The rows of a new step are then all changes of the query, except for rows older than 7 days, which leave. The query names neither views
    nor functions that a statement could replace.
    """
    nodes = list(walk(query.plan))
    scalars = (part for node in nodes for scalar in scalars_of(node) for part in walk_scalar(scalar))
    return (
        not query.depends
        and all(isinstance(node, Filter | Project | Scan) for node in nodes)
        and all(node.relation == HISTORY.id for node in nodes if isinstance(node, Scan))
        and all(not isinstance(part, Call) or part.function.volatility == "immutable" for part in scalars)
    )
