"""Comparisons of rows: (a, b) = (c, d), (a, b) < (c, d), (a, b) IN ((1, 2), (3, 4)).

Source: PostgreSQL 15, "Row and Array Comparisons"; make_row_comparison_op() in parse_expr.c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tailgate.lake.errors import FeatureNotSupported, SyntaxError_
from tailgate.lake.types import BOOL
from tailgate.sql.binding import subqueries
from tailgate.sql.grammar.names import position
from tailgate.sql.plan import And, IsNull, Literal, Or, Scalar

if TYPE_CHECKING:
    from tailgate.sql.binding.expressions import Expressions

STRICT = {"<": "<", "<=": "<", ">": ">", ">=": ">"}  # the operator for the first pair of columns that differ


def bind_comparison(binder: Expressions, sign: str, left: exp.Expr, right: exp.Expr, at: int | None) -> Scalar:
    """Binds a comparison of a row with a row or with a subquery. Raises 42601, 0A000."""
    if isinstance(right, exp.Subquery) and isinstance(left, exp.Tuple):
        return subqueries.bind_row(binder, sign, left, right, at)
    if not isinstance(left, exp.Tuple) or not isinstance(right, exp.Tuple):
        raise FeatureNotSupported("a row as a value is not supported", position=position(left if isinstance(left, exp.Tuple) else right))
    return compared(binder, sign, [binder.bind(e) for e in left.expressions], [binder.bind(e) for e in right.expressions], at)


def bind_in(binder: Expressions, left: exp.Tuple, items: list[exp.Expr], at: int | None, *, negated: bool) -> Scalar:
    """Binds IN or, with `negated`, NOT IN of a row and a list of rows."""
    sign = "<>" if negated else "="
    tests = tuple(bind_comparison(binder, sign, left, item, at) for item in items)
    return tests[0] if len(tests) == 1 else And(tests) if negated else Or(tests)


def compared(binder: Expressions, sign: str, left: list[Scalar], right: list[Scalar], at: int | None) -> Scalar:
    """Compares rows column by column. Raises 42601, 0A000, and the errors of the operators."""
    if len(left) != len(right):
        raise SyntaxError_("unequal number of entries in row expressions", position=at)
    if not left:
        raise FeatureNotSupported("cannot compare rows of zero length", position=at)
    if sign in ("=", "<>"):
        tests = tuple(binder.operate(sign, [a, b], at) for a, b in zip(left, right, strict=True))
        return tests[0] if len(tests) == 1 else And(tests) if sign == "=" else Or(tests)
    if sign not in STRICT and len(left) > 1:
        raise FeatureNotSupported(
            f"could not determine interpretation of row comparison operator {sign}",
            hint="Row comparison operators must be associated with btree operator families.",
            position=at,
        )
    *firsts, last = zip(left, right, strict=True)
    found = binder.operate(sign, list(last), at)
    for a, b in reversed(firsts):
        found = Or((binder.operate(STRICT[sign], [a, b], at), And((binder.operate("=", [a, b], at), found))))
    return found


def bind_distinct(binder: Expressions, left: exp.Tuple, right: exp.Tuple, at: int | None) -> Scalar:
    """Returns IS DISTINCT FROM of two rows: true if any column is distinct. Raises 42601."""
    if len(left.expressions) != len(right.expressions):
        raise SyntaxError_("unequal number of entries in row expressions", position=at)
    tests = tuple(binder.distinct([binder.bind(a), binder.bind(b)], at) for a, b in zip(left.expressions, right.expressions, strict=True))
    return tests[0] if len(tests) == 1 else Or(tests)


def bind_null(binder: Expressions, row: exp.Tuple, *, negated: bool) -> Scalar:
    """Returns the condition that all columns of a row are NULL.

    With `negated`, returns the condition that IS NOT NULL negates: any column is NULL.
    """
    terms: tuple[Scalar, ...] = tuple(IsNull(binder.typed(e)) for e in row.expressions)
    if len(terms) < 2:
        return terms[0] if terms else Literal(not negated, BOOL)
    return Or(terms) if negated else And(terms)
