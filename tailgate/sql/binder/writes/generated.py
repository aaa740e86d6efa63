"""Generated columns: their values as expressions over the other columns of the row.

Source: PostgreSQL 15, src/backend/catalog/heap.c (cookDefault, check_nested_generated), src/backend/rewrite/rewriteHandler.c.
"""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.catalog import Table
from tailgate.lake.errors import DatatypeMismatch, FeatureNotSupported, InvalidObjectDefinition, TailgateError
from tailgate.lake.types import Field
from tailgate.sql.binder.domains import types_of
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.types.parameters import Parameters
from tailgate.sql.binder.writes.immutability import is_immutable
from tailgate.sql.binder.writes.targets import assigned, empty_level, fields_of, scope_of
from tailgate.sql.grammar.names import position
from tailgate.sql.grammar.parser import parse_expression
from tailgate.sql.numeric_types import WITH_GENERAL, typed_by
from tailgate.sql.plan import Call, Column, Project, Relation, Scalar, Scan
from tailgate.sql.plan.rewriting import columns_of, walk
from tailgate.sql.plan.writes import INCOMING, PLACE
from tailgate.sql.time_zones import UTC, in_zone


def generated_positions(table: Table) -> tuple[int, ...]:
    """Returns the positions of the generated columns."""
    return tuple(i for i, column in enumerate(table.columns) if column.name in table.generated)


@in_zone(UTC)
@typed_by(WITH_GENERAL)
def value_of(column: Field, table: Table) -> Scalar:
    """Returns the value of a generated column over the columns of its table. Raises 42P17, 0A000, 42804 and others."""
    tree = parse_expression(table.generated[column.name])
    if (inner := next(tree.find_all(exp.Select), None)) is not None:
        raise FeatureNotSupported("cannot use subquery in column generation expression", position=position(inner.parent or inner))
    parameters = Parameters()
    level = empty_level(parameters, types_of(table.columns))
    scalar = Expressions(scope_of(table, None), level, "column generation expressions", aggregates=False).bind(tree)
    for part in walk(scalar):
        if isinstance(part, Column) and table.columns[part.index].name in table.generated:
            name = table.columns[part.index].name
            node = next((n for n in tree.find_all(exp.Column) if n.name == name), tree)
            raise InvalidObjectDefinition(
                f'cannot use generated column "{name}" in column generation expression',
                detail="A generated column cannot reference another generated column.",
                position=position(node),
            )
    if any(isinstance(part, Call) and not is_immutable(part.function) for part in walk(scalar)):
        raise InvalidObjectDefinition("generation expression is not immutable")
    try:
        return assigned(column, scalar, parameters, None)
    except DatatypeMismatch as error:
        error.message = error.message.replace("but expression is", "but default expression is")
        raise


def values(table: Table) -> Relation | None:
    """Returns a plan over INCOMING for the values of the generated columns; None if the table has none."""
    positions = generated_positions(table)
    if not positions:
        return None
    incoming = Scan(INCOMING, (*table.columns, PLACE), (len(table.columns),), table.name)
    columns = tuple(table.columns[i] for i in positions)
    scalars = tuple(value_of(column, table) for column in columns)
    return Project(incoming, scalars, fields_of(columns, [scalars]))


def columns_read(table: Table, name: str) -> frozenset[int]:
    """Returns the positions of the columns that a generated column reads."""
    return columns_of(value_of(next(column for column in table.columns if column.name == name), table))


def dependents(table: Table, position: int) -> tuple[str, ...]:
    """Returns the names of the generated columns that read a column."""
    return tuple(name for name in table.generated if position in columns_read(table, name))


def check_expression(table: Table, name: str, place: int | None) -> None:
    """Raises the errors of `value_of`. `place`: of the text in the statement; None for errors without a position."""
    try:
        columns_read(table, name)
    except TailgateError as error:
        if error.position is not None:
            error.position = None if place is None else error.position + place
        raise
