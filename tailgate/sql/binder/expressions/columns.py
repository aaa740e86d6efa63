"""Binds columns and rows of tables: name, table.name, schema.table.name, table, table.*, (row).name."""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.errors import FeatureNotSupported, TailgateError, UndefinedColumn, WrongObjectType
from tailgate.lake.types import Type
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.name_lookup import find_column, find_table, named_item
from tailgate.sql.binder.positions import leftmost
from tailgate.sql.binder.scope import Named, placed, whole_row
from tailgate.sql.grammar.names import position
from tailgate.sql.plan import Scalar
from tailgate.sql.plan.rows import fields, is_row, of_row


def bind_column(binder: ExpressionBinder, node: exp.Column) -> Scalar:
    at = position(node)
    if isinstance(node.this, exp.Star):
        return whole_row(find_table(binder, node.text("table"), at, named_item(binder, node)), at)
    return find_column(binder, node.name, node.text("table") or None, at, named_item(binder, node))


def bind_field(binder: ExpressionBinder, node: exp.Dot) -> Scalar:
    """Binds (row).name. Raises 42703, 42809."""
    name = node.expression
    if isinstance(name, exp.Star):
        raise FeatureNotSupported('row expansion via "*" is not supported here', position=position(node))
    row = _row(binder, node)
    number = next((i for i, field in enumerate(row.type.fields) if field.name == name.name), None)
    if number is None:
        raise _missing(node, name.name, row.type)
    return of_row(row, lambda row: placed(fields(row)[number], position(node)))


def expanded_row(binder: ExpressionBinder, node: exp.Expr) -> list[Named] | None:
    """Returns the columns of table.* or (row).*, or None for other nodes."""
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        at = position(node)
        table = find_table(binder, node.text("table"), at, named_item(binder, node))
        return [Named(c.name, placed(c.scalar, at)) for c in table.columns if not c.hidden]
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Star):
        row = _row(binder, node)

        def field(number: int) -> Scalar:
            return of_row(row, lambda row: fields(row)[number])

        return [Named(f.name, field(i)) for i, f in enumerate(row.type.fields)]
    return None


def bind_fields(binder: ExpressionBinder, row: exp.Tuple) -> list[Scalar]:
    """Binds the fields of ROW(…), in which table.* and (row).* are several fields."""
    scalars: list[Scalar] = []
    for node in row.expressions:
        columns = expanded_row(binder, node)
        scalars += [binder.bind(node)] if columns is None else [c.scalar for c in columns]
    return scalars


def _row(binder: ExpressionBinder, node: exp.Dot) -> Scalar:
    """Binds the row before .name or .*. Raises 42809."""
    row = binder.typed(node.this)
    if is_row(row.type):
        return row
    if isinstance(node.expression, exp.Star):
        raise WrongObjectType(f"type {row.type} is not composite")
    message = f"column notation .{node.expression.name} applied to type {row.type}, which is not a composite type"
    raise WrongObjectType(message, position=leftmost(_inner(node)))


def _missing(node: exp.Dot, name: str, type: Type) -> TailgateError:
    inner = _inner(node)
    shown = f'could not identify column "{name}" in record data type'
    if type.composite is not None:
        shown = f'column "{name}" not found in data type {type}'
    elif isinstance(inner, exp.Column):
        shown = f"column {inner.name}.{name} does not exist"
    return UndefinedColumn(shown, position=leftmost(inner))


def _inner(node: exp.Dot) -> exp.Expr:
    """Returns the expression before the dot, without its parentheses."""
    inner: exp.Expr = node.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    return inner
