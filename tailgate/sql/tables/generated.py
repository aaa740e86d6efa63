"""Generated columns in ALTER TABLE: ADD COLUMN … GENERATED, DROP EXPRESSION, and the actions that a generated column refuses.

Source: PostgreSQL 15, src/backend/commands/tablecmds.c (ATExecColumnDefault, ATExecDropExpression, ATExecAlterColumnType).
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.catalog import Table
from tailgate.lake.errors import FeatureNotSupported, InvalidColumnDefinition, ObjectNotInPrerequisiteState, SyntaxError_
from tailgate.sql.binder.writes.generated import check_expression, dependents
from tailgate.sql.statements.tables import DropExpression, SetDefault, SetType, TableColumn


def with_expression(table: Table, column: TableColumn) -> Table:
    """Returns the table with the expression of its new column, if that is generated. Raises 42P17 and others."""
    if column.expression is None:
        return table
    after = replace(table, generated={**table.generated, column.name: column.expression})
    check_expression(after, column.name, None)
    return after


def without_expression(table: Table, action: DropExpression) -> tuple[Table, list[tuple[str, str]]]:
    """Returns the table after DROP EXPRESSION, and notices. Raises 55000."""
    if action.column in table.generated:
        return replace(table, generated={name: text for name, text in table.generated.items() if name != action.column}), []
    message = f'column "{action.column}" of relation "{table.name}" is not a stored generated column'
    if not action.if_exists:
        raise ObjectNotInPrerequisiteState(message)
    return table, [(f"{message}, skipping", "00000")]


def check_default(table: Table, action: SetDefault) -> None:
    """Raises 42601 for the default of a generated column."""
    if action.column in table.generated:
        hint = "Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead." if action.default is None else None
        raise SyntaxError_(f'column "{action.column}" of relation "{table.name}" is a generated column', hint=hint)


def check_type(table: Table, action: SetType, position: int) -> None:
    """Raises 0A000 if a generated column reads the column, and 42611 for USING of a generated column."""
    if action.using is not None and action.column in table.generated:
        message = "cannot specify USING when altering type of generated column"
        raise InvalidColumnDefinition(message, detail=f'Column "{action.column}" is a generated column.')
    if readers := dependents(table, position):
        raise FeatureNotSupported(
            "cannot alter type of a column used by a generated column",
            detail=f'Column "{action.column}" is used by generated column "{readers[0]}".',
        )
