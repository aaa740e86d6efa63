"""Assignments to parts of columns: UPDATE … SET c.field = value, a[1] = value, INSERT INTO t (c.field, a[1:2]).

Source: PostgreSQL 15, src/backend/parser/parse_target.c (transformAssignmentIndirection).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tailgate.lake.errors import DatatypeMismatch, FeatureNotSupported, UndefinedColumn
from tailgate.lake.types import Field, Type
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.types.coercion import bare_type, coerce
from tailgate.sql.binder.types.overloads import fixed
from tailgate.sql.binder.writes.array_parts import with_element
from tailgate.sql.binder.writes.targets import without_length, without_modifiers
from tailgate.sql.plan import Scalar, rows
from tailgate.sql.statements.writes import Assignment, ColumnName, Expression

Bind: TypeAlias = Callable[[Type], Scalar]  # binds the assigned value, which will be cast to a type


def bound(scalar: Scalar) -> Bind:
    """Returns the binding of a value that is already bound."""
    return lambda _: scalar


def with_part(column: Field, before: Scalar, target: Assignment | ColumnName, bind: Bind, binder: Expressions) -> Scalar:
    """Returns the value `before` of a column with another value in place of the part that `target` names.

    Raises 42804, 42703, and 0A000 for jsonb, several subscripts, and a field of an element of an array.
    """
    return _with(column, before, target.path, bind, binder, target.position)


def _with(column: Field, before: Scalar, path: tuple[Expression | str, ...], bind: Bind, binder: Expressions, at: int | None) -> Scalar:
    if not isinstance(path[0], str):
        subscripts = [step for step in path if not isinstance(step, str)]
        if len(subscripts) < len(path):
            hint = "Assign the whole element."
            raise FeatureNotSupported("assigning to a field of an element of an array is not supported", hint=hint, position=at)
        return with_element(column, before, subscripts, bind, binder, at)
    number = _position(column, path[0], at)
    fields = list(rows.fields(before))
    field = column.type.fields[number]
    fields[number] = _with(field, fields[number], path[1:], bind, binder, at) if len(path) > 1 else _value(field, bind, binder, at)
    return rows.row_of(without_modifiers(column.type), fields, at)


def _position(column: Field, name: str, at: int | None) -> int:
    """Returns the position of the attribute with this name. Raises 42804, 42703."""
    what, type = f'cannot assign to field "{name}" of column "{column.name}" because', bare_type(column.type)
    if column.type.composite is None or column.type.is_array:
        raise DatatypeMismatch(f"{what} its type {type} is not a composite type", position=at)
    names = [field.name for field in column.type.fields]
    if name not in names:
        raise UndefinedColumn(f"{what} there is no such column in data type {type}", position=at)
    return names.index(name)


def _value(field: Field, bind: Bind, binder: Expressions, at: int | None) -> Scalar:
    """Returns the assigned value with the type of a field. Raises 42804."""
    target, value = without_length(field.type), bind(field.type)
    new = coerce(value, target, binder.parameters, "assignment", at)
    if new is None:
        raise DatatypeMismatch(
            f'subfield "{field.name}" is of type {bare_type(field.type)} but expression is of type {bare_type(value.type)}',
            hint="You will need to rewrite or cast the expression.",
            position=at,
        )
    return new if target.general else fixed(new, target)
