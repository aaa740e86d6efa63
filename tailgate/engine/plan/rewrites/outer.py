"""Replaces outer joins with inner and anti joins where some of their rows are not needed.

    σ_{c}(L ⟕ R) = σ_{c}(L ⋈ R)                if c is not true where R's columns are NULL
    σ_{r IS NULL}(L ⟕ R) = π_{l, NULL}(L ▷ R)  if r is not NULL in rows of R that match

An anti join counts the rows of R instead of storing them.

The pass goes down the plan with the columns in which filters and joins above reject NULL.
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.engine.plan.analysis.scalars import NO_COLUMNS, rejects_null, strict_in
from tailgate.sql.plan import (
    Column,
    Distinct,
    Filter,
    IsNull,
    Join,
    JoinKind,
    Literal,
    Project,
    Reduce,
    Relation,
    SetOperation,
    Sort,
    UnionAll,
)
from tailgate.sql.plan.rewriting import conjunction, conjuncts
from tailgate.sql.plan.traversal import bottom_up, column, inputs, with_inputs

Columns = frozenset[int]


def anti_joins(relation: Relation) -> Relation:
    """Replaces left joins below `IS NULL` filters with anti joins."""
    return bottom_up(relation, _anti)


def _anti(relation: Relation) -> Relation:
    if not isinstance(relation, Filter) or not isinstance(relation.input, Join) or relation.input.kind != "left":
        return relation
    join = relation.input
    width = len(join.left.columns)
    present = NO_COLUMNS if join.condition is None else rejects_null(join.condition)
    present |= frozenset(width + i for i, f in enumerate(join.right.columns) if not f.nullable)
    conditions = conjuncts(relation.condition)
    null_tests = [
        c for c in conditions if isinstance(c, IsNull) and isinstance(c.argument, Column) and width <= c.argument.index in present
    ]
    if not null_tests:
        return relation
    nulls = tuple(Literal(None, f.type) for f in join.right.columns)
    alone = replace(join, kind="anti")
    rows = Project(alone, tuple(column(alone, i) for i in range(width)) + nulls, join.columns)
    rest = tuple(c for c in conditions if c not in null_tests)
    return Filter(rows, conjunction(rest)) if rest else rows


def narrow_outer_joins(relation: Relation) -> Relation:
    """Narrows outer joins whose rows with NULLs are not needed."""
    return _narrow(relation, NO_COLUMNS)


def _narrow(relation: Relation, rejected: Columns) -> Relation:
    """Narrows the outer joins of a plan.

    `rejected`: columns of the relation; a row with NULL in one of them has no effect above.
    """
    if isinstance(relation, Join):
        return _join(relation, rejected)
    match relation:
        case Filter(_, condition):
            below = rejected | rejects_null(condition)
        case Project(_, expressions):
            below = NO_COLUMNS.union(*(strict_in(e) for i, e in enumerate(expressions) if i in rejected))
        case Reduce(_, keys):
            below = NO_COLUMNS.union(*(strict_in(k) for i, k in enumerate(keys) if i in rejected))
        case Distinct() | Sort() | UnionAll() | SetOperation():
            below = rejected
        case _:
            below = NO_COLUMNS
    return with_inputs(relation, tuple(_narrow(i, below) for i in inputs(relation)))


def _join(join: Join, rejected: Columns) -> Relation:
    width = len(join.left.columns)
    right = any(i >= width for i in rejected)
    left = any(i < width for i in rejected)
    kind: JoinKind = join.kind
    if kind == "full" and (left or right):
        kind = "inner" if left and right else "left" if left else "right"
    elif (kind == "left" and right) or (kind == "right" and left):
        kind = "inner"
    condition_rejects = NO_COLUMNS if join.condition is None else rejects_null(join.condition)
    # For the side that may be extended with NULLs the join condition must not reject rows: that
    # would be another join.
    of_left = rejected | (condition_rejects if kind in ("inner", "right", "semi") else NO_COLUMNS)
    of_right = rejected | (condition_rejects if kind in ("inner", "left", "semi", "anti") else NO_COLUMNS)
    sides = (
        _narrow(join.left, frozenset(i for i in of_left if i < width)),
        _narrow(join.right, frozenset(i - width for i in of_right if i >= width)),
    )
    return with_inputs(join if kind == join.kind else replace(join, kind=kind), sides)
