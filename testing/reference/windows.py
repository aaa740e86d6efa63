"""Reference implementation of window functions over one partition.

Rows that are equal by ORDER BY are sorted by their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tailgate.sql import plan
from testing.reference.aggregates import Member, total
from testing.reference.values import Failure, Value


@dataclass
class Seen:
    """A row of a partition.

    `member` says whether it passes FILTER. `sort` is its sort key, `key` the value of the first
    ORDER BY expression, `group` the number of its peer group.
    """

    arguments: tuple[Value, ...]
    member: bool
    sort: Any
    key: Value
    group: int = 0


def values(call: plan.WindowCall, order: tuple[plan.SortKey, ...], rows: Sequence[Seen]) -> list[Value | Failure]:
    """Returns the function's value, or its failure, for each of the sorted rows."""
    group = -1
    for i, row in enumerate(rows):
        group += i == 0 or rows[i - 1].sort != row.sort
        row.group = group
    out: list[Value | Failure] = []
    for i in range(len(rows)):
        try:
            out.append(value(call, order, rows, i))
        except Failure as e:
            out.append(e)
    return out


def value(call: plan.WindowCall, order: tuple[plan.SortKey, ...], rows: Sequence[Seen], i: int) -> Value:
    n, me = len(rows), rows[i]
    before = sum(r.group < me.group for r in rows)
    through = sum(r.group <= me.group for r in rows)
    match call.function.name:
        case "row_number":
            return i + 1
        case "rank":
            return before + 1
        case "dense_rank":
            return me.group + 1
        case "percent_rank":
            return before / (n - 1) if n > 1 else 0.0
        case "cume_dist":
            return through / n
        case "ntile":
            buckets = rows[0].arguments[0]
            if buckets is None:
                return None
            if buckets <= 0:
                raise Failure("22014", "argument of ntile must be greater than zero")
            size, more = divmod(n, buckets)
            return i // (size + 1) + 1 if i < more * (size + 1) else (i - more * (size + 1)) // size + more + 1
        case "lag" | "lead":
            offset = me.arguments[1] if len(me.arguments) > 1 else 1
            if offset is None:
                return None
            at = i - offset if call.function.name == "lag" else i + offset
            if 0 <= at < n:
                return rows[at].arguments[0]
            return me.arguments[2] if len(me.arguments) > 2 else None
    inside = [rows[j] for j in range(n) if framed(call.frame, order, rows, i, j)]
    if call.function.kind == "aggregate":
        members: list[Member] = [(r.arguments, (), 1) for r in inside if r.member]
        aggregate = plan.AggregateCall(call.function, call.arguments, call.type)
        if call.function.name == "array_agg":  # in the order of the frame
            return tuple(r.arguments[0] for r in inside if r.member) or None
        return total(aggregate, members)
    if call.function.name == "nth_value":
        at = me.arguments[1]
        if at is None:
            return None
        if at <= 0:
            raise Failure("22016", "argument of nth_value must be greater than zero")
        return inside[at - 1].arguments[0] if at <= len(inside) else None
    if not inside:
        return None
    return inside[0 if call.function.name == "first_value" else -1].arguments[0]


def framed(frame: plan.Frame, order: tuple[plan.SortKey, ...], rows: Sequence[Seen], i: int, j: int) -> bool:
    """Returns whether row j is in the frame of row i."""
    same = rows[i].group == rows[j].group
    excluded = {"no others": False, "current row": i == j, "group": same, "ties": same and i != j}[frame.exclude]
    return (
        not excluded and reaches(frame.mode, frame.start, order, rows, i, j) >= 0 and reaches(frame.mode, frame.end, order, rows, i, j) <= 0
    )


def reaches(mode: str, bound: plan.Bound, order: tuple[plan.SortKey, ...], rows: Sequence[Seen], i: int, j: int) -> int:
    """Compares row j with a bound of row i's frame: negative before it, 0 on it, positive after it."""
    if bound.kind in ("unbounded preceding", "unbounded following"):
        return 1 if bound.kind == "unbounded preceding" else -1
    offset: Any = 0
    if bound.offset is not None:
        assert isinstance(bound.offset, plan.Literal)
        offset = bound.offset.value
    if bound.kind == "preceding":
        offset = -offset
    if mode == "rows":
        return j - i - offset
    if mode == "groups" or bound.offset is None or rows[i].key is None or rows[j].key is None:
        return rows[j].group - rows[i].group - (offset if mode == "groups" else 0)
    sign = -1 if order[0].descending else 1
    distance = sign * (Fraction(rows[j].key) - Fraction(rows[i].key)) - Fraction(offset)
    return (distance > 0) - (distance < 0)
