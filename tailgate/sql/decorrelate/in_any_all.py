"""Rewrites IN, op ANY and op ALL as EXISTS.

    x IN Q            EXISTS (Q where x = y); if false: NULL if EXISTS (Q where (x = y) IS NULL)
    NOT x IN Q        in a condition: true if both are false

The test (x = y) IS NULL is split in two: y is NULL in some row, or x is NULL and Q has a row. The
resulting joins are on equalities or have few rows. A side that cannot be NULL is not tested.
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.types import BOOL, Field
from tailgate.sql.functions.comparison import SIGNS
from tailgate.sql.plan import And, Call, Case, Filter, IsNull, Literal, Not, Or, Scalar, nullable
from tailgate.sql.plan.correlation import arguments_of, arguments_read
from tailgate.sql.plan.rewriting import columns_of, rebuild
from tailgate.sql.plan.subqueries import Subquery, argument, as_scalar


def as_exists(subquery: Subquery, columns: tuple[Field, ...], *, sure: bool = False) -> Scalar:
    """Returns the subquery's value over outer rows of `columns`.

    With `sure`, NULL counts as false.
    """
    holds = as_scalar(_where(subquery, _condition(subquery)))
    unknown = () if sure else _unknown(subquery, columns)
    if not unknown:
        return holds
    either = unknown[0] if len(unknown) == 1 else Or(unknown)
    return Case(((holds, Literal(True, BOOL)), (either, Literal(None, BOOL))), Literal(False, BOOL), BOOL)


def negated(subquery: Subquery, columns: tuple[Field, ...]) -> list[Scalar]:
    """Returns conditions that are all true exactly where NOT of the subquery's value is true."""
    return [Not(as_scalar(_where(subquery, _condition(subquery)))), *map(Not, _unknown(subquery, columns))]


def _condition(subquery: Subquery) -> Scalar:
    assert subquery.condition is not None
    return subquery.condition


def _where(subquery: Subquery, condition: Scalar) -> Subquery:
    return replace(subquery, kind="exists", relation=Filter(subquery.relation, condition), condition=None)


def _unknown(subquery: Subquery, columns: tuple[Field, ...]) -> tuple[Scalar, ...]:
    """Returns conditions over the outer rows: at least one is true if the comparison is NULL for a row of the subquery."""
    condition, inner = _condition(subquery), subquery.relation.columns
    while isinstance(condition, Not):
        condition = condition.argument
    sides = _sides(condition)
    if sides is None:
        return (as_scalar(_where(subquery, IsNull(condition))),)
    outside, inside = sides
    conditions: list[Scalar] = []
    if _nullable(inside, inner):
        conditions.append(as_scalar(_where(subquery, IsNull(inside))))
    value = _over_outer_rows(outside, subquery)
    if _nullable(value, columns):
        if any(a.depth == subquery.depth for a in arguments_read(subquery.relation)):
            conditions.append(as_scalar(_where(subquery, IsNull(outside))))
        else:
            conditions.append(And((IsNull(value), as_scalar(replace(subquery, kind="exists", condition=None)))))
    return tuple(conditions)


def _sides(condition: Scalar) -> tuple[Scalar, Scalar] | None:
    """Splits a comparison that is NULL exactly where one of its sides is NULL.

    Returns the side that reads no columns of the subquery and the side that reads no arguments, or
    None.
    """
    if not isinstance(condition, Call) or condition.function.kind != "operator" or condition.function.name not in SIGNS:
        return None
    one, other = condition.arguments
    for outside, inside in ((one, other), (other, one)):
        if not columns_of(outside) and not list(arguments_of(inside)):
            return outside, inside
    return None


def _over_outer_rows(scalar: Scalar, subquery: Subquery) -> Scalar:
    """Returns a scalar of the subquery over the outer rows, with values in place of arguments."""
    reference = argument(scalar)
    if reference is not None and reference.depth == subquery.depth:
        return subquery.arguments[reference.number]
    return rebuild(scalar, lambda s: _over_outer_rows(s, subquery))


def _nullable(scalar: Scalar, columns: tuple[Field, ...]) -> bool:
    """Returns whether a scalar can be NULL.

    Casts are ignored, since they return NULL only for NULL.
    """
    if isinstance(scalar, Call) and scalar.function.kind == "cast":
        return _nullable(scalar.arguments[0], columns)
    return nullable(scalar, columns)
