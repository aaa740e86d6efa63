"""Joins in an order in which each has an equality to join by.

    FROM a, b, c WHERE a.x = c.x AND b.y = c.y        (a × b) ⋈ c  =  π((a ⋈ c) ⋈ b)

The order that was typed is kept as far as it can be: from the first input on, the next is always the first that an equality ties
to those before it. Joins that need no such help stay as they are.
"""

from __future__ import annotations

from itertools import pairwise

from engine.plan.scalars import renumber, ties
from sql.fallible import fallible
from sql.plan import Filter, Join, Relation, Scalar
from sql.relations import inputs, take, with_inputs
from sql.rewrite import columns_of, conjunction, conjuncts, shifted


def order_joins(relation: Relation) -> Relation:
    if not _is_inner(relation):
        return with_inputs(relation, tuple(order_joins(i) for i in inputs(relation)))
    leaves, conditions = _flatten(relation)
    ordered = tuple(order_joins(leaf) for leaf in leaves)
    if not _has_cross(relation):
        return _rebuilt(relation, list(ordered))
    return _ordered(relation, ordered, conditions)


def _is_inner(relation: Relation) -> bool:
    return isinstance(relation, Join) and relation.kind in ("inner", "cross")


def _flatten(relation: Relation) -> tuple[list[Relation], list[Scalar]]:
    """The inputs of a tree of inner joins, and its conditions over all their columns in order."""
    if not isinstance(relation, Join) or relation.kind not in ("inner", "cross"):
        return [relation], []
    left, left_conditions = _flatten(relation.left)
    right, right_conditions = _flatten(relation.right)
    width = len(relation.left.columns)
    own = [] if relation.condition is None else list(conjuncts(relation.condition))
    return left + right, left_conditions + [shifted(c, width) for c in right_conditions] + own


def _has_cross(relation: Relation) -> bool:
    if not isinstance(relation, Join) or relation.kind not in ("inner", "cross"):
        return False
    return not _tied(relation) or _has_cross(relation.left) or _has_cross(relation.right)


def _tied(join: Join) -> bool:
    width, whole = len(join.left.columns), len(join.columns)
    found = () if join.condition is None else conjuncts(join.condition)
    return any(ties(c, frozenset(range(width)), frozenset(range(width, whole))) for c in found)


def _rebuilt(relation: Relation, leaves: list[Relation]) -> Relation:
    """The same tree over these leaves, which are taken from the front."""
    if not _is_inner(relation):
        return leaves.pop(0)
    return with_inputs(relation, tuple(_rebuilt(i, leaves) for i in inputs(relation)))


def _ordered(relation: Relation, leaves: tuple[Relation, ...], conditions: list[Scalar]) -> Relation:
    starts = [0]
    for leaf in leaves:
        starts.append(starts[-1] + len(leaf.columns))
    ranges = [frozenset(range(a, b)) for a, b in pairwise(starts)]
    order = _order(ranges, conditions)
    if order == sorted(order):
        return _rebuilt(relation, list(leaves))
    place = {column: at for at, column in enumerate(sorted(ranges[order[0]]))}
    joined: Relation
    joined, waiting = leaves[order[0]], list(conditions)
    for i in order[1:]:
        before = frozenset(place)
        for at, column in enumerate(sorted(ranges[i])):
            place[column] = len(joined.columns) + at
        there = [c for c in waiting if columns_of(c) <= place.keys()]
        now = [c for c in there if not fallible(c)]
        if not any(ties(c, before, ranges[i]) for c in now):
            now += [c for c in there if c not in now and ties(c, before, ranges[i])]
        waiting = [c for c in waiting if c not in now]
        on = tuple(renumber(c, place) for c in now)
        joined = Join(joined, leaves[i], "inner", conjunction(on)) if on else Join(joined, leaves[i], "cross", None)
    if waiting:  # what can fail is asked of whole rows only, as they would have been
        joined = Filter(joined, conjunction(tuple(renumber(c, place) for c in waiting)))
    return take(joined, tuple(place[c] for c in range(starts[-1])))


def _order(ranges: list[frozenset[int]], conditions: list[Scalar]) -> list[int]:
    """The inputs by number, each tied to those before it if that is possible: by an equality that cannot fail rather than one that can."""
    sure = [c for c in conditions if not fallible(c)]
    order, left = [0], list(range(1, len(ranges)))
    while left:
        have = frozenset().union(*(ranges[i] for i in order))
        tied = (i for found in (sure, conditions) for i in left if any(ties(c, have, ranges[i]) for c in found))
        chosen = next(tied, left[0])
        order.append(chosen)
        left.remove(chosen)
    return order
