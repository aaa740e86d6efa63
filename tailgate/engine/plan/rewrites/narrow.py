"""Computes expressions over one side of a join before the join, if the join then stores less.

    γ_{f(l)}(L ⋈ R) = γ_x(π_{l, x=f(l)}(L) ⋈ R)

For example, the join stores `data -> 'n'` instead of `data` if nothing else reads `data`.

Rows that differ only in unused parts become equal, and a join stores equal rows as one row with a
weight. For page views by the hour it stores one row per user and hour.

An expression moves only if it cannot fail, because below the join it is evaluated for rows without
a match, too. It must also read a column that is not used elsewhere above the join. `prune_columns`
removes this column after this pass.
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.engine.plan.analysis.labels import label, names
from tailgate.engine.plan.analysis.scalars import renumber
from tailgate.lake.types import Field
from tailgate.sql.plan import Column, Filter, Join, Project, Reduce, Relation, Scalar
from tailgate.sql.plan.may_fail import fallible
from tailgate.sql.plan.rewriting import columns_of, conjunction, conjuncts, parts, rebuild, shifted
from tailgate.sql.plan.traversal import inputs, scalars_of, with_inputs, with_scalars

Moved = dict[Scalar, int]  # an expression, and the column that replaces it


def narrow_joins(relation: Relation) -> Relation:
    """Computes expressions below joins if this narrows the rows that a join stores."""
    if isinstance(relation, Project | Reduce):
        relation = _narrowed(relation)
    return with_inputs(relation, tuple(narrow_joins(i) for i in inputs(relation)))


def _narrowed(reader: Project | Reduce) -> Relation:
    """Rewrites the reader of a join so that each side computes the expressions that may move."""
    below = reader.input
    conditions: tuple[Scalar, ...] = ()
    if isinstance(below, Filter):
        conditions, below = conjuncts(below.condition), below.input
    if not isinstance(below, Join) or below.kind not in ("inner", "cross"):
        return reader
    read = (*scalars_of(reader), *conditions)
    width, whole = len(below.left.columns), len(below.columns)
    condition_columns = frozenset[int]() if below.condition is None else columns_of(below.condition)
    plain = condition_columns | frozenset(c for scalar in read for c in _plain(scalar, width))
    left = _candidates(read, plain, 0, width)
    right = _candidates(read, plain, width, whole)
    if not left and not right:
        return reader
    place = {i: i if i < width else i + len(left) for i in range(whole)}
    one = _with(below.left, left)
    other = _with(below.right, tuple(shifted(e, -width) for e in right))
    moved: Moved = {e: width + n for n, e in enumerate(left)} | {e: whole + len(left) + n for n, e in enumerate(right)}
    on = None if below.condition is None else renumber(below.condition, place)
    joined: Relation = Join(one, other, below.kind, on, below.position)
    if conditions:
        joined = Filter(joined, conjunction(tuple(_reading(c, moved, place) for c in conditions)))
    return _rebuilt(reader, joined, moved, place)


def _candidates(read: tuple[Scalar, ...], plain: frozenset[int], start: int, end: int) -> tuple[Scalar, ...]:
    """Returns the expressions over one side's columns that may move, each once."""
    candidates: dict[Scalar, None] = {}

    def visit(scalar: Scalar) -> None:
        used = columns_of(scalar)
        if not isinstance(scalar, Column) and used and all(start <= i < end for i in used) and not fallible(scalar):
            if used - plain:
                candidates[scalar] = None
            return
        for part in parts(scalar):
            visit(part)

    for scalar in read:
        visit(scalar)
    return tuple(candidates)


def _plain(scalar: Scalar, width: int) -> frozenset[int]:
    """Returns columns that are read outside expressions that may move."""
    used = columns_of(scalar)
    one_side = all(i < width for i in used) or all(i >= width for i in used)
    if not isinstance(scalar, Column) and used and one_side and not fallible(scalar):
        return frozenset()
    if isinstance(scalar, Column):
        return used
    return frozenset(i for part in parts(scalar) for i in _plain(part, width))


def _with(side: Relation, expressions: tuple[Scalar, ...]) -> Relation:
    if not expressions:
        return side
    own = tuple(Column(i, f.type) for i, f in enumerate(side.columns))
    fields = tuple(Field(label(e, names(side)), e.type) for e in expressions)
    return Project(side, own + expressions, side.columns + fields)


def _reading(scalar: Scalar, moved: Moved, place: dict[int, int]) -> Scalar:
    """Returns the scalar over the columns of the new join."""
    if scalar in moved:
        return Column(moved[scalar], scalar.type)
    if isinstance(scalar, Column):
        return replace(scalar, index=place[scalar.index])
    return rebuild(scalar, lambda s: _reading(s, moved, place))


def _rebuilt(reader: Project | Reduce, input: Relation, moved: Moved, place: dict[int, int]) -> Relation:
    def new(scalar: Scalar) -> Scalar:
        return _reading(scalar, moved, place)

    if isinstance(reader, Project):
        return Project(input, tuple(map(new, reader.expressions)), reader.columns)
    return with_scalars(Reduce(input, reader.keys, reader.aggregates), new)
