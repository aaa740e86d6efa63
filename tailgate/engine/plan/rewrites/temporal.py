"""Temporal filters: conditions on the clock, and the times between which they hold for a row.

    now() < ts + interval '5 minutes'        until ⌈ts + 5 min⌉
    ts >= now() - interval '1 hour'          until ⌊ts + 1 h⌋ + 1
    mz_now() >= a AND mz_now() < b           from ⌈a⌉ until ⌈b⌉

A condition is solved for the clock by moving all other terms to the other side. Tick times are
whole milliseconds, so a bound is the first millisecond at which the condition holds, or no longer
holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from tailgate.engine.plan.analysis.join_sides import MATCHED
from tailgate.engine.plan.analysis.scalars import SWAPPED
from tailgate.lake.errors import FeatureNotSupported, TailgateError
from tailgate.lake.types import INT8, INTERVAL, Type
from tailgate.sql.binder.types.overloads import fixed, operator, result
from tailgate.sql.functions.entry import Function, strict
from tailgate.sql.plan import Call, Filter, Join, Literal, Relation, Scalar
from tailgate.sql.plan.rewriting import columns_of, conjunction, conjuncts, shifted
from tailgate.sql.plan.rewriting import walk as parts_of
from tailgate.sql.plan.traversal import bottom_up, scalars_of, walk

CLOCKS = frozenset(
    "now current_timestamp transaction_timestamp statement_timestamp localtimestamp current_date current_time localtime mz_now "
    "mz_logical_timestamp".split()
)
WITHOUT_BOUNDS = frozenset(("current_date", "current_time", "localtime"))  # clocks with which a row cannot be compared in a view
INVERSE = {"+": "-", "-": "+"}
HINT = "Compare it with an expression of the row in WHERE, such as now() < ts + interval '5 minutes', joined to others by AND."

# decimal places of a time in seconds
MILLISECONDS = 3
EXACT = frozenset({("timestamptz", "timestamp"), ("timestamp", "timestamptz"), ("numeric", "int8"), ("numeric", "float8")})

DAY_US = 86_400_000_000
# for comparisons of intervals
MONTH_DAYS = 30

# milliseconds; later times are treated as infinite
FAR = "4000000000000000000"


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound on the clock: a time in milliseconds, NULL if the condition never holds for the row."""

    kind: OneOf["from", "until"]
    time: Scalar


def reads_clock(scalar: Scalar) -> bool:
    """Returns whether a scalar reads the clock."""
    return _clock(scalar) is not None


def extract_temporal_filters(relation: Relation) -> Relation:
    """Turns the parts of join conditions that read the clock into filters.

    The filters are placed above an inner join. For other joins they are placed on a side, if that
    does not change the result.
    """

    def rule(node: Relation) -> Relation:
        if not isinstance(node, Join) or node.condition is None or not reads_clock(node.condition):
            return node
        timed = tuple(c for c in conjuncts(node.condition) if reads_clock(c))
        others = tuple(c for c in conjuncts(node.condition) if not reads_clock(c))
        if node.kind != "inner":
            return _push_to_sides(node, timed, others)
        join = replace(node, condition=conjunction(others)) if others else replace(node, kind="cross", condition=None)
        return Filter(join, conjunction(timed))

    return bottom_up(relation, rule)


def _push_to_sides(join: Join, timed: tuple[Scalar, ...], others: tuple[Scalar, ...]) -> Relation:
    """Moves clock conditions on one side of a join to a filter of that side, if that is equivalent.

    The others stay in the join condition; `check` rejects them.
    """
    width = len(join.left.columns)
    left = tuple(c for c in timed if MATCHED[join.kind][0] and max(columns_of(c), default=width) < width)
    right = tuple(c for c in timed if MATCHED[join.kind][1] and min(columns_of(c), default=0) >= width)
    stay = tuple(c for c in timed if c not in left and c not in right)
    below = Filter(join.left, conjunction(left)) if left else join.left
    other = Filter(join.right, conjunction(tuple(shifted(c, -width) for c in right))) if right else join.right
    return replace(join, left=below, right=other, condition=conjunction(others + stay))


def check_clock_reads(relation: Relation) -> None:
    """Raises 0A000 if the clock is read outside a filter."""
    for node in walk(relation):
        for scalar in scalars_of(node):
            if not isinstance(node, Filter) and (call := _clock(scalar)) is not None:
                raise _unsupported(f"{call.function.name} outside WHERE", call.position)


def bounds(condition: Scalar) -> tuple[Bound, ...]:
    """Returns the bounds between which a condition holds. Raises 0A000 if it cannot be solved."""
    match condition:
        case Call(function, (left, right), position=at) if function.name in SWAPPED and function.kind == "operator":
            if reads_clock(left) and reads_clock(right):
                raise _unsupported("the clock on both sides of a comparison", at)
            if reads_clock(right):
                return tuple(_solve(right, SWAPPED[function.name], left))
            return tuple(_solve(left, function.name, right))
    call = _clock(condition)
    raise _unsupported("a condition on the clock other than a comparison", call.position if call is not None else None)


def _clock(scalar: Scalar) -> Call | None:
    """Returns the first call of a clock function in a scalar, or None."""
    calls = (s for s in parts_of(scalar) if isinstance(s, Call) and s.function.name in CLOCKS and not s.arguments)
    return next(calls, None)


