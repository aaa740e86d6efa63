"""Pushes filters down, so that fewer rows reach stateful operators.

    σ_c(π_f(R)) = π_f(σ_{c∘f}(R))
    σ_{a ∧ b ∧ c}(L ⋈ R) = σ_c(σ_a(L) ⋈ σ_b(R))       a reads only the left, b only the right
    σ_{a ∧ c}(L ⟕ R) = σ_c(σ_a(L) ⟕ R)                L ⟕_{b ∧ c} R = L ⟕_c σ_b(R)
    σ_c(L ∩ R) = σ_c(L) ∩ σ_c(R)                      likewise for ∖ and ∪
    σ_c(γ_{k; f}(R)) = γ_{k; f}(σ_{c∘k}(R))           c reads only the keys

Below a join or an aggregate a condition is evaluated for more rows than above. Therefore only
conditions that cannot fail are pushed there (`sql.plan.may_fail`).
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.engine.plan.analysis.join_sides import MATCHED, WHOLE
from tailgate.engine.plan.analysis.scalars import ties
from tailgate.sql.plan import Distinct, Filter, Join, Project, Reduce, Relation, Scalar, SetOperation, UnionAll
from tailgate.sql.plan.may_fail import fallible
from tailgate.sql.plan.rewriting import columns_of, conjunction, conjuncts, shifted, substituted
from tailgate.sql.plan.traversal import inputs, with_inputs


def push_filters(relation: Relation) -> Relation:
    """Pushes all filters of a plan down as far as possible."""
    if isinstance(relation, Filter):
        return _push(push_filters(relation.input), conjuncts(relation.condition), relation)
    return _conditions_of_join(with_inputs(relation, tuple(push_filters(i) for i in inputs(relation))))


def _conditions_of_join(relation: Relation) -> Relation:
    """Pushes conditions of a join's ON that read one side to this side.

    This is possible for a side of which the join needs only rows that match.
    """
    if not isinstance(relation, Join) or relation.condition is None:
        return relation
    left, right, rest = _sides(relation, conjuncts(relation.condition), MATCHED[relation.kind])
    if not left and not right:
        return relation
    sides = _push(relation.left, left), _push(relation.right, right)
    if relation.kind == "inner" and not rest:
        return Join(*sides, "cross", None, relation.position)
    return Join(*sides, relation.kind, conjunction(rest), relation.position)


def _push(relation: Relation, conditions: tuple[Scalar, ...], same: Filter | None = None) -> Relation:
    """Returns the relation with the conditions pushed down as far as possible.

    `same` is the original filter, which is returned if the conditions stay above the relation.
    """
    if not conditions:
        return relation
    match relation:
        case Filter(input, condition):
            return _push(input, conjuncts(condition) + conditions)
        case Project(input, expressions, columns):
            return Project(_push(input, tuple(substituted(c, expressions) for c in conditions)), expressions, columns)
        case UnionAll(each, columns):
            return UnionAll(tuple(_push(i, conditions) for i in each), columns)
        case Distinct(input):
            if not any(map(fallible, conditions)):
                return Distinct(_push(input, conditions))
        case SetOperation():
            if not any(map(fallible, conditions)):
                return replace(relation, left=_push(relation.left, conditions), right=_push(relation.right, conditions))
        case Reduce(input, keys) if keys:
            of_keys = frozenset(range(len(keys)))
            down = tuple(c for c in _movable(conditions) if columns_of(c) <= of_keys)
            if down:
                below = _push(input, tuple(substituted(c, keys) for c in down))
                return _keep(replace(relation, input=below), tuple(c for c in conditions if c not in down))
        case Join(kind="left" | "right" | "semi" | "anti" as kind):
            left, right, rest = _sides(relation, conditions, WHOLE[kind])
            if left or right:
                sides = _push(relation.left, left), _push(relation.right, right)
                return _keep(Join(*sides, kind, relation.condition, relation.position), rest)
        case Join(kind="inner" | "cross" as kind):
            left, right, rest = _sides(relation, conditions, WHOLE[kind])
            into = tuple(c for c in _movable(rest) if _joins(relation, c))
            if left or right or into:
                on = into if relation.condition is None else conjuncts(relation.condition) + into
                sides = _push(relation.left, left), _push(relation.right, right)
                join = Join(*sides, "inner", conjunction(on), relation.position) if on else Join(*sides, "cross", None, relation.position)
                return _keep(join, tuple(c for c in rest if c not in into))
        case _:
            pass
    return _keep(relation, conditions, same)


def _keep(relation: Relation, conditions: tuple[Scalar, ...], same: Filter | None = None) -> Relation:
    """Returns a filter of the conditions over the relation; reuses the filter `same` if it is equal."""
    if not conditions:
        return relation
    if same is not None and same.input is relation and conjuncts(same.condition) == conditions:
        return same
    return Filter(relation, conjunction(conditions))


def _movable(conditions: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    return tuple(c for c in conditions if not fallible(c))


Conditions = tuple[Scalar, ...]


def _sides(join: Join, conditions: Conditions, of: tuple[bool, bool]) -> tuple[Conditions, Conditions, Conditions]:
    """Splits conditions into those for the left, for the right (over its columns), and the others.

    `of`: whether conditions may be pushed to the left and to the right.
    """
    width = len(join.left.columns)
    movable = tuple((c, columns_of(c)) for c in _movable(conditions))
    left = tuple(c for c, read in movable if of[0] and read and max(read) < width)
    right = tuple(c for c, read in movable if of[1] and read and min(read) >= width)
    return left, tuple(shifted(c, -width) for c in right), tuple(c for c in conditions if c not in left and c not in right)


def _joins(join: Join, condition: Scalar) -> bool:
    """Returns whether a condition is an equality between the two sides."""
    width, whole = len(join.left.columns), len(join.columns)
    return ties(condition, frozenset(range(width)), frozenset(range(width, whole)))
