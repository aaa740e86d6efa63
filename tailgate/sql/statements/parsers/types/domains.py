"""Parses CREATE DOMAIN, and the actions of ALTER DOMAIN.

Source: PostgreSQL 15, "CREATE DOMAIN", "ALTER DOMAIN"; gram.y, CreateDomainStmt, AlterDomainStmt; typecmds.c, DefineDomain.
"""

from __future__ import annotations

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported, SyntaxError_
from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.grammar.type_resolution import named_type
from tailgate.sql.grammar.types import type_name
from tailgate.sql.statements.parsers.clauses import collation, relation_name
from tailgate.sql.statements.parsers.roles.roles import role_name
from tailgate.sql.statements.parsers.tables.constraints import check, column_constraint, table_constraint
from tailgate.sql.statements.tables import (
    AddConstraint,
    Check,
    DropConstraint,
    ForeignKey,
    RenameConstraint,
    Unique,
    ValidateConstraint,
)
from tailgate.sql.statements.types import AlterDomain, CreateDomain, DomainAction, NewOwner, SetDomainDefault, SetDomainNotNull


def create_domain(cursor: Parser) -> CreateDomain:
    """Parses the rest of CREATE DOMAIN."""
    this = relation_name(cursor)
    cursor.accept_word("as")
    type = named_type(type_name(cursor))
    default: str | None = None
    not_null: bool | None = None
    checks: list[Check] = []
    while True:
        constraint = name(cursor).name if cursor.accept_word("constraint") else None
        if constraint is None and collation(cursor, type):
            continue
        if cursor.at_word("not", "null") or cursor.at_word("null"):
            required = cursor.accept_word("not", "null") or not cursor.accept_word("null")
            if not_null not in (None, required):
                raise SyntaxError_("conflicting NULL/NOT NULL constraints")
            not_null = required
        elif cursor.accept_word("default"):
            if default is not None:
                raise SyntaxError_("multiple default expressions")
            start = cursor.position
            cursor.expression(boolean=False)
            default = cursor.since(start)
        elif cursor.accept_word("check"):
            checks.append(check(cursor, constraint))
        elif (other := column_constraint(cursor, "", constraint)) is not None:
            raise _not_possible(other)
        elif constraint is None:
            return CreateDomain(this, type, default, not_null is True, tuple(checks))
        else:
            raise cursor.error()


def alter_domain(cursor: Parser, this: Name) -> AlterDomain | None:
    """Parses an action, after ALTER DOMAIN name. Returns None and consumes nothing for RENAME TO and SET SCHEMA."""
    action = _action(cursor)
    return None if action is None else AlterDomain(this, action)


def _action(cursor: Parser) -> DomainAction | None:
    if cursor.accept_word("set", "default"):
        start = cursor.position
        cursor.expression(boolean=False)
        return SetDomainDefault(cursor.since(start))
    if cursor.accept_word("drop", "default"):
        return SetDomainDefault(None)
    if cursor.at_word("set", "not", "null") or cursor.at_word("drop", "not", "null"):
        word = cursor.any_word("set", "drop")
        cursor.expect_word("not", "null")
        return SetDomainNotNull(word == "set")
    if cursor.accept_word("add"):
        constraint = table_constraint(cursor)
        if not isinstance(constraint, Check):
            raise _not_possible(constraint)
        return AddConstraint(constraint)
    if cursor.accept_word("drop", "constraint"):
        absent = cursor.accept_word("if", "exists")
        constraint_name = name(cursor).name
        return DropConstraint(constraint_name, absent, cursor.any_word("cascade", "restrict") == "cascade")
    if cursor.accept_word("validate", "constraint"):
        return ValidateConstraint(name(cursor).name)
    if cursor.accept_word("rename", "constraint"):
        old = name(cursor).name
        cursor.expect_word("to")
        return RenameConstraint(old, name(cursor).name)
    return NewOwner(role_name(cursor).name) if cursor.accept_word("owner", "to") else None


def _not_possible(constraint: Unique | ForeignKey | Check) -> SyntaxError_ | FeatureNotSupported:
    """Returns the error for a constraint that a domain cannot have."""
    if isinstance(constraint, Unique):
        return SyntaxError_(f"{'primary key' if constraint.primary else 'unique'} constraints not possible for domains")
    return SyntaxError_("foreign key constraints not possible for domains")
