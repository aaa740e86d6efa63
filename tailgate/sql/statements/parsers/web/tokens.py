"""Parses CREATE TOKEN and DROP TOKEN."""

from __future__ import annotations

from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.parsers.roles import role_name
from tailgate.sql.statements.session_statements import CreateToken, DropToken


def create_token(cursor: Parser) -> CreateToken:
    """Parses name FOR role [AS 'hash'], after CREATE TOKEN. Only gateways write the hash."""
    this = name(cursor).name
    cursor.expect_word("for")
    role = role_name(cursor)
    if cursor.at_word("valid", "until"):
        hint = "DROP TOKEN ends its validity."
        raise FeatureNotSupported("VALID UNTIL of a token is not supported", hint=hint, position=cursor.position)
    return CreateToken(this, role, cursor.string() if cursor.accept_word("as") else None)


def drop_token(cursor: Parser) -> DropToken:
    """Parses [IF EXISTS] name FOR role, after DROP TOKEN."""
    exists = cursor.accept_word("if", "exists")
    this = name(cursor).name
    cursor.expect_word("for")
    return DropToken(this, role_name(cursor), exists)
