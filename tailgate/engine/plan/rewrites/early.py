"""Early aggregation: aggregates one side of a join per join key, before the join.

    γ_{r; sum(l)}(L ⋈_k R) = γ_{r; sum(s)}(γ_{k; s = sum(l)}(L) ⋈_k R)

Example: for orders by the segment of their customer, the join stores one row per customer instead
of one per order, and a change of a customer is one change instead of one per order. A row of the
new side represents all rows of its group; each of these has the same matches.

The pass applies if all of these conditions hold:

- The aggregates read only one side.
- Their arguments cannot fail, because they are now evaluated for rows without a match, too.
- They can be combined exactly from partial results. This excludes sums of floating point, which are
  rounded once, and sums of numerics so wide that a part might overflow.
- The groups read only the other side and the join key.
- The join key is a key of the other side, so each row of that side matches at most one group.
- The aggregated side is known to have at least SAVED times as many rows as the other.

If rows are only counted, the pass is not needed: the join then stores equal rows as one row with a
weight (`compile`).

Source: W. P. Yan, P.-Å. Larson, Eager Aggregation and Lazy Aggregation, 1995.
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.engine.plan.analysis.estimate import rows
from tailgate.engine.plan.analysis.keys import keys
from tailgate.engine.plan.analysis.scalars import renumber
from tailgate.engine.plan.casts import cast_to
from tailgate.engine.plan.rewrites.equijoin import matching
from tailgate.lake.types import GENERAL, INT8, Type, numeric
from tailgate.sql.binder.types.overloads import function, numeric_as, operator, result, specialized
from tailgate.sql.plan import AggregateCall, Call, Coalesce, Column, Join, Literal, Project, Reduce, Relation, Scalar, Scan
from tailgate.sql.plan.may_fail import fallible
from tailgate.sql.plan.rewriting import columns_of, shifted
from tailgate.sql.plan.traversal import bottom_up, column, read_by, walk

# minimal ratio of rows of the aggregated side to rows of the other; below it, the additional
# aggregate costs more than it saves
SAVED = 10.0
# limits for a summed numeric: 10^12 values fit, and an average has all its digits
PRECISION_MAX, SCALE_MAX = 26, 8
WHOLE = frozenset({"int2", "int4", "int8"})
# aggregates that combine partial results with themselves
SELF = frozenset({"min", "max", "bool_and", "bool_or", "every", "bit_and", "bit_or", "bit_xor"})


def group_early(relation: Relation) -> Relation:
    """Aggregates a side of a join before the join wherever this is possible and worthwhile."""
    return bottom_up(relation, _early)


def _early(relation: Relation) -> Relation:
    if not isinstance(relation, Reduce) or not isinstance(relation.input, Join) or relation.input.kind != "inner":
        return relation
    join, on, width = relation.input, matching(relation.input), len(relation.input.left.columns)
    read = [i for call in relation.aggregates for s in read_by(call) for i in columns_of(s)]
    if not read or not on.left or on.rest or not all(map(_has_parts, relation.aggregates)):
        return relation
    if max(read) < width and _saves(join.left, on.left, join.right, on.right) and _by_key(relation, on.left, width):
        return _grouped(relation, join, on.left, 0)
    right = tuple(width + i for i in on.right)
    if min(read) >= width and _saves(join.right, on.right, join.left, on.left) and _by_key(relation, right, width):
        return _grouped(relation, join, on.right, width)
    return relation


def _by_key(relation: Reduce, key: tuple[int, ...], width: int) -> bool:
    """Returns whether the groups read only the join key of the side that the key belongs to."""
    ours = range(width) if key[0] < width else range(width, len(relation.input.columns))
    return all(i in key or i not in ours for group in relation.keys for i in columns_of(group))


def _saves(measured: Relation, key: tuple[int, ...], other: Relation, other_key: tuple[int, ...]) -> bool:
    """Returns whether the aggregated side is large enough, compared to the other side."""
    if not all(node.rows for side in (measured, other) for node in walk(side) if isinstance(node, Scan)):
        return False
    unique = any(k <= set(other_key) for k in keys(other)) and not any(k <= set(key) for k in keys(measured))
    return unique and rows(other) * SAVED <= rows(measured)


def _grouped(relation: Reduce, join: Join, key: tuple[int, ...], start: int) -> Relation:
    """Returns the plan with one side aggregated before the join.

    `key`: the key columns of that side, whose first column is at `start` in the join.
    """
    side = join.left if start == 0 else join.right
    calls = [_of_side(call, start) for call in relation.aggregates]
    parts_by_call = [_made_of(call) for call in calls]
    parts = tuple(dict.fromkeys(part for of in parts_by_call for part in of))
    groups = tuple(dict.fromkeys(key))
    before = Reduce(side, tuple(column(side, i) for i in groups), parts)
    place = {start + i: start + n for n, i in enumerate(groups)}
    if start == 0:
        place |= {len(side.columns) + i: len(before.columns) + i for i in range(len(join.right.columns))}
    else:
        place |= {i: i for i in range(start)}
    assert join.condition is not None
    left, right = (before, join.right) if start == 0 else (join.left, before)
    joined = Join(left, right, "inner", renumber(join.condition, place), join.position)
    wholes = tuple(_whole(part, column(joined, start + len(groups) + n)) for n, part in enumerate(parts))
    after = Reduce(joined, tuple(renumber(k, place) for k in relation.keys), wholes)
    width = len(relation.keys)
    totals = {part: column(after, width + n) for n, part in enumerate(parts)}
    results = (_result(call, [totals[p] for p in of], width > 0) for call, of in zip(calls, parts_by_call, strict=True))
    return Project(after, (*(column(after, i) for i in range(width)), *results), relation.columns)


def _has_parts(call: AggregateCall) -> bool:
    """Returns whether the result of an aggregate can be combined exactly from partial results."""
    name = call.function.name
    if call.order or any(map(fallible, read_by(call))):
        return False
    if name in SELF:
        return call.arguments[0].type.name != "bit"  # bit strings of different lengths are an error
    return not call.distinct and (name == "count" or (name in ("sum", "avg") and _summed(call.arguments[0].type)))


def _summed(type: Type) -> bool:
    """Returns whether a sum of as many values as there can be is exact."""
    if type.general:
        return False
    precision, scale = type.decimal if type.name == "numeric" else (0, 0)
    return type.name in WHOLE or (type.name == "numeric" and precision <= PRECISION_MAX and scale <= SCALE_MAX)


def _of_side(call: AggregateCall, start: int) -> AggregateCall:
    """Returns the call over the columns of one side."""
    condition = None if call.filter is None else shifted(call.filter, -start)
    return replace(call, arguments=tuple(shifted(a, -start) for a in call.arguments), filter=condition, position=None)


def _made_of(call: AggregateCall) -> tuple[AggregateCall, ...]:
    """Returns the aggregates from which the result of a call is computed: itself, except for avg."""
    if call.function.name != "avg":
        return (call,)
    total = function("sum", tuple(a.type for a in call.arguments), None)
    count = function("count", tuple(a.type for a in call.arguments), None)
    return (
        AggregateCall(total, call.arguments, result(total, call.arguments), filter=call.filter),
        AggregateCall(count, call.arguments, INT8, filter=call.filter),
    )


def _whole(part: AggregateCall, of: Column) -> AggregateCall:
    """Returns the aggregate that combines partial results of `part`, which are in column `of`."""
    if part.function.name in ("count", "sum"):
        return AggregateCall(function("sum", (of.type,), None), (of,), part.type)
    return AggregateCall(part.function, (of,), part.type)


def _result(call: AggregateCall, of: list[Column], grouped: bool) -> Scalar:
    """Returns the result of a call from the combined values `of` its parts."""
    if call.function.name == "avg":
        if call.type.general:
            quotient, parts, type = specialized(operator("/", (GENERAL, GENERAL), None), tuple(numeric_as(c, GENERAL) for c in of))
            return Call(quotient, parts, type)
        total, count = (cast_to(c, c.type if c.type.name == "numeric" else numeric(0)) for c in of)
        return Call(operator("/", (total.type, count.type), None), (total, count), call.type)
    if call.function.name == "count" and not grouped:
        return Coalesce((of[0], Literal(0, INT8)), INT8)  # no partial results: count is 0
    return of[0]
