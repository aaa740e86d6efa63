"""Moves filters and projections above joins of relations, so that views with other filters and columns share the join.

    σ_a(π_x(R)) ⋈ σ_b(π_y(S)) = π_{x, y}(σ_{a ∧ b}(π_X(R) ⋈ π_Y(S)))       X contains x and the columns of a; Y likewise
    σ_a(π_x(R)) ⟕ π_y(S) = π_{x, y}(σ_a(π_X(R) ⟕ π_Y(S)))

A join stores its sides and looks up the partners of each changed row. Ten views with ten filters store the sides and
look up the partners ten times. With the filters above it, one join serves all of them.

`Scan.join_columns` has X and Y. `views.shared_joins` chooses them when a view is created; without them a join stays as it is. The
other passes move filters and projections the other way, so this pass follows them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tailgate.engine.plan.analysis.join_sides import WHOLE
from tailgate.engine.plan.analysis.scalars import renumber
from tailgate.engine.plan.rewrites.equijoin import matching
from tailgate.sql.plan import Column, Filter, Join, Project, Relation, Scalar, Scan
from tailgate.sql.plan.may_fail import fallible
from tailgate.sql.plan.rewriting import columns_of_all, conjunction, conjuncts, shifted
from tailgate.sql.plan.traversal import bottom_up, take


@dataclass(frozen=True, slots=True)
class Side:
    """A side of a join: columns of the rows of a relation that pass conditions.

    `columns`: their positions in the scan. `conditions`: over the columns of the scan; they cannot fail.
    """

    scan: Scan
    columns: tuple[int, ...]
    conditions: tuple[Scalar, ...]

    @property
    def needed(self) -> frozenset[int]:
        """Returns the columns of the scan that the join or the conditions read."""
        return frozenset(self.columns) | columns_of_all(self.conditions)


def join_sides(relation: Relation) -> tuple[Side, Side] | None:
    """Returns the sides of a join that views can share, or None.

    It is an inner or left join by equal columns, its sides are filters and columns of relations, and the filters may move above it.
    """
    if not isinstance(relation, Join) or relation.kind not in ("inner", "left"):
        return None
    on = matching(relation)
    if not on.left or on.rest:
        return None
    left, right = _side(relation.left), _side(relation.right)
    if left is None or right is None or (right.conditions and not WHOLE[relation.kind][1]):
        return None
    return left, right


def _side(relation: Relation) -> Side | None:
    """Returns the filters and columns of a relation, or None if the input is anything else."""
    match relation:
        case Scan(columns=columns):
            return Side(relation, tuple(range(len(columns))), ())
        case Filter(input, condition) if (below := _side(input)) is not None:
            places = dict(enumerate(below.columns))
            conditions = tuple(renumber(c, places) for c in conjuncts(condition))
            return None if any(map(fallible, conditions)) else Side(below.scan, below.columns, below.conditions + conditions)
        case Project(input, expressions) if (below := _side(input)) is not None:
            positions = [below.columns[e.index] for e in expressions if isinstance(e, Column)]
            return Side(below.scan, tuple(positions), below.conditions) if len(positions) == len(expressions) else None
    return None


def is_shared(relation: Relation) -> bool:
    """Returns whether a join has the form in which views share it. Then it also stores its sides in the same form for all of them."""
    sides = join_sides(relation)
    return sides is not None and all(s.columns == s.scan.join_columns and not s.conditions for s in sides)


def share_joins(relation: Relation) -> Relation:
    """Moves the filters and projections of a join's sides above the join where the view shares it."""
    return bottom_up(relation, _shared)


def _shared(relation: Relation) -> Relation:
    sides = join_sides(relation)
    if sides is None or is_shared(relation):
        return relation
    assert isinstance(relation, Join)
    left, right = sides
    if left.scan.join_columns is None or right.scan.join_columns is None:
        return relation
    if not left.needed <= set(left.scan.join_columns) or not right.needed <= set(right.scan.join_columns):
        return relation
    one, other = take(left.scan, left.scan.join_columns), take(right.scan, right.scan.join_columns)
    width = len(one.columns)
    left_places = {column: i for i, column in enumerate(left.scan.join_columns)}
    right_places = {column: i for i, column in enumerate(right.scan.join_columns)}
    places = [left_places[c] for c in left.columns] + [width + right_places[c] for c in right.columns]
    assert relation.condition is not None
    joined: Relation = Join(one, other, relation.kind, renumber(relation.condition, dict(enumerate(places))), relation.position)
    conditions = tuple(renumber(c, left_places) for c in left.conditions)
    conditions += tuple(shifted(renumber(c, right_places), width) for c in right.conditions)
    if conditions:
        joined = Filter(joined, conjunction(conditions))
    return take(joined, tuple(places))
