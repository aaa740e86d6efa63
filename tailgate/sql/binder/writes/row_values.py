"""The values of new rows: those that a statement assigns, defaults, and old values.

Source: PostgreSQL 15, src/backend/parser/parse_target.c (transformAssignedExpr), analyze.c (transformUpdateTargetList).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from sqlglot import exp

from tailgate.lake.catalog import Catalog, items
from tailgate.lake.errors import FeatureNotSupported, SyntaxError_
from tailgate.lake.types import Field, Type
from tailgate.sql.binder.context import Level
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.expressions.rows import bind_as
from tailgate.sql.binder.expressions.subqueries import bind_column
from tailgate.sql.binder.positions import leftmost
from tailgate.sql.binder.queries.queries import Queries
from tailgate.sql.binder.relation_names import NO_WIDTHS, Names
from tailgate.sql.binder.types.coercion import coerce
from tailgate.sql.binder.types.parameters import Parameters
from tailgate.sql.binder.writes.parts import with_part
from tailgate.sql.binder.writes.targets import assigned, default_of, only_default
from tailgate.sql.binder.writes.updatable_views import Target
from tailgate.sql.plan import Column, Literal, Scalar
from tailgate.sql.statements.writes import Assignment, ColumnName, Default, Expression, InsertValue, QueryColumn

Row: TypeAlias = tuple[InsertValue, ...]
Value: TypeAlias = InsertValue | QueryColumn


class RowValues:
    """Binds the values of a statement's new rows. `parameters`, `widths`: see `sql.bind.bind_query`."""

    def __init__(self, catalog: Catalog, parameters: tuple[Type, ...] | None, widths: Mapping[int, int] = NO_WIDTHS) -> None:
        self.catalog = catalog
        self.parameters = Parameters(parameters or (), parameters is not None)
        self.names = Names(catalog, widths=widths)
        self.queries = Queries(self.parameters)
        self.level = Level(self.queries, self.names)

    def _with(self, clause: exp.With | None) -> None:
        """Adds the queries of a WITH before the statement to the known names."""
        if clause is not None:
            self.names = self.queries.ctes(clause, self.names)
            self.level = replace(self.level, names=self.names)

    def _check_width(self, row: tuple[InsertValue, ...], targets: tuple[int, ...], columns: tuple[ColumnName, ...]) -> None:
        """Raises 42601 if a row of VALUES has another number of values than the statement has columns."""
        if len(row) > len(targets):
            raise SyntaxError_("INSERT has more expressions than target columns", position=place_of(row[len(targets)]))
        if columns and len(row) < len(targets):
            raise SyntaxError_("INSERT has more target columns than expressions", position=columns[len(row)].position)

    def _level(self, row: tuple[Scalar, ...], fields: tuple[Field, ...]) -> tuple[Scalar, ...]:
        """Casts a row of VALUES to the common types of all rows, which differ only in scale."""

        def one(scalar: Scalar, type: Type) -> Scalar:
            if scalar.type == type:
                return scalar
            return (
                replace(scalar, type=type) if isinstance(scalar, Literal) else coerce(scalar, type, self.parameters, "explicit") or scalar
            )

        return tuple(one(s, f.type) for s, f in zip(row, fields, strict=True))

    def _filled(self, table: items.Table, values: dict[int, Scalar]) -> tuple[Scalar, ...]:
        """Returns a whole row: the scalars in `values`, by column index, and defaults elsewhere."""
        return tuple(values[i] if i in values else self._default(table, i) for i in range(len(table.columns)))

    def _default(self, table: items.Table, index: int) -> Scalar:
        name = table.columns[index].name
        names = None if name in table.identity else self.names  # the sequence of an identity column needs no privilege
        return default_of(table.columns[index], table.defaults.get(name), names)

    def _given(
        self, table: items.Table, targets: tuple[int, ...], columns: tuple[ColumnName, ...], row: Row, binder: Expressions
    ) -> dict[int, Scalar]:
        """Returns the values that a row of VALUES assigns, by column."""
        values: dict[int, Scalar] = {}
        for i, (target, value) in enumerate(zip(targets, row, strict=False)):
            if columns and columns[i].path:
                before = values.get(target, Literal(None, table.columns[target].type))
                values[target] = self._part(table, target, columns[i], value, before, binder)
            else:
                values[target] = self._assigned(table, target, value, binder)
        return values

    def _part(
        self, table: items.Table, index: int, target: Assignment | ColumnName, value: Value, before: Scalar, binder: Expressions
    ) -> Scalar:
        """Returns the value `before` with an assigned part."""
        if isinstance(value, Default):
            part = "a subfield" if isinstance(target.path[0], str) else "an array element"
            raise FeatureNotSupported(f"cannot set {part} to DEFAULT", position=target.position)
        return with_part(table.columns[index], before, target, lambda type: _bound(value, type, binder), binder)

    def _assigned(self, table: items.Table, index: int, value: Value, binder: Expressions) -> Scalar:
        if isinstance(value, Default):
            return self._default(table, index)
        return self._fitted(table, index, _bound(value, table.columns[index].type, binder), leftmost(_node(value)))

    def _fitted(self, table: items.Table, index: int, scalar: Scalar, place: int | None) -> Scalar:
        """Casts a scalar to the type of a column, as an assignment does. Raises 42804."""
        return assigned(table.columns[index], scalar, self.parameters, place)

    def _set(self, target: Target, assignments: tuple[Assignment, ...], binder: Expressions, begin: int) -> tuple[Scalar, ...]:
        """Returns the new row.

        Columns that are not set keep their old values, which begin at index `begin`.
        """
        table = target.table
        values: dict[int, Scalar] = {}
        parts: set[int] = set()  # of which only parts are assigned
        for assignment in assignments:
            index = target.position(assignment.column, assignment.position)
            name = table.columns[index].name
            if index in values and not (assignment.path and index in parts):
                raise SyntaxError_(f'multiple assignments to same column "{name}"')
            only = table.identity.get(name) == "always" or name in table.generated
            value = assignment.value
            is_default, is_view = isinstance(value, Default), target.relation is not table
            if only and (is_view or not is_default):
                raise only_default(table, name)
            if assignment.path:
                parts.add(index)
                before = values.get(index, Column(begin + index, table.columns[index].type))
                values[index] = self._part(table, index, assignment, value, before, binder)
            elif is_default and is_view:  # the columns of views have no defaults
                values[index] = Literal(None, table.columns[index].type)
            else:
                values[index] = self._assigned(table, index, value, binder)
        return tuple(values.get(i, Column(begin + i, f.type)) for i, f in enumerate(table.columns))


def _bound(value: Expression | QueryColumn, type: Type, binder: Expressions) -> Scalar:
    """Binds an assigned value, which will be cast to a type."""
    if isinstance(value, QueryColumn):
        return bind_column(binder, value.tree, value.index, value.count)
    return bind_as(binder, value.tree, type)


def _node(value: Expression | QueryColumn) -> exp.Expr:
    """Returns the expression of a value: for a column of a SELECT that names its columns, that of the column."""
    if isinstance(value, QueryColumn) and isinstance(value.tree.this, exp.Select):
        columns: list[exp.Expr] = value.tree.this.expressions
        if len(columns) == value.count:
            return columns[value.index]
    return value.tree


def place_of(value: InsertValue) -> int | None:
    """Returns the position of a value in the text."""
    return value.position if isinstance(value, Default) else leftmost(value.tree) if isinstance(value, Expression) else None
