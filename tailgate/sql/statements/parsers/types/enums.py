"""Parses CREATE TYPE … AS ENUM, and the actions of ALTER TYPE on an enum type.

Source: PostgreSQL 15, "CREATE TYPE", "ALTER TYPE"; gram.y, DefineStmt, AlterEnumStmt.
"""

from __future__ import annotations

from tailgate.lake.catalog.names import Name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.parsers.clauses import relation_name
from tailgate.sql.statements.parsers.roles import role_name
from tailgate.sql.statements.parsers.unsupported import unsupported
from tailgate.sql.statements.types import AddValue, AlterEnum, CreateEnum, NewOwner, RenameValue


def create_type(cursor: Parser) -> CreateEnum:
    """Parses the rest of CREATE TYPE. Raises 0A000 for types other than enum types."""
    at = cursor.position
    this = relation_name(cursor)
    if not cursor.accept_word("as", "enum"):
        raise unsupported("CREATE TYPE other than AS ENUM", at)
    cursor.expect("(")
    labels: list[str] = [] if cursor.at(")") else cursor.listed(lambda cursor: cursor.string())
    cursor.expect(")")
    return CreateEnum(this, tuple(labels))


def alter_type(cursor: Parser, this: Name) -> AlterEnum | None:
    """Parses ADD VALUE, RENAME VALUE or OWNER TO, after ALTER TYPE name. Returns None and consumes nothing for other actions."""
    if cursor.accept_word("add", "value"):
        absent = cursor.accept_word("if", "not", "exists")
        label = cursor.string()
        side = cursor.any_word("before", "after")
        return AlterEnum(this, AddValue(label, absent, None if side is None else cursor.string(), side == "before"))
    if cursor.accept_word("rename", "value"):
        label = cursor.string()
        cursor.expect_word("to")
        return AlterEnum(this, RenameValue(label, cursor.string()))
    return AlterEnum(this, NewOwner(role_name(cursor).name)) if cursor.accept_word("owner", "to") else None
