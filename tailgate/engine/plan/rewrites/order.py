"""Orders inner joins to keep intermediate results small, because these are stored.

    FROM a, b, c WHERE a.x = c.x AND b.y = c.y        (a × b) ⋈ c  =  π((a ⋈ c) ⋈ b)
    orders ⋈ customers ⋈ nations                      orders ⋈ (customers ⋈ nations) stores orders once,
                                                      (orders ⋈ customers) ⋈ nations twice

Every change passes the intermediate results, too. The algorithm is greedy: in each step it joins
the two inputs with the smallest join (`estimate`). Two inputs without an equality between them are
joined only if no pair has one. The order of the text is kept unless another is much better. If the
view has no sizes (`sizes`), or if an equality can fail (another order might evaluate it for more
rows), the order of the text is kept unless it contains a cross join.

Source: L. Fegaras, A New Heuristic for Optimizing Large Queries, 1998.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from tailgate.engine.plan.analysis.estimate import rows
from tailgate.engine.plan.analysis.scalars import equated, renumber, ties
from tailgate.sql.plan import Filter, Join, Relation, Scalar, Scan
from tailgate.sql.plan.may_fail import fallible
from tailgate.sql.plan.rewriting import columns_of, conjunction, conjuncts, shifted
from tailgate.sql.plan.traversal import inputs, take, walk, with_inputs

# an order replaces that of the text if its intermediate results have this many times fewer rows
BETTER = 2.0


@dataclass(frozen=True, slots=True)
class _Part:
    """Some inputs, joined.

    `columns`: the relation's columns, in its order, as positions among the columns of all inputs in
    the order of the text.
    """

    relation: Relation
    columns: tuple[int, ...]


def order_joins(relation: Relation) -> Relation:
    """Reorders each tree of inner joins if another order is better."""
    if not _is_inner(relation):
        return with_inputs(relation, tuple(order_joins(i) for i in inputs(relation)))
    leaves, conditions = _flatten(relation)
    ordered = [order_joins(leaf) for leaf in leaves]
    typed = _rebuilt(relation, list(ordered))
    crossed = _has_cross(relation)
    if len(leaves) < 3 or not (crossed or (_by_sizes(relation) and not any(equated(c) and fallible(c) for c in conditions))):
        return typed
    best = _ordered(ordered, conditions)
    return best if _between(best) * (1.0 if crossed else BETTER) < _between(typed) else typed


def _is_inner(relation: Relation) -> bool:
    return isinstance(relation, Join) and relation.kind in ("inner", "cross")


def _flatten(relation: Relation) -> tuple[list[Relation], list[Scalar]]:
    """Returns the inputs of a tree of inner joins, and its conditions over all their columns in order."""
    if not isinstance(relation, Join) or relation.kind not in ("inner", "cross"):
        return [relation], []
    left, left_conditions = _flatten(relation.left)
    right, right_conditions = _flatten(relation.right)
    width = len(relation.left.columns)
    own = [] if relation.condition is None else list(conjuncts(relation.condition))
    return left + right, left_conditions + [shifted(c, width) for c in right_conditions] + own


def _has_cross(relation: Relation) -> bool:
    """Returns whether a tree of inner joins contains a join without an equality."""
    if not isinstance(relation, Join) or relation.kind not in ("inner", "cross"):
        return False
    return not _tied(relation) or _has_cross(relation.left) or _has_cross(relation.right)


def _tied(join: Join) -> bool:
    """Returns whether an equality connects the sides of a join."""
    width, whole = len(join.left.columns), len(join.columns)
    conditions = () if join.condition is None else conjuncts(join.condition)
    return any(ties(c, frozenset(range(width)), frozenset(range(width, whole))) for c in conditions)


def _by_sizes(relation: Relation) -> bool:
    """Returns whether the sizes of all scans are known."""
    return all(node.rows is not None for node in walk(relation) if isinstance(node, Scan))


def _between(relation: Relation) -> float:
    """Returns the total rows of joins that are inputs of other joins."""
    while not _is_inner(relation):
        # skips nodes that were added above a new order
        (relation,) = inputs(relation)
    return sum(rows(join) for join in _joins(relation) if join is not relation)


def _joins(relation: Relation) -> Iterator[Join]:
    if isinstance(relation, Join) and _is_inner(relation):
        yield relation
        for input in inputs(relation):
            yield from _joins(input)


def _rebuilt(relation: Relation, leaves: list[Relation]) -> Relation:
    """Returns the same tree with these leaves, which are removed from the front of the list."""
    if not _is_inner(relation):
        return leaves.pop(0)
    return with_inputs(relation, tuple(_rebuilt(i, leaves) for i in inputs(relation)))


def _ordered(leaves: list[Relation], conditions: list[Scalar]) -> Relation:
    """Joins the inputs greedily, and returns the columns in the order of the text."""
    parts, waiting, start = list[_Part](), list(conditions), 0
    for leaf in leaves:
        parts.append(_Part(leaf, tuple(range(start, start + len(leaf.columns)))))
        start += len(leaf.columns)
    while len(parts) > 1:
        pairs = list(combinations(range(len(parts)), 2))
        sure = [c for c in waiting if not fallible(c)]
        tied = next((t for t in (_tied_by(sure, parts, pairs), _tied_by(waiting, parts, pairs)) if t), pairs)
        # `min` returns the first of equal pairs
        i, j = min(tied, key=lambda pair: rows(_joined(parts[pair[0]], parts[pair[1]], waiting)[0].relation))
        parts[i], used = _joined(parts[i], parts[j], waiting)
        del parts[j]
        waiting = [c for c in waiting if all(c is not a for a in used)]
    (whole,) = parts
    place = {column: at for at, column in enumerate(whole.columns)}
    joined = whole.relation
    # conditions that can fail are evaluated for complete rows only, as in the order of the text
    if waiting:
        joined = Filter(joined, conjunction(tuple(renumber(c, place) for c in waiting)))
    return take(joined, tuple(place[c] for c in range(start)))


def _tied_by(conditions: list[Scalar], parts: list[_Part], pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the pairs of parts that an equality connects."""
    columns = [frozenset(p.columns) for p in parts]
    return [(i, j) for i, j in pairs if any(ties(c, columns[i], columns[j]) for c in conditions)]


def _joined(left: _Part, right: _Part, waiting: list[Scalar]) -> tuple[_Part, list[Scalar]]:
    """Joins two parts, and returns the join with the conditions that it uses.

    These are the conditions that cannot fail. If none of them connects the parts, equalities that
    can fail are used, too.
    """
    columns = left.columns + right.columns
    place = {column: at for at, column in enumerate(columns)}
    sides = frozenset(left.columns), frozenset(right.columns)
    applicable = [c for c in waiting if columns_of(c) <= place.keys()]
    conditions = [c for c in applicable if not fallible(c)]
    if not any(ties(c, *sides) for c in conditions):
        conditions += [c for c in applicable if fallible(c) and ties(c, *sides)]
    on = tuple(renumber(c, place) for c in conditions)
    join = Join(left.relation, right.relation, "inner", conjunction(on)) if on else Join(left.relation, right.relation, "cross", None)
    return _Part(join, columns), conditions
