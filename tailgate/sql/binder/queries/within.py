"""Joins of two streams: JOIN … ON … WITHIN (time, time, before, after [, grace]) [AS alias].

    WITHIN (l.t, r.t, interval '5 minutes', interval '10 seconds')

A row of the right matches if its time is from 5 minutes before to 10 seconds after that of the left. `alias.number`
numbers the rows of the result.
"""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.errors import DatatypeMismatch, FeatureNotSupported, InvalidParameterValue, SyntaxError_
from tailgate.lake.types import INT8
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.queries.time_windows import window_length
from tailgate.sql.binder.scope import Named, Scope, Source, Table
from tailgate.sql.grammar.names import position
from tailgate.sql.plan import Column, JoinKind, Scalar, WithinJoin
from tailgate.sql.plan.correlation import has_subqueries
from tailgate.sql.plan.rewriting import columns_of


def bind_within(left: Source, right: Source, kind: JoinKind, condition: Scalar, node: exp.Join, binder: Expressions) -> Source:
    """Binds a join of two streams. Raises 42601, 42804, 22023, 0A000."""
    at, parts = position(node), node.args["within"]
    if len(parts) not in (4, 5):
        raise SyntaxError_("WITHIN has two times and two or three intervals", position=at)
    assert kind in ("inner", "left", "right", "full")
    if has_subqueries(condition):
        raise FeatureNotSupported("a subquery in ON with WITHIN is not supported", position=at)
    width = len(left.plan.columns)
    whole = width + len(right.plan.columns)
    times = _time(binder, parts[0], range(width)), _time(binder, parts[1], range(width, whole))
    before, after = (_length(binder, part) for part in parts[2:4])
    grace = _length(binder, parts[4]) if len(parts) == 5 else None
    plan = WithinJoin(left.plan, right.plan, kind, condition, times, before, after, grace, at)
    scope = left.scope.joined(right.scope, width)
    if (alias := node.args.get("alias")) is not None:
        number = Table(alias.name, (Named("number", Column(whole, INT8)),))
        scope = Scope(scope.columns, (*scope.tables, number))
    return Source(plan, scope)


def _time(binder: Expressions, node: exp.Expr, side: range) -> Scalar:
    """Binds the time of a side. Raises 42804, and 0A000 if it reads the other side."""
    time = binder.typed(node)
    if time.type.name != "timestamptz":
        raise DatatypeMismatch("the times of WITHIN must be of type timestamp with time zone", position=position(node))
    if not columns_of(time) or not all(i in side for i in columns_of(time)):
        raise FeatureNotSupported("a time of WITHIN that is not of its side is not supported", position=position(node))
    return time


def _length(binder: Expressions, node: exp.Expr) -> int:
    """Returns a constant interval in microseconds. Raises 0A000, 22023."""
    _, micros = window_length(binder, node)
    if micros < 0:
        raise InvalidParameterValue("the intervals of WITHIN must not be negative", position=position(node))
    return micros
