"""Parses the actions of ALTER TABLE that change columns.

Source: PostgreSQL 15, "ALTER TABLE"; gram.y, alter_table_cmd.
"""

from __future__ import annotations

from tailgate.lake.catalog.names import Name
from tailgate.sql.grammar import names
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.parsers.clauses import if_not_exists, since
from tailgate.sql.statements.parsers.tables.create_table import table_column
from tailgate.sql.statements.parsers.unsupported import unsupported
from tailgate.sql.statements.writes import AddColumn, AlterTable, SetDefault, TableAction

CONSTRAINTS = ("constraint", "primary", "unique", "check", "foreign", "exclude")


def alter_table(cursor: Parser, table: Name, exists: bool) -> AlterTable | None:
    """Parses the actions, after the name of the table. Returns None and consumes nothing for other forms of ALTER TABLE."""
    if not (cursor.at_word("add") or cursor.at_word("alter")):
        return None
    actions: list[TableAction] = []
    while True:
        actions.append(_action(cursor, table))
        if not cursor.accept(","):
            return AlterTable(table, tuple(actions), exists)


def _action(cursor: Parser, table: Name) -> TableAction:
    at = cursor.position
    if cursor.accept_word("add"):
        word = next((w for w in CONSTRAINTS if cursor.at_word(w)), None)
        if word is not None:
            raise unsupported(f"ALTER TABLE … ADD {word.upper()}", at)
        cursor.accept_word("column")
        absent = if_not_exists(cursor)
        return AddColumn(table_column(cursor, table), absent)
    if not cursor.accept_word("alter"):
        if cursor.token.kind != "word":
            raise cursor.error()
        raise unsupported(f"ALTER TABLE … {cursor.token.text.upper()}, with other actions,", at)
    cursor.accept_word("column")
    column = names.name(cursor).name
    if cursor.accept_word("drop", "default"):
        return SetDefault(column, None)
    if cursor.accept_word("set", "default"):
        start = cursor.position
        cursor.expression()
        return SetDefault(column, since(cursor, start))
    if cursor.token.kind == "end":
        raise cursor.error()
    words = cursor.token.text.upper() if cursor.at_word("type") else f"{cursor.token.text} {cursor.peek().text}".upper().strip()
    raise unsupported(f"ALTER TABLE … ALTER COLUMN … {words}", at)
