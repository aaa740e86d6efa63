"""Filters move down, so that fewer rows reach what keeps state.

    σ_c(π_f(R)) = π_f(σ_{c∘f}(R))
    σ_{a ∧ b ∧ c}(L ⋈ R) = σ_c(σ_a(L) ⋈ σ_b(R))       a of the left's columns alone, b of the right's
    σ_c(γ_{k; f}(R)) = γ_{k; f}(σ_{c∘k}(R))           c of the keys alone

Below a join or an aggregate a condition is asked of rows that it was not asked of above, so there only conditions that cannot fail
move (`engine.plan.fallible`), and none that stands after one which stays.
"""

from __future__ import annotations

from engine.plan.fallible import fallible
from engine.plan.scalars import conjunction
from sql.plan import Aggregate, Distinct, Filter, Join, Project, Relation, Scalar, Union_
from sql.relations import inputs, with_inputs
from sql.rewrite import columns_of, conjuncts, shifted, substituted


def push_filters(relation: Relation) -> Relation:
    if isinstance(relation, Filter):
        return _push(push_filters(relation.input), conjuncts(relation.condition), relation)
    return _conditions_of_join(with_inputs(relation, tuple(push_filters(i) for i in inputs(relation))))


def _conditions_of_join(relation: Relation) -> Relation:
    """A condition of one side alone, in an inner join's ON, is a filter of that side."""
    if not isinstance(relation, Join) or relation.kind != "inner" or relation.condition is None:
        return relation
    left, right, kept = _sides(relation, conjuncts(relation.condition))
    if not left and not right:
        return relation
    sides = _push(relation.left, left), _push(relation.right, right)
    return Join(*sides, "inner", conjunction(kept), relation.position) if kept else Join(*sides, "cross", None, relation.position)


def _push(relation: Relation, conditions: tuple[Scalar, ...], same: Filter | None = None) -> Relation:
    """The filter of the conditions over the relation, as far down as it goes; `same` itself if it goes nowhere."""
    if not conditions:
        return relation
    match relation:
        case Filter(input, condition):
            return _push(input, conjuncts(condition) + conditions)
        case Project(input, expressions, columns):
            return Project(_push(input, tuple(substituted(c, expressions) for c in conditions)), expressions, columns)
        case Union_(each, columns):
            return Union_(tuple(_push(i, conditions) for i in each), columns)
        case Distinct(input):
            if not any(map(fallible, conditions)):
                return Distinct(_push(input, conditions))
        case Aggregate(input, keys, aggregates) if keys:
            of_keys = frozenset(range(len(keys)))
            down = tuple(c for c in _movable(conditions) if columns_of(c) <= of_keys)
            if down:
                below = _push(input, tuple(substituted(c, keys) for c in down))
                return _keep(Aggregate(below, keys, aggregates), tuple(c for c in conditions if c not in down))
        case Join(kind="inner" | "cross"):
            left, right, kept = _sides(relation, conditions)
            into = tuple(c for c in _movable(kept) if _joins(relation, c))
            if left or right or into:
                on = into if relation.condition is None else conjuncts(relation.condition) + into
                sides = _push(relation.left, left), _push(relation.right, right)
                join = Join(*sides, "inner", conjunction(on), relation.position) if on else Join(*sides, "cross", None, relation.position)
                return _keep(join, tuple(c for c in kept if c not in into))
        case _:
            pass
    return _keep(relation, conditions, same)


def _keep(relation: Relation, conditions: tuple[Scalar, ...], same: Filter | None = None) -> Relation:
    if not conditions:
        return relation
    if same is not None and same.input is relation and conjuncts(same.condition) == conditions:
        return same
    return Filter(relation, conjunction(conditions))


def _movable(conditions: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    return tuple(c for c in conditions if not fallible(c))


def _sides(join: Join, conditions: tuple[Scalar, ...]) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...], tuple[Scalar, ...]]:
    """The conditions for the left, for the right (over its own columns), and those which stay."""
    width = len(join.left.columns)
    left = tuple(c for c in _movable(conditions) if columns_of(c) and all(i < width for i in columns_of(c)))
    right = tuple(c for c in _movable(conditions) if columns_of(c) and all(i >= width for i in columns_of(c)))
    return left, tuple(shifted(c, -width) for c in right), tuple(c for c in conditions if c not in left and c not in right)


def _joins(join: Join, condition: Scalar) -> bool:
    """Whether it reads both sides, so that it may be what joins them."""
    width = len(join.left.columns)
    return any(i < width for i in columns_of(condition)) and any(i >= width for i in columns_of(condition))
