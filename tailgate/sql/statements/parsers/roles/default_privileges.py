"""Parses ALTER DEFAULT PRIVILEGES.

Source: PostgreSQL 15, "ALTER DEFAULT PRIVILEGES"; gram.y, DefACLAction.
"""

from __future__ import annotations

from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.roles import PRIVILEGES_OF, RELATION_PRIVILEGES, DefaultKind
from tailgate.lake.errors import InvalidGrantOperation
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.parsers.roles.roles import grantee, privilege, role_name
from tailgate.sql.statements.parsers.schemas import schema_name
from tailgate.sql.statements.parsers.unsupported import unsupported
from tailgate.sql.statements.session_statements import AlterDefaultPrivileges

KINDS: dict[str, DefaultKind] = {"tables": "relation", "sequences": "sequence", "types": "type", "schemas": "schema"}


def alter_default_privileges(cursor: Parser) -> AlterDefaultPrivileges:
    """Parses [FOR {ROLE | USER} role, …] [IN SCHEMA schema, …] {GRANT … | REVOKE …}, after ALTER DEFAULT PRIVILEGES."""
    roles: tuple[Name, ...] = ()
    schemas: tuple[Name, ...] = ()
    while (word := cursor.any_word("for", "in")) is not None:
        if word == "for":
            if cursor.any_word("role", "user") is None:
                raise cursor.error()
            roles = tuple(cursor.listed(role_name))
        else:
            cursor.expect_word("schema")
            schemas = tuple(cursor.listed(schema_name))
    verb = cursor.any_word("grant", "revoke")
    if verb is None:
        raise cursor.error()
    option = verb == "revoke" and cursor.accept_word("grant", "option", "for")
    all = cursor.accept_word("all")
    privileges: tuple[str, ...] = ()
    if all:
        cursor.accept_word("privileges")
    else:
        privileges = tuple(cursor.listed(privilege))
    cursor.expect_word("on")
    at = cursor.position
    if (what := cursor.any_word(*KINDS)) is None:
        if (other := cursor.any_word("functions", "routines")) is not None:
            raise unsupported(f"ALTER DEFAULT PRIVILEGES … ON {other.upper()}", at, "Every role may call all functions.")
        raise cursor.error()
    kind = KINDS[what]
    cursor.expect_word("to" if verb == "grant" else "from")
    grantees = tuple(cursor.listed(grantee))
    option = option or (verb == "grant" and cursor.accept_word("with", "grant", "option"))
    if verb == "revoke":
        cursor.any_word("cascade", "restrict")
    supported = PRIVILEGES_OF.get(kind, RELATION_PRIVILEGES)
    for word in privileges:
        if word not in supported:
            raise InvalidGrantOperation(f"invalid privilege type {word} for {kind}")
    return AlterDefaultPrivileges(roles, schemas, verb == "grant", kind, tuple(supported) if all else privileges, grantees, option)
