"""Binds expressions: a syntax tree over a scope becomes a typed scalar.

Source: PostgreSQL 15, src/backend/parser/{parse_expr,parse_func,parse_oper}.c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.expressions import (
    aggregates,
    calls,
    columns,
    constants,
    constructors,
    predicates,
    rows,
    subqueries,
    syntax_calls,
    window_functions,
)
from tailgate.sql.grammar.names import position
from tailgate.sql.grammar.operators import sign_of
from tailgate.sql.plan import Scalar

# Each kind of node has a function that binds it. The nodes of operators are in sql.grammar.operators.
BINDERS: dict[type[exp.Expr], Callable[[ExpressionBinder, Any], Scalar]] = {
    exp.Column: columns.bind_column,
    exp.Literal: constants.bind_literal,
    exp.BitString: constants.bind_bits,
    exp.HexString: constants.bind_bits,
    exp.Null: constants.bind_null,
    exp.Boolean: constants.bind_boolean,
    exp.Parameter: constants.bind_parameter,
    exp.Paren: constructors.bind_parentheses,
    exp.Neg: constants.bind_negative,
    exp.And: predicates.bind_and,
    exp.Or: predicates.bind_or,
    exp.Not: predicates.bind_not,
    exp.Is: predicates.bind_is,
    exp.Dot: columns.bind_field,
    exp.Tuple: rows.bind_row,
    exp.NullSafeEQ: predicates.bind_distinct,
    exp.NullSafeNEQ: predicates.bind_distinct,
    exp.Between: predicates.bind_between,
    exp.In: predicates.bind_in,
    exp.Like: predicates.bind_like,
    exp.ILike: predicates.bind_like,
    exp.Escape: predicates.bind_escape,
    exp.Cast: constructors.bind_cast,
    exp.Case: constructors.bind_case,
    exp.Anonymous: calls.bind_call,
    exp.Window: window_functions.bind_window,
    exp.Filter: aggregates.bind_aggregate,
    exp.WithinGroup: aggregates.bind_aggregate,
    exp.Array: constructors.bind_array,
    exp.Subquery: subqueries.bind_scalar,
    exp.Exists: subqueries.bind_exists,
    exp.Bracket: syntax_calls.bind_subscript,
    exp.AtTimeZone: syntax_calls.bind_zone,
    exp.Overlaps: syntax_calls.bind_overlaps,
    exp.SimilarTo: predicates.bind_similar,
    exp.Collate: constructors.bind_collate,
}
UNSUPPORTED: dict[type[exp.Expr], str] = {
    exp.Star: "*",
    exp.Kwarg: "a named argument here",
    exp.Variadic: "VARIADIC here",
}


@dataclass(frozen=True)
class Expressions(ExpressionBinder):
    """The binder of expressions in one clause of a query."""

    def bind(self, node: exp.Expr) -> Scalar:
        """Binds a tree. See `ExpressionBinder.bind`."""
        return self.level.queries.sizes.check(self._bind(node))

    def _bind(self, node: exp.Expr) -> Scalar:
        bind = BINDERS.get(type(node))
        if bind is not None:
            return bind(self, node)
        sign = sign_of(node)
        if sign is not None:
            return predicates.bind_operator(self, sign, node)
        words = UNSUPPORTED.get(type(node), type(node).__name__)
        raise FeatureNotSupported(f"{words} is not supported", position=position(node))
