"""Parses settings of a role, of all roles or of the database: ALTER ROLE … SET, ALTER DATABASE … SET.

Source: PostgreSQL 15, "ALTER ROLE", "ALTER DATABASE"; gram.y, SetResetClause.
"""

from __future__ import annotations

from tailgate.lake.catalog.names import Name
from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.parsers.clauses import assigned_values, setting_name, setting_value
from tailgate.sql.statements.parsers.unsupported import unsupported
from tailgate.sql.statements.session_statements import AlterSettings


def alter_database(cursor: Parser) -> AlterSettings:
    """Parses name {SET … | RESET …}, after ALTER DATABASE."""
    start = cursor.position
    database = name(cursor).name
    if cursor.token.kind == "end":
        raise cursor.error()
    if not cursor.at_word("set") and not cursor.at_word("reset"):
        raise unsupported(f"ALTER DATABASE … {cursor.token.text.upper()}", start)
    return alter_settings(cursor, None, database)


def alter_settings(cursor: Parser, role: Name | None, database: str = "") -> AlterSettings:
    """Parses SET setting {= | TO} {value, … | DEFAULT}, SET setting FROM CURRENT, SET TIME ZONE value, or RESET {setting | ALL}."""
    if cursor.accept_word("reset"):
        return AlterSettings(role, database, None if cursor.accept_word("all") else setting_name(cursor))
    cursor.expect_word("set")
    if cursor.accept_word("time", "zone"):
        return AlterSettings(role, database, "timezone", () if cursor.any_word("local", "default") else (setting_value(cursor),))
    setting = setting_name(cursor)
    if cursor.accept_word("from", "current"):
        return AlterSettings(role, database, setting, from_current=True)
    return AlterSettings(role, database, setting, assigned_values(cursor))