def _unsupported(what: str, at: int | None) -> TailgateError:
    """Returns the error for an unsupported use of the clock."""
    return FeatureNotSupported(f"{what} in a materialized view is not supported", hint=HINT, position=at)


def _solve(clock: Scalar, sign: str, other: Scalar) -> Iterator[Bound]:
    """Yields the bounds for `clock sign other`, where only `clock` reads the clock."""
    other = fixed(other)
    match clock:
        case Call(function, ()) if function.name in CLOCKS - WITHOUT_BOUNDS:
            yield from _clock_bounds(sign, other, other.type.name)
        case Call(function, (inner,)) if function.kind == "cast" and _exact(inner.type, clock.type):
            yield from _solve(inner, sign, other)
        case Call(function, (Call(inner, ()),)) if function.name in ("extract:epoch", "date_part:epoch") and inner.name in CLOCKS:
            yield from _clock_bounds(sign, other, "seconds")
        case Call(function, (a, b), position=at) if function.kind == "operator" and function.name in INVERSE:
            if reads_clock(a) and reads_clock(b):
                raise _unsupported("the clock on both sides of an operator", at)
            yield from _move_term(clock, sign, other)
        case _:
            call = _clock(clock)
            raise _unsupported("this expression of the clock", call.position if call is not None else None)


def _exact(source: Type, target: Type) -> bool:
    """Returns whether a cast preserves every possible tick time."""
    if source.name == target.name == "numeric":
        return not target.modifiers or target.modifiers[1] >= MILLISECONDS
    if target.modifiers and target.modifiers[0] < MILLISECONDS:
        return False
    return (source.name, target.name) in EXACT


def _move_term(sum: Call, sign: str, other: Scalar) -> Iterator[Bound]:
    """Yields the bounds for `a ± b sign other` after moving the term without the clock to the right."""
    a, b = sum.arguments
    name, at = sum.function.name, sum.position
    # a difference of two times, which is compared with 24-hour days and 30-day months
    if sum.type == INTERVAL:
        length = _elapsed(other, at)
        if reads_clock(a):
            yield from _solve(a, sign, _operate("+", b, length, at))
        else:
            yield from _solve(b, SWAPPED[sign], _operate("-", a, length, at))
        return
    for side in (a, b):
        if side.type == INTERVAL and (not isinstance(side, Literal) or not isinstance(side.value, tuple) or side.value[0]):
            raise _unsupported("the clock and an interval that is not a constant number of days and seconds", at)
    if reads_clock(a):
        yield from _solve(a, sign, _operate(INVERSE[name], other, b, at))
    elif name == "+":
        yield from _solve(b, sign, _operate("-", other, a, at))
    else:
        yield from _solve(b, SWAPPED[sign], _operate("-", a, other, at))


def _elapsed(length: Scalar, at: int | None) -> Literal:
    """Returns a constant interval as the interval of microseconds that PostgreSQL compares it by."""
    if not isinstance(length, Literal) or not isinstance(length.value, tuple):
        raise _unsupported("the clock and an interval that is not a constant", at)
    months, days, micros = length.value
    assert isinstance(months, int) and isinstance(days, int) and isinstance(micros, int)
    return Literal((0, 0, (months * MONTH_DAYS + days) * DAY_US + micros), INTERVAL)


def _operate(sign: str, left: Scalar, right: Scalar, at: int | None) -> Scalar:
    """Returns a call of the operator for these argument types."""
    left, right = fixed(left), fixed(right)
    function = operator(sign, (left.type, right.type), at)
    return Call(function, (left, right), result(function, (left, right)), at)


def _clock_bounds(sign: str, other: Scalar, unit: str) -> Iterator[Bound]:
    """Yields the bounds for `now sign other`."""
    if sign in (">", ">=", "="):
        yield Bound("from", Call(_first(unit, after=sign == ">"), (other,), INT8))
    if sign in ("<", "<=", "="):
        yield Bound("until", Call(_first(unit, after=sign != "<"), (other,), INT8))


def _first(unit: str, *, after: bool) -> Function:
    """Returns the function for the first millisecond at or after a time; `after`: strictly after it."""
    argument = "numeric" if unit == "seconds" else unit
    if unit in ("timestamptz", "timestamp", "date"):
        spark = f"tg_first_millisecond({'tg_date_beside_timestamp({0})' if unit == 'date' else '{0}'}, {str(after).lower()})"
        micros = f"epoch_us({'tg_date_beside_timestamp({0})' if unit == 'date' else 'CAST({0} AS TIMESTAMP)'})"
        finite = f"(floor({micros} / 1000) + 1)::BIGINT" if after else f"ceil({micros} / 1000)::BIGINT"
        infinite = f"WHEN {{0}} > {unit.upper()} 'epoch' THEN {FAR} WHEN {{0}} IS NOT NULL THEN -{FAR}"
        duckdb = f"CASE WHEN isfinite({{0}}) THEN {finite} {infinite} END"
    else:
        near = f"greatest(least({{0}}{' * 1000' if unit == 'seconds' else ''}, {FAR}), -{FAR})"
        spark = duckdb = strict(f"CAST(floor({near}) AS BIGINT) + 1" if after else f"CAST(ceil({near}) AS BIGINT)", 1)
    return Function(f"first millisecond {'after' if after else 'from'}", (argument,), "int8", f"({spark})", f"({duckdb})")
