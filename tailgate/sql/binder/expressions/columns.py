"""Binds columns: name, table.name, schema.table.name, (table).name and ROW(…).f1."""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.errors import (
    FeatureNotSupported,
    UndefinedColumn,
)  # fmt: skip
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.name_lookup import find_column, named_item
from tailgate.sql.grammar.names import place, position
from tailgate.sql.plan import (
    Scalar,
)  # fmt: skip


def bind_column(binder: ExpressionBinder, node: exp.Column) -> Scalar:
    at = position(node)
    if isinstance(node.this, exp.Star):
        raise FeatureNotSupported("a row as a value is not supported", position=at)
    table, item = node.text("table") or None, named_item(binder, node)
    if table is None and not any(c.name == node.name for c in binder.scope.columns):
        whole = [t for t in binder.scope.tables if t.alias == node.name and not t.value]
        if whole:
            raise FeatureNotSupported("a whole row as a value is not supported", position=at)
    return find_column(binder, node.name, table, at, item)


def bind_field(binder: ExpressionBinder, node: exp.Dot) -> Scalar:
    """Binds (t).column, where t is an alias in FROM, and ROW(…).f1."""
    inner, field = node.this, node.expression
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.Tuple) and isinstance(field, exp.Identifier):
        if not (field.name[:1] == "f" and field.name[1:].isdigit() and 0 < int(field.name[1:]) <= len(inner.expressions)):
            raise UndefinedColumn(f'could not identify column "{field.name}" in record data type', position=position(field))
        return binder.typed(inner.expressions[int(field.name[1:]) - 1])
    whole = isinstance(inner, exp.Column) and not inner.args.get("table") and not any(c.name == inner.name for c in binder.scope.columns)
    if whole and isinstance(field, exp.Identifier):
        return bind_column(binder, place(exp.Column(this=field, table=inner.this), position(inner) or 0))
    raise FeatureNotSupported("a field of this row is not supported", hint="Name the column: alias.column.", position=position(node))
