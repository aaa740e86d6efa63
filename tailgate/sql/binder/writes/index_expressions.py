"""Expressions and conditions of indexes, bound over the columns of their relation.

Source: PostgreSQL 15, src/backend/commands/indexcmds.c (ComputeIndexAttrs, CheckPredicate), src/backend/utils/adt/ruleutils.c
(looks_like_function).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sqlglot import exp

from tailgate.lake.catalog import Catalog, Item, Table
from tailgate.lake.catalog.formats import IndexExpression
from tailgate.lake.catalog.indexes import element_text
from tailgate.lake.constraints import key_expressions
from tailgate.lake.errors import FeatureNotSupported, InvalidObjectDefinition
from tailgate.lake.types import Field
from tailgate.sql.binder.domains import types_of
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.queries.output_columns import column_name
from tailgate.sql.binder.types.parameters import Parameters
from tailgate.sql.binder.writes.immutability import is_immutable
from tailgate.sql.binder.writes.targets import empty_level, fields_of, scope_of
from tailgate.sql.grammar.names import position
from tailgate.sql.grammar.operators import sign_of
from tailgate.sql.grammar.parser import parse_expression
from tailgate.sql.numeric_types import WITH_GENERAL, typed_by
from tailgate.sql.plan import Call, Column, Project, Relation, Scalar, Scan
from tailgate.sql.plan.rewriting import columns_of, walk
from tailgate.sql.plan.writes import INCOMING
from tailgate.sql.statements.writes import Expression
from tailgate.sql.time_zones import UTC, in_zone

OPERATORS = (exp.Not, exp.Neg, exp.Between, exp.In, exp.Is, exp.And, exp.Or)  # that PostgreSQL shows in parentheses, with binary ones


@in_zone(UTC)
@typed_by(WITH_GENERAL)
def value_of(relation: Item, tree: exp.Expr, *, condition: bool = False) -> Scalar:
    """Returns an expression of an index, or its condition. Raises 0A000, 42P17, 42803, 42804 and others."""
    what = "index predicate" if condition else "index expression"
    if (inner := next(tree.find_all(exp.Select), None)) is not None:
        raise FeatureNotSupported(f"cannot use subquery in {what}", position=position(inner.parent or inner))
    level = empty_level(Parameters(), types_of(relation.columns))
    binder = Expressions(scope_of(relation, None), level, f"{what}s", aggregates=False)
    scalar = binder.boolean(tree, "WHERE") if condition else binder.typed(tree)
    if any(isinstance(part, Call) and not is_immutable(part.function) for part in walk(scalar)):
        raise InvalidObjectDefinition(f"functions in {what} must be marked IMMUTABLE")
    return scalar


def stored_value(relation: Item, expression: IndexExpression) -> Scalar:
    """Returns the value of an expression or condition of the catalog."""
    return value_of(relation, parse_expression(expression.text), condition=not expression.name)


def defined(relation: Item, expression: Expression, place: int | None) -> IndexExpression:
    """Returns an expression of CREATE INDEX as a value of the catalog. `place`: among the columns; None for the condition."""
    tree, text = expression.tree, expression.text
    while isinstance(tree, exp.Paren):
        tree, text = tree.this, text.strip()[1:-1].strip()
    scalar = value_of(relation, tree, condition=place is None)
    columns = tuple(sorted(columns_of(scalar)))
    if place is None:
        return IndexExpression(text=text, columns=columns, form=_form(tree))
    name = column_name(tree, scalar)
    return IndexExpression(text=text, columns=columns, name="expr" if name == "?column?" else name, place=place, form=_form(tree))


def _form(tree: exp.Expr) -> Literal["call", "operator", "other"]:
    if isinstance(tree, exp.Anonymous):
        return "call"
    return "operator" if isinstance(tree, OPERATORS) or sign_of(tree) is not None else "other"


def field_of(relation: Item, expression: IndexExpression) -> Field:
    """Returns the column of an index for an expression."""
    return Field(expression.name, stored_value(relation, expression).type)


def key_values(table: Table, catalog: Catalog) -> Relation | None:
    """Returns a plan over INCOMING for the columns of the table and the values that `Key` numbers behind them; None if there are none."""
    expressions = key_expressions(table, catalog)
    if not expressions:
        return None
    values = tuple(stored_value(table, expression) for expression in expressions)
    own = tuple(Column(i, column.type) for i, column in enumerate(table.columns))
    names = (element_text(expression, pretty=True) for expression in expressions)
    fields = tuple(Field(name, field.type) for name, field in zip(names, _fields(values), strict=True))
    # a key, so that it is read without a column for the number of copies
    return Project(Scan(INCOMING, table.columns, (0,), table.name), (*own, *values), (*table.columns, *fields))


def _fields(values: Sequence[Scalar]) -> tuple[Field, ...]:
    return fields_of(tuple(Field("", value.type) for value in values), [tuple(values)])
