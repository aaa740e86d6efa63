"""Estimates row counts of plans from those of their scans, to compare join orders.

    |L ⋈_{a = b} R| = |L| · |R| / max(V(a), V(b))          V: number of distinct values

V of a key is the number of rows. For other columns it is not known, and VALUES is assumed. A filter
on one side of a join removes the same share of the joined pairs, so V is taken before the filter.

Source: P. G. Selinger et al., Access Path Selection in a Relational Database Management System,
1979.
"""

from __future__ import annotations

from math import prod

from tailgate.engine.plan.analysis.keys import keys
from tailgate.engine.plan.analysis.scalars import equated
from tailgate.sql.plan import (
    ArrivalJoin,
    Closing,
    Column,
    Distinct,
    Filter,
    Generate,
    InList,
    Join,
    Limit,
    Literal,
    Project,
    Recursive,
    Reduce,
    Relation,
    Scalar,
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
from tailgate.sql.plan.rewriting import columns_of, columns_of_all, conjuncts

ROWS = 1000.0  # of a relation without known size
VALUES = 200.0  # distinct values of a column that is not a key (PostgreSQL assumes the same)
PASSING = 1 / 3  # share of rows that pass a condition other than an equality
EACH = 3.0  # rows that a set-returning function returns per input row


def rows(relation: Relation) -> float:
    """Returns the estimated number of rows."""
    match relation:
        case Scan(rows=known):
            return float(known) if known else ROWS
        case Values(rows=written):
            return float(len(written))
        case Filter(input, condition):
            return rows(input) * prod(_passing(c, input) for c in conjuncts(condition))
        case Project(input) | Sort(input) | Window(input) | Distinct(input) | Closing(input):
            return rows(input)
        case Limit(input, Literal(value=int(count))) | TopK(input, (), _, Literal(value=int(count))):
            return min(rows(input), float(count))
        case TopK(input, groups, _, Literal(value=int(count))):
            return min(rows(input), float(count) * values(input, columns_of_all(groups)))
        case Limit(input) | TopK(input):
            return rows(input)
        case Reduce(input, groups):
            return min(rows(input), values(input, columns_of_all(groups))) if groups else 1.0
        case UnionAll(each):
            return sum(map(rows, each))
        case SetOperation(left) | ArrivalJoin(left) | WithinJoin(left):
            return rows(left)
        case Generate(input):
            return rows(input) * EACH
        case Join(left, right, kind):
            if kind in ("semi", "anti"):
                return rows(left) / 2
            pairs = _pairs(relation)
            return max(pairs, rows(left) * (kind in ("left", "full")), rows(right) * (kind in ("right", "full")))
        case Recursive() | WorkingTable():
            return ROWS


def values(relation: Relation, columns: frozenset[int]) -> float:
    """Returns the estimated number of distinct combinations of values in these columns."""
    if not columns:
        return 1.0
    match relation:
        case Filter(input) | Sort(input) | Limit(input) | TopK(input):
            return values(input, columns)
        case Project(input, expressions):
            return values(input, columns_of_all(expressions[i] for i in columns))
        case Reduce(input, groups) if max(columns) < len(groups):
            return min(rows(relation), values(input, columns_of_all(groups[i] for i in columns)))
        case Join(left, right):
            width = len(left.columns)
            lefts, rights = frozenset(i for i in columns if i < width), frozenset(i - width for i in columns if i >= width)
            return values(left, lefts) * values(right, rights)
        case _:
            row_count = rows(relation)
            return row_count if any(key <= columns for key in keys(relation)) else min(row_count, VALUES ** len(columns))


def _passing(condition: Scalar, input: Relation) -> float:
    """Returns the estimated share of rows for which a condition is true."""
    sides = equated(condition)
    if sides is not None and len(of := [s for s in sides if columns_of(s)]) == 1:
        return 1 / max(1.0, values(input, columns_of(of[0])))
    if isinstance(condition, InList) and isinstance(condition.argument, Column):
        return min(1.0, len(condition.items) / max(1.0, values(input, columns_of(condition.argument))))
    return PASSING


def _pairs(join: Join) -> float:
    """Returns the estimated number of pairs for which the join condition is true."""
    width = len(join.left.columns)
    lefts, rights, others = set[int](), set[int](), 0
    for condition in conjuncts(join.condition):
        used = [columns_of(s) for s in equated(condition) or ()]
        used.sort(key=lambda c: min(c, default=0))
        if len(used) == 2 and used[0] and max(used[0]) < width <= min(used[1], default=0):
            lefts |= used[0]
            rights |= {i - width for i in used[1]}
        else:
            others += 1
    different = max(values(join.left, frozenset(lefts)), values(join.right, frozenset(rights)), 1.0)
    return rows(join.left) * rows(join.right) / different * PASSING**others
