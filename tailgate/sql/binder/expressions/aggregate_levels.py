"""The query to which an aggregate belongs.

It is the innermost query whose columns the aggregate reads. This can be an outer query.

Source: PostgreSQL 15, check_agg_arguments() in src/backend/parser/parse_agg.c.
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.errors import FeatureNotSupported, GroupingError
from tailgate.sql.binder.context import Closure, ExpressionBinder
from tailgate.sql.binder.grouping import has_aggregates, placeholder
from tailgate.sql.plan import AggregateCall, Scalar
from tailgate.sql.plan.correlation import arguments_of, arguments_read
from tailgate.sql.plan.rewriting import columns_of, rebuild
from tailgate.sql.plan.subqueries import argument, subquery
from tailgate.sql.plan.traversal import read_by


def owned(binder: ExpressionBinder, call: AggregateCall) -> Scalar:
    """Returns the aggregate as a scalar at the place where it stands. Raises 42803.

    If it belongs to an outer query, the scalar is an argument that this query computes.
    """
    read = read_by(call)
    around = _around(binder)
    depths = [a.depth for s in read for a in arguments_of(s) if a.depth in around]
    if not depths or any(columns_of(s) for s in read):
        if not binder.aggregates:
            raise GroupingError(f"aggregate functions are not allowed in {binder.clause}", position=call.position)
        return placeholder(call)
    closure = binder.level.outer
    while closure is not None and closure.depth != max(depths):
        closure = closure.further
    assert closure is not None
    moved = _outside(call, closure)
    if any(map(has_aggregates, read_by(moved))):
        raise GroupingError("aggregate function calls cannot be nested", position=call.position)
    if not closure.binder.aggregates:
        raise GroupingError(f"aggregate functions are not allowed in {closure.binder.clause}", position=call.position)
    return closure.capture(placeholder(moved))


def _around(binder: ExpressionBinder) -> set[int]:
    """Returns the depths of the closures around, up to a function's body.

    The arguments of a function count as constants.
    """
    depths: set[int] = set()
    closure = binder.level.outer
    while closure is not None and closure.binder.level.arguments is None:
        depths.add(closure.depth)
        closure = closure.further
    return depths


def _outside(call: AggregateCall, closure: Closure) -> AggregateCall:
    """Returns the aggregate over the rows of the place where the closure stands."""

    def new(scalar: Scalar) -> Scalar:
        reference = argument(scalar)
        if reference is not None and reference.depth == closure.depth:
            return closure.captured[reference.number]
        if (inner := subquery(scalar)) is not None and any(a.depth == closure.depth for a in arguments_read(inner.relation)):
            message = "an aggregate of an outer query with a subquery that reads this query's columns is not supported"
            raise FeatureNotSupported(message, position=call.position)
        return rebuild(scalar, new)

    order = tuple(replace(k, expression=new(k.expression)) for k in call.order)
    condition = None if call.filter is None else new(call.filter)
    return replace(call, arguments=tuple(map(new, call.arguments)), order=order, filter=condition)
