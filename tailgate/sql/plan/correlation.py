"""Finds the arguments and subqueries in scalars and relations before decorrelation."""

from __future__ import annotations

from collections.abc import Iterator

from tailgate.sql.plan import Relation, Scalar
from tailgate.sql.plan.rewriting import parts
from tailgate.sql.plan.subqueries import Argument, Subquery, argument, dependent, subquery
from tailgate.sql.plan.traversal import inputs, scalars_of


def arguments_of(scalar: Scalar, visited: set[int] | None = None) -> Iterator[Argument]:
    """Yields the arguments that a scalar and its subqueries read. Relations in `visited` are skipped."""
    visited = set() if visited is None else visited
    if (reference := argument(scalar)) is not None:
        yield reference
    if (inner := subquery(scalar)) is not None:
        yield from arguments_read(inner.relation, visited)
        if inner.condition is not None:
            yield from arguments_of(inner.condition, visited)
    for part in parts(scalar):
        yield from arguments_of(part, visited)


def arguments_read(relation: Relation, visited: set[int] | None = None) -> Iterator[Argument]:
    """Yields the arguments that a relation reads, in all its nodes. Relations in `visited` are skipped."""
    visited = set() if visited is None else visited
    for node in nodes(relation, visited):
        join = dependent(node)
        scalars = scalars_of(node) if join is None else join.arguments if join.condition is None else (*join.arguments, join.condition)
        for scalar in scalars:
            yield from arguments_of(scalar, visited)


def nodes(relation: Relation, visited: set[int] | None = None) -> Iterator[Relation]:
    """Yields a relation and all below it, each once, also inputs of LATERAL joins, but not subqueries in scalars."""
    visited = set() if visited is None else visited
    waiting = [relation]
    while waiting:
        node = waiting.pop()
        if id(node) not in visited:
            visited.add(id(node))
            yield node
            join = dependent(node)
            waiting += reversed((join.left, join.right) if join is not None else inputs(node))


def has_subqueries(scalar: Scalar) -> bool:
    """Returns whether a scalar contains a subquery."""
    return subquery(scalar) is not None or any(map(has_subqueries, parts(scalar)))


def subqueries_of(scalar: Scalar) -> tuple[Subquery, ...]:
    """Returns the subqueries of a scalar, without those in the arguments of a subquery."""
    inner = subquery(scalar)
    return (inner,) if inner is not None else tuple(s for p in parts(scalar) for s in subqueries_of(p))
