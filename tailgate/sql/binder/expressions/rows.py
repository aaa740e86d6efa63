"""Rows as values, ROW(a, b), and comparisons of rows: (a, b) = (c, d), (a, b) < (c, d), (a, b) IN ((1, 2), (3, 4)).

Source: PostgreSQL 15, "Row and Array Comparisons"; make_row_comparison_op() in parse_expr.c.
"""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.errors import FeatureNotSupported, SyntaxError_
from tailgate.lake.types import BOOL, UNKNOWN, Type
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.expressions import subqueries
from tailgate.sql.binder.expressions.columns import bind_fields, expanded_row
from tailgate.sql.binder.expressions.row_comparison import compare_rows
from tailgate.sql.grammar.names import position
from tailgate.sql.plan import And, IsNull, Literal, Or, Scalar, rows


def bind_row(binder: ExpressionBinder, node: exp.Tuple) -> Scalar:
    """Binds ROW(a, b) and (a, b) as a value. Raises 0A000 without fields."""
    fields = [binder.known(s) for s in bind_fields(binder, node)]
    if not fields:
        raise FeatureNotSupported("a row without columns is not supported", position=position(node))
    return rows.row(fields, position=position(node))


def bind_as(binder: ExpressionBinder, node: exp.Expr, type: Type) -> Scalar:
    """Binds an expression whose value will be cast to a type.

    Literals and parameters in ROW(…) have no types yet: they get those of the attributes of a composite type.
    """
    inner = node
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if not isinstance(inner, exp.Tuple) or type.composite is None or type.is_array:
        return binder.bind(node)
    fields: list[Scalar] = []
    for item in inner.expressions:
        columns = expanded_row(binder, item)
        of_field = type.fields[len(fields)].type if len(fields) < len(type.fields) else UNKNOWN
        fields += [bind_as(binder, item, of_field)] if columns is None else [c.scalar for c in columns]
    return rows.row(fields, position=position(inner))


def bind_comparison(binder: ExpressionBinder, sign: str, left: exp.Expr, right: exp.Expr, at: int | None) -> Scalar:
    """Binds a comparison of a row with a row or with a subquery. Raises 42601, 42804."""
    if isinstance(right, exp.Subquery) and isinstance(left, exp.Tuple):
        return subqueries.bind_row(binder, sign, left, right, at)
    if not isinstance(left, exp.Tuple) or not isinstance(right, exp.Tuple):
        return binder.operate(sign, [binder.bind(left), binder.bind(right)], at)
    return compare_rows(binder, sign, bind_fields(binder, left), bind_fields(binder, right), at)


def bind_in(binder: ExpressionBinder, left: exp.Tuple, items: list[exp.Expr], at: int | None, *, negated: bool) -> Scalar:
    """Binds IN or, with `negated`, NOT IN of a row and a list of rows."""
    sign = "<>" if negated else "="
    tests = tuple(bind_comparison(binder, sign, left, item, at) for item in items)
    return tests[0] if len(tests) == 1 else And(tests) if negated else Or(tests)


def bind_distinct(binder: ExpressionBinder, left: exp.Tuple, right: exp.Tuple, at: int | None) -> Scalar:
    """Returns IS DISTINCT FROM of two rows: true if any column is distinct. Raises 42601."""
    one, other = bind_fields(binder, left), bind_fields(binder, right)
    if len(one) != len(other):
        raise SyntaxError_("unequal number of entries in row expressions", position=at)
    tests = tuple(binder.distinct([a, b], at) for a, b in zip(one, other, strict=True))
    return tests[0] if len(tests) == 1 else Or(tests)


def bind_null(binder: ExpressionBinder, row: exp.Tuple, *, negated: bool) -> Scalar:
    """Returns the condition that all columns of a row are NULL.

    With `negated`, returns the condition that IS NOT NULL negates: any column is NULL.
    """
    terms: tuple[Scalar, ...] = tuple(IsNull(binder.known(s)) for s in bind_fields(binder, row))
    if len(terms) < 2:
        return terms[0] if terms else Literal(not negated, BOOL)
    return Or(terms) if negated else And(terms)
