"""Gives the rows of recursive queries their round, by which a maintained fixpoint stores what derives a row.

    Recursive(base, step) = π_columns(Recursive(base × {0}, step'))

step' has the rows of step, each with the round of the working table that it follows from, as its last
column. A step reads the working table of one round at a time, so every node over it keeps rounds
apart: the round is part of the keys of groups and partitions, and working tables are joined by it.

In a UNION of types whose equal values may have different stored forms, base and step' also have the sort keys of these
columns after the round.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import INT4, Field
from tailgate.sql.plan import (
    Distinct,
    Filter,
    Generate,
    IsDistinct,
    Join,
    Limit,
    Literal,
    Not,
    Project,
    Recursive,
    Reduce,
    Relation,
    SetOperation,
    Sort,
    TopK,
    UnionAll,
    Window,
    WorkingTable,
)
from tailgate.sql.plan.rewriting import conjunction, conjuncts, moved
from tailgate.sql.plan.sort_keys import has_equal_forms, sort_key
from tailgate.sql.plan.traversal import bottom_up, column, inputs, memoize_by_object, project, take, walk, with_inputs

ROUND = Field("round", INT4, False)
HINT = "Use it in a SELECT, or in a plain view."


def number_rounds(relation: Relation) -> Relation:
    """Gives the rows of each recursive query their round. Raises 0A000 for steps that cannot be maintained."""
    # new numbers, and negative ones: those of the binder start at 0 in each plain view that the query reads
    numbers = count(-1, -1)

    def rule(node: Relation) -> Relation:
        if not isinstance(node, Recursive) or node.numbered:
            return node
        if any(isinstance(n, WorkingTable) and n.number >= 0 and n.number != node.number for n in walk(node)):
            shown = f'recursive query "{node.name}", which reads the rows of another one, is not supported in a materialized view'
            raise FeatureNotSupported(shown, hint=HINT)
        return take(_numbered(node, next(numbers)), tuple(range(len(node.columns))))

    return bottom_up(relation, rule)


def _numbered(node: Recursive, number: int) -> Recursive:
    """Returns the query with rounds in its base, its working table, its step and its result."""
    columns = tuple(column(node.base, i) for i in range(len(node.base.columns)))
    base: Relation = project(node.base, (*columns, Literal(0, INT4)), (*node.base.columns, ROUND))

    @memoize_by_object
    def rounds(part: Relation) -> Relation | None:
        if isinstance(part, WorkingTable):
            _check_types(node, part)
            return replace(part, number=number, columns=(*part.columns, ROUND))
        if isinstance(part, Recursive):
            return None
        below = tuple(map(rounds, inputs(part)))
        if all(b is None for b in below):
            return None
        match part:
            case Join():
                return _join(node, part, *below)
            case UnionAll() | SetOperation():
                return _sides(node, part, below)
            case _:
                (input,) = below
                assert input is not None
                return _with_round(node, part, input)

    step = rounds(node.step)
    assert step is not None, "the binder has checked that the step reads the working table"
    if not node.all:
        base, step = _with_sort_keys(base), _with_sort_keys(step)
    return replace(node, number=number, base=base, step=step, columns=(*node.columns, ROUND), numbered=True)


def _with_sort_keys(rows: Relation) -> Relation:
    """Returns the rows with the sort keys of columns whose equal values may have different stored forms as last columns."""
    keys = [sort_key(column(rows, i)) for i, f in enumerate(rows.columns) if has_equal_forms(f.type)]
    if not keys:
        return rows
    columns = (*(column(rows, i) for i in range(len(rows.columns))), *keys)
    return project(rows, columns, (*rows.columns, *(Field(f"key{i}", key.type) for i, key in enumerate(keys))))


def _check_types(query: Recursive, working: WorkingTable) -> None:
    """Raises 0A000 if the working table would not have the stored type of the result: the scale of a numeric changes."""
    for i, (before, after) in enumerate(zip(working.columns, query.columns, strict=True), 1):
        if before.type.spark != after.type.spark:
            shown = f'column {i} of recursive query "{query.name}" in a materialized view has numerics of different scales'
            raise FeatureNotSupported(shown, hint="Cast it to the same numeric(p, s) in both terms.")


def _with_round(query: Recursive, node: Relation, input: Relation) -> Relation:
    """Returns a node of a step over its input with rounds. Raises 0A000."""
    width = len(input.columns) - 1
    number = column(input, width)
    match node:
        case Filter() | Distinct() | Sort():
            return with_inputs(node, (input,))
        case Project(_, expressions, columns):
            return Project(input, (*expressions, number), (*columns, ROUND))
        case Generate():
            return _last(with_inputs(node, (input,)), width)
        case Window(_, partition):
            return _last(replace(node, input=input, partition=(*partition, number)), width)
        case TopK(_, keys):
            return replace(node, input=input, keys=(*keys, number))
        case Limit(_, count, offset, position):
            order = node.input.keys if isinstance(node.input, Sort) else ()
            return TopK(input, (number,), order, count, offset, position=position)
        case Reduce(_, keys, aggregates) if keys:
            return _last(Reduce(input, (*keys, number), aggregates), len(keys))
        case Reduce():
            raise _refused(query, "aggregated as a whole")
        case _:
            raise _refused(query, f"in a {type(node).__name__}")


def _sides(query: Recursive, node: UnionAll | SetOperation, below: tuple[Relation | None, ...]) -> Relation:
    """Returns a set operation of inputs with rounds. Raises 0A000 if an input has no rounds, and is None."""
    sides = tuple(b for b in below if b is not None)
    if len(sides) < len(below):
        raise _refused(query, f"on one side of {'UNION' if isinstance(node, UnionAll) else node.kind.upper()}")
    columns = (*node.columns, ROUND)
    if isinstance(node, UnionAll):
        return UnionAll(sides, columns)
    return SetOperation(sides[0], sides[1], node.kind, node.all, columns)


def _join(query: Recursive, join: Join, left: Relation | None, right: Relation | None) -> Relation:
    """Returns a join with the round of the side or the sides that have one."""
    widths = len(join.left.columns), len(join.right.columns)
    kind, condition = join.kind, join.condition
    if left is None:
        assert right is not None
        if kind in ("left", "full", "semi", "anti"):
            raise _refused(query, f"on the right of a {kind} join")
        return replace(join, right=right)
    if condition is not None:
        condition = moved(condition, widths[0], 1)
    if right is None:
        if kind in ("right", "full"):
            raise _refused(query, f"on the left of a {kind} join")
        joined = replace(join, left=left, condition=condition)
        return joined if kind in ("semi", "anti") else _last(joined, widths[0])
    if kind == "full":
        raise _refused(query, "in a full join")
    rounds = column(left, widths[0]), column(right, widths[1], widths[0] + 1)
    condition = conjunction((*conjuncts(condition), Not(IsDistinct(*rounds))))
    joined = Join(left, right, "inner" if kind == "cross" else kind, condition, join.position)
    if kind in ("semi", "anti"):
        return joined
    of = widths[0] + 1 + widths[1] if kind == "right" else widths[0]
    return take(joined, (*range(widths[0]), *(widths[0] + 1 + i for i in range(widths[1])), of))


def _last(node: Relation, position: int) -> Relation:
    """Moves the round from a position to the end."""
    return take(node, (*(i for i in range(len(node.columns)) if i != position), position))


def _refused(query: Recursive, place: str) -> FeatureNotSupported:
    shown = f'recursive query "{query.name}" {place} in its recursive term is not supported in a materialized view'
    return FeatureNotSupported(shown, hint=HINT)
