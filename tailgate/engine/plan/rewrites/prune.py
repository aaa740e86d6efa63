"""Removes unused columns as early as possible, because a join stores every column of its inputs.

π_a(L ⋈_k R) = π_a(π_{a_l, k}(L) ⋈_k π_{a_r, k}(R))
π_l(L ⟕_k R) = π_l(L)                                  if k is a key of R
"""

from __future__ import annotations

from dataclasses import replace

from typing_extensions import assert_never

from tailgate.engine.plan.analysis.keys import keys
from tailgate.engine.plan.analysis.scalars import renumber
from tailgate.engine.plan.rewrites.equijoin import matching
from tailgate.sql.plan import (
    ArrivalJoin,
    Closing,
    Distinct,
    Filter,
    Generate,
    Join,
    Limit,
    Project,
    Recursive,
    Reduce,
    Relation,
    Scan,
    SetOperation,
    Sort,
    TopK,
    UnionAll,
    Values,
    Window,
    WithinJoin,
    WorkingTable,
)
from tailgate.sql.plan.may_fail import fallible
from tailgate.sql.plan.rewriting import columns_of, columns_of_all, conjuncts
from tailgate.sql.plan.traversal import inputs, read_by, scalars_of, take, with_inputs, with_scalars

Places = dict[int, int]  # old position of a column → new position


def prune_columns(relation: Relation) -> Relation:
    """Removes unused columns inside a plan; the result has the same columns in the same order."""
    everything = range(len(relation.columns))
    pruned, places = _prune(relation, frozenset(everything))
    return take(pruned, tuple(places[i] for i in everything))


def _prune(relation: Relation, needed: frozenset[int]) -> tuple[Relation, Places]:
    """Returns a relation with the needed columns, and perhaps others, and the columns' new positions."""
    match relation:
        case Scan() | Values() | WorkingTable() | Distinct():
            return _untouched(relation)
        case Filter(input, condition):
            below, places = _prune(input, needed | columns_of(condition))
            return _same(relation, input, below) or Filter(below, renumber(condition, places)), places
        case Project(input, expressions, columns):
            positions = sorted(needed) or [0][: len(expressions)]
            below, places = _prune(input, columns_of_all(expressions[i] for i in positions))
            if below is input and len(positions) == len(expressions):
                return relation, _identity(relation)
            exact = tuple(renumber(expressions[i], places) for i in positions)
            return Project(below, exact, tuple(columns[i] for i in positions)), {old: new for new, old in enumerate(positions)}
        case Join(left, kind="left") if max(needed, default=0) < len(left.columns) and _at_most_one(relation):
            return _prune(left, needed)
        case Join(left, right, kind, condition, position):
            one, other, places = _sides(relation, needed | (columns_of(condition) if condition is not None else frozenset()))
            if one is left and other is right:
                return relation, _identity(relation)
            joined = Join(one, other, kind, None if condition is None else renumber(condition, places), position)
            return joined, {old: new for old, new in places.items() if old < len(left.columns)} if kind in ("semi", "anti") else places
        case ArrivalJoin(kind=kind):
            one, other, places = _sides(relation, needed | columns_of(relation.condition))
            if one is relation.left and other is relation.right:
                return relation, places
            return ArrivalJoin(one, other, kind, renumber(relation.condition, places), relation.position), places
        case WithinJoin():
            return _within_join(relation, needed)
        case Closing():
            return _closing(relation, needed)
        case Reduce(input, keys, aggregates):
            call_positions = [i for i in range(len(aggregates)) if len(keys) + i in needed]
            if not keys and not call_positions:
                call_positions = [0][: len(aggregates)]
            calls = tuple(aggregates[i] for i in call_positions)
            ends = () if relation.retention is None else (relation.retention.end,)
            below, places = _prune(input, columns_of_all([*keys, *(s for c in calls for s in read_by(c)), *ends]))
            if below is input and len(calls) == len(aggregates):
                return relation, _identity(relation)
            out = {i: i for i in range(len(keys))} | {len(keys) + old: len(keys) + new for new, old in enumerate(call_positions)}
            return with_scalars(replace(relation, input=below, aggregates=calls), lambda s: renumber(s, places)), out
        case UnionAll(each, columns):
            positions = sorted(needed)
            branches = tuple(prune_columns(take(i, tuple(positions))) for i in each)
            if all(a is b for a, b in zip(branches, each, strict=True)):
                return relation, _identity(relation)
            return UnionAll(branches, tuple(columns[i] for i in positions)), {old: new for new, old in enumerate(positions)}
        case Sort(input, keys, position):
            below, places = _prune(input, needed | columns_of_all(k.expression for k in keys))
            moved = with_scalars(Sort(below, keys, position), lambda s: renumber(s, places))
            return _same(relation, input, below) or moved, places
        case Limit(input, count, offset, position):
            below, places = _prune(input, needed)
            return _same(relation, input, below) or Limit(below, count, offset, position), places
        case TopK() | Window() | Generate() | SetOperation() | Recursive():
            return _untouched(relation)  # all columns determine which rows come first, or are equal
        case _:
            assert_never(relation)


def _closing(closing: Closing, needed: frozenset[int]) -> tuple[Relation, Places]:
    below, places = _exactly(closing.input, needed | columns_of_all(scalars_of(closing)))
    moved = with_scalars(replace(closing, input=below), lambda s: renumber(s, places))
    return _same(closing, closing.input, below) or moved, places


def _within_join(join: WithinJoin, needed: frozenset[int]) -> tuple[Relation, Places]:
    width = len(join.left.columns) + len(join.right.columns)
    one, other, places = _sides(join, frozenset(i for i in needed if i < width) | columns_of_all(scalars_of(join)))
    places |= {width: len(one.columns) + len(other.columns)}
    if one is join.left and other is join.right:
        return join, places
    return with_scalars(replace(join, left=one, right=other), lambda s: renumber(s, places)), places


def _sides(join: Join | ArrivalJoin | WithinJoin, read: frozenset[int]) -> tuple[Relation, Relation, Places]:
    """Returns the sides of a join with the columns that are read, and the new positions of these."""
    width = len(join.left.columns)
    one, one_places = _exactly(join.left, frozenset(i for i in read if i < width))
    other, other_places = _exactly(join.right, frozenset(i - width for i in read if i >= width))
    return one, other, one_places | {width + old: len(one.columns) + new for old, new in other_places.items()}


def _at_most_one(join: Join) -> bool:
    """Returns whether each row of the left has at most one match, and matching cannot fail."""
    pairs = matching(join)
    return any(key <= set(pairs.right) for key in keys(join.right)) and not any(map(fallible, conjuncts(join.condition)))


def _exactly(relation: Relation, needed: frozenset[int]) -> tuple[Relation, Places]:
    """Prunes like `_prune`, to exactly the needed columns. If none is needed, one is kept."""
    positions = sorted(needed) or [0][: len(relation.columns)]
    pruned, places = _prune(relation, frozenset(positions))
    return take(pruned, tuple(places[i] for i in positions)), {old: new for new, old in enumerate(positions)}


def _untouched(relation: Relation) -> tuple[Relation, Places]:
    """Returns the relation with pruned inputs; all its columns stay."""
    below = with_inputs(relation, tuple(prune_columns(i) for i in inputs(relation)))
    return below, _identity(relation)


def _same(relation: Relation, before: Relation, after: Relation) -> Relation | None:
    """Returns the relation if its input has not changed, otherwise None."""
    return relation if before is after else None


def _identity(relation: Relation) -> Places:
    return {i: i for i in range(len(relation.columns))}
