"""Replaces calls of strict functions with a literal NULL argument by NULL.

    jsonb_set(a #- b, NULL, c)   ──►   NULL          a #- b may fail; it is not evaluated, as in PostgreSQL

This happens after binding, because the binder must still see aggregates in the other arguments.

Source: PostgreSQL 15, src/backend/optimizer/util/clauses.c simplify_function().
"""

from __future__ import annotations

from tailgate.sql.plan import Call, Literal, Relation, Scalar
from tailgate.sql.plan.rewriting import rebuild
from tailgate.sql.plan.traversal import mapped


def fold_nulls(plan: Relation) -> Relation:
    """Returns the plan with such calls replaced. Shared relations stay shared."""
    return mapped(plan, _scalar)


def _scalar(scalar: Scalar) -> Scalar:
    result = rebuild(scalar, _scalar)
    return Literal(None, result.type, result.position) if isinstance(result, Call) and _is_null(result) else result


def _is_null(call: Call) -> bool:
    """Returns whether a call is NULL. A strict set-returning function returns no rows instead."""
    strict = call.function.strict and call.function.kind != "set"
    return strict and any(isinstance(a, Literal) and a.value is None for a in call.arguments)
