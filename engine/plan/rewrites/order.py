"""Inner joins in an order that keeps what lies between them small: that is kept as state, and passed by every change.

    FROM a, b, c WHERE a.x = c.x AND b.y = c.y        (a × b) ⋈ c  =  π((a ⋈ c) ⋈ b)
    orders ⋈ customers ⋈ nations                      orders is kept once if it is joined to (customers ⋈ nations), twice if it comes first

Of all inputs the two are joined first, then next, whose pairs are the fewest (`estimate`); two that no equality ties to each other only
when there is nothing else. The order that was typed stays if no other is much better. Where the view has no sizes (`sizes`), and where an
equality can fail, which in another order might be asked of rows that it was not asked of, it stays unless a join in it has no equality.

Source: L. Fegaras, A New Heuristic for Optimizing Large Queries, 1998.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from engine.plan.estimate import rows
from engine.plan.scalars import equated, renumber, ties
from sql.fallible import fallible
from sql.plan import Filter, Join, Relation, Scalar, Scan
from sql.relations import inputs, take, walk, with_inputs
from sql.rewrite import columns_of, conjunction, conjuncts, shifted

BETTER = 2.0  # so many times fewer rows between its joins an order must have, to be taken instead of the one that was typed


@dataclass(frozen=True, slots=True)
class _Part:
    """Some inputs, joined. `columns`: of all inputs' columns in the order that was typed, those which the relation has, in its order."""

    relation: Relation
    columns: tuple[int, ...]


def order_joins(relation: Relation) -> Relation:
    if not _is_inner(relation):
        return with_inputs(relation, tuple(order_joins(i) for i in inputs(relation)))
    leaves, conditions = _flatten(relation)
    ordered = [order_joins(leaf) for leaf in leaves]
    typed = _rebuilt(relation, list(ordered))
    crossed = _has_cross(relation)
    if len(leaves) < 3 or not (crossed or (_by_sizes(relation) and not any(equated(c) and fallible(c) for c in conditions))):
        return typed
    made = _ordered(ordered, conditions)
    return made if _between(made) * (1.0 if crossed else BETTER) < _between(typed) else typed


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


def _by_sizes(relation: Relation) -> bool:
    return all(node.rows is not None for node in walk(relation) if isinstance(node, Scan))


def _between(relation: Relation) -> float:
    """The rows that joins have as inputs which are joins themselves, below the topmost one."""
    while not _is_inner(relation):
        (relation,) = inputs(relation)  # what was put above a new order
    return sum(rows(join) for join in _joins(relation) if join is not relation)


def _joins(relation: Relation) -> Iterator[Join]:
    if isinstance(relation, Join) and _is_inner(relation):
        yield relation
        for input in inputs(relation):
            yield from _joins(input)


def _rebuilt(relation: Relation, leaves: list[Relation]) -> Relation:
    """The same tree over these leaves, which are taken from the front."""
    if not _is_inner(relation):
        return leaves.pop(0)
    return with_inputs(relation, tuple(_rebuilt(i, leaves) for i in inputs(relation)))


def _ordered(leaves: list[Relation], conditions: list[Scalar]) -> Relation:
    parts, waiting, start = list[_Part](), list(conditions), 0
    for leaf in leaves:
        parts.append(_Part(leaf, tuple(range(start, start + len(leaf.columns)))))
        start += len(leaf.columns)
    while len(parts) > 1:
        pairs = list(combinations(range(len(parts)), 2))
        sure = [c for c in waiting if not fallible(c)]
        tied = next((t for t in (_tied_by(sure, parts, pairs), _tied_by(waiting, parts, pairs)) if t), pairs)
        i, j = min(tied, key=lambda pair: rows(_joined(parts[pair[0]], parts[pair[1]], waiting)[0].relation))  # the first of equal ones
        parts[i], asked = _joined(parts[i], parts[j], waiting)
        del parts[j]
        waiting = [c for c in waiting if all(c is not a for a in asked)]
    (whole,) = parts
    place = {column: at for at, column in enumerate(whole.columns)}
    joined = whole.relation
    if waiting:  # what can fail is asked of whole rows only, as it would have been
        joined = Filter(joined, conjunction(tuple(renumber(c, place) for c in waiting)))
    return take(joined, tuple(place[c] for c in range(start)))


def _tied_by(conditions: list[Scalar], parts: list[_Part], pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The pairs of parts that an equality ties to each other."""
    there = [frozenset(p.columns) for p in parts]
    return [(i, j) for i, j in pairs if any(ties(c, there[i], there[j]) for c in conditions)]


def _joined(left: _Part, right: _Part, waiting: list[Scalar]) -> tuple[_Part, list[Scalar]]:
    """Both, with the conditions that are asked there: those that cannot fail, and if no other ties them an equality that can."""
    columns = left.columns + right.columns
    place = {column: at for at, column in enumerate(columns)}
    sides = frozenset(left.columns), frozenset(right.columns)
    there = [c for c in waiting if columns_of(c) <= place.keys()]
    asked = [c for c in there if not fallible(c)]
    if not any(ties(c, *sides) for c in asked):
        asked += [c for c in there if fallible(c) and ties(c, *sides)]
    on = tuple(renumber(c, place) for c in asked)
    join = Join(left.relation, right.relation, "inner", conjunction(on)) if on else Join(left.relation, right.relation, "cross", None)
    return _Part(join, columns), asked
