"""Subqueries in expressions: (SELECT …), EXISTS, IN, op ANY, op ALL, ARRAY(SELECT …).

Source: PostgreSQL 15, transformSubLink() in src/backend/parser/parse_expr.c.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tailgate.lake.errors import FeatureNotSupported, SyntaxError_
from tailgate.lake.types import BOOL
from tailgate.sql.binder.context import Closure, ExpressionBinder
from tailgate.sql.binder.expressions.columns import bind_fields
from tailgate.sql.binder.expressions.row_comparison import compare_rows
from tailgate.sql.binder.types.dimensions import with_dimensions
from tailgate.sql.binder.types.overloads import fixed
from tailgate.sql.decorrelate import decorrelate
from tailgate.sql.grammar.names import position
from tailgate.sql.numeric_types import elements_may_be_general
from tailgate.sql.plan import Column, Not, Project, Relation, Scalar
from tailgate.sql.plan.grouping import sorted_as_rows
from tailgate.sql.plan.properties import is_volatile
from tailgate.sql.plan.subqueries import Subquery, as_scalar


def bind_scalar(binder: ExpressionBinder, node: exp.Subquery) -> Scalar:
    """Binds (SELECT …) as a value. Raises 42601."""
    closure, relation = _bound(binder, node.this)
    if len(relation.columns) != 1:
        raise SyntaxError_("subquery must return only one column", position=position(node))
    return _value(closure, relation, 0, position(node))


def bind_column(binder: ExpressionBinder, node: exp.Subquery, index: int, count: int) -> Scalar:
    """Binds (SELECT a, b, …), assigned to `count` columns, as the value of one of them: NULL without a row. Raises 42601, 0A000."""
    closure, relation = _bound(binder, node.this)
    if len(relation.columns) != count:
        raise SyntaxError_("number of columns does not match number of values", position=position(node))
    rows = decorrelate(relation)
    if count > 1 and is_volatile(rows.input if isinstance(rows, Project) else rows):  # each column would be of another row
        message = "assigning several columns of a query whose rows depend on volatile functions is not supported"
        raise FeatureNotSupported(message, hint="Use UPDATE … FROM.", position=position(node))
    return _value(closure, relation, index, position(node))


def bind_exists(binder: ExpressionBinder, node: exp.Exists) -> Scalar:
    """Binds EXISTS (SELECT …)."""
    closure, relation = _bound(binder, node.this)
    return as_scalar(Subquery("exists", relation, closure.depth, closure.arguments(relation), BOOL, position=position(node)))


def bind_array(binder: ExpressionBinder, node: exp.Subquery, at: int | None) -> Scalar:
    """Binds ARRAY(SELECT …). Raises 42601."""
    closure, relation = _bound(binder, node.this)
    if len(relation.columns) != 1:
        raise SyntaxError_("subquery must return only one column", position=at)
    if not binder.view and node.this.args.get("order") is None:
        relation = sorted_as_rows(relation)
    column = relation.columns[0]
    if column.type.general and not elements_may_be_general():
        element = fixed(Column(0, column.type))
        column = replace(column, type=element.type)
        relation = Project(relation, (element,), (column,))
    if column.type.is_array:
        column = replace(column, type=column.type.array(multidimensional=True))
        relation = Project(relation, (with_dimensions(Column(0, relation.columns[0].type)),), (column,))
    array_type = column.type.array(multidimensional=column.type.is_array)
    return as_scalar(Subquery("array", relation, closure.depth, closure.arguments(relation), array_type, position=at))


def bind_row(binder: ExpressionBinder, sign: str, left: exp.Tuple, node: exp.Subquery, at: int | None) -> Scalar:
    """Binds (a, b) op (SELECT c, d …), which compares two rows. Raises 42601."""
    values = bind_fields(binder, left)
    closure, relation = _bound(binder, node.this)
    _check_columns(len(values), len(relation.columns), at)
    columns = [_value(closure, relation, i, position(node)) for i in range(len(values))]
    return compare_rows(binder, sign, values, columns, at)


def bind_in(binder: ExpressionBinder, node: exp.In, at: int | None, *, negated: bool) -> Scalar:
    """Binds x IN (SELECT …), and with `negated` x NOT IN (SELECT …). Raises 42601."""
    condition = _quantified(binder, "=", node.this, node.args["query"], at)
    return Not(condition) if negated else condition


def bind_quantified(binder: ExpressionBinder, sign: str, left: exp.Expr, right: exp.Any | exp.All, at: int | None) -> Scalar:
    """Binds x op ANY (SELECT …) and x op ALL (SELECT …).

    ALL becomes NOT ANY of the negated comparison.
    """
    return _quantified(binder, sign, left, right.this, at, all=isinstance(right, exp.All))


def _quantified(binder: ExpressionBinder, sign: str, left: exp.Expr, node: exp.Subquery, at: int | None, *, all: bool = False) -> Scalar:
    values = bind_fields(binder, left) if isinstance(left, exp.Tuple) else [binder.bind(left)]
    closure, relation = _bound(binder, node.this)
    _check_columns(len(values), len(relation.columns), at)
    columns: list[Scalar] = [Column(i, f.type, position(node)) for i, f in enumerate(relation.columns)]
    condition = compare_rows(binder, sign, [closure.capture(v) for v in values], columns, at)
    if all:
        condition = Not(condition)
    arguments = closure.arguments(relation, condition)
    scalar = as_scalar(Subquery("any", relation, closure.depth, arguments, BOOL, condition, position=at))
    return Not(scalar) if all else scalar


def _value(closure: Closure, relation: Relation, column: int, at: int | None) -> Scalar:
    arguments = closure.arguments(relation)
    return as_scalar(Subquery("scalar", relation, closure.depth, arguments, relation.columns[column].type, column=column, position=at))


def _bound(binder: ExpressionBinder, tree: exp.Expr) -> tuple[Closure, Relation]:
    """Binds the query of a subquery. Returns its closure, which has its arguments, and its plan."""
    closure = Closure(binder)
    queries = replace(binder.level.queries, outer=closure)
    return closure, queries.query(tree, binder.level.names)


def _check_columns(values: int, columns: int, at: int | None) -> None:
    if values < columns:
        raise SyntaxError_("subquery has too many columns", position=at)
    if values > columns:
        raise SyntaxError_("subquery has too few columns", position=at)
