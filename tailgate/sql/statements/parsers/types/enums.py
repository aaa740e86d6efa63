"""Parses CREATE TYPE, and the actions of ALTER TYPE.

Source: PostgreSQL 15, "CREATE TYPE", "ALTER TYPE"; gram.y, DefineStmt, AlterEnumStmt, AlterCompositeTypeStmt.
"""

from __future__ import annotations

from tailgate.lake.catalog.names import Name
from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.grammar.type_resolution import named_type
from tailgate.sql.grammar.types import type_name
from tailgate.sql.statements.parsers.clauses import collation, relation_name
from tailgate.sql.statements.parsers.roles.roles import role_name
from tailgate.sql.statements.parsers.unsupported import unsupported
from tailgate.sql.statements.types import (
    AddAttribute,
    AddValue,
    AlterType,
    Attribute,
    AttributeAction,
    CreateComposite,
    CreateEnum,
    DropAttribute,
    NewOwner,
    RenameAttribute,
    RenameValue,
    SetAttributeType,
)


def create_type(cursor: Parser) -> CreateEnum | CreateComposite:
    """Parses the rest of CREATE TYPE. Raises 0A000 for types other than enum and composite types."""
    at = cursor.position
    this = relation_name(cursor)
    if cursor.at_word("as") and cursor.at("(", 1):
        cursor.advance()
        return CreateComposite(this, _attributes(cursor))
    if not cursor.accept_word("as", "enum"):
        raise unsupported("CREATE TYPE other than AS ENUM and AS (…)", at)
    cursor.expect("(")
    labels: list[str] = [] if cursor.at(")") else cursor.listed(lambda cursor: cursor.string())
    cursor.expect(")")
    return CreateEnum(this, tuple(labels))


def _attributes(cursor: Parser) -> tuple[Attribute, ...]:
    """Parses (attribute type, …). Raises 0A000 without attributes."""
    at = cursor.position
    cursor.expect("(")
    if cursor.at(")"):
        raise unsupported("a composite type without attributes", at)
    attributes = cursor.listed(_attribute)
    cursor.expect(")")
    return tuple(attributes)


def _attribute(cursor: Parser) -> Attribute:
    attribute = name(cursor).name
    type = named_type(type_name(cursor))
    collation(cursor, type)
    return Attribute(attribute, type)


def _attribute_action(cursor: Parser) -> AttributeAction:
    """Parses {ADD | DROP | ALTER} ATTRIBUTE … [CASCADE | RESTRICT]. Raises 42601 for other actions."""
    action: AttributeAction
    if cursor.accept_word("add", "attribute"):
        action = AddAttribute(_attribute(cursor))
    elif cursor.accept_word("drop", "attribute"):
        absent = cursor.accept_word("if", "exists")
        action = DropAttribute(name(cursor).name, absent)
    else:
        cursor.expect_word("alter", "attribute")
        attribute = name(cursor).name
        if cursor.accept_word("set"):
            cursor.expect_word("data")
        cursor.expect_word("type")
        action = SetAttributeType(Attribute(attribute, named_type(type_name(cursor))))
    cursor.any_word("cascade", "restrict")
    return action


def alter_type(cursor: Parser, this: Name) -> AlterType | None:
    """Parses an action after ALTER TYPE name. Returns None and consumes nothing for RENAME TO and SET SCHEMA."""
    if cursor.accept_word("rename", "attribute"):
        old = name(cursor).name
        cursor.expect_word("to")
        action = RenameAttribute(old, name(cursor).name)
        cursor.any_word("cascade", "restrict")
        return AlterType(this, (action,))
    if any(cursor.at_word(word, "attribute") for word in ("add", "drop", "alter")):
        return AlterType(this, tuple(cursor.listed(_attribute_action)))
    if cursor.accept_word("add", "value"):
        absent = cursor.accept_word("if", "not", "exists")
        label = cursor.string()
        side = cursor.any_word("before", "after")
        return AlterType(this, AddValue(label, absent, None if side is None else cursor.string(), side == "before"))
    if cursor.accept_word("rename", "value"):
        label = cursor.string()
        cursor.expect_word("to")
        return AlterType(this, RenameValue(label, cursor.string()))
    return AlterType(this, NewOwner(role_name(cursor).name)) if cursor.accept_word("owner", "to") else None
