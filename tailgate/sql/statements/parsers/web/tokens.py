"""Parses CREATE TOKEN and DROP TOKEN."""

from __future__ import annotations

from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.parsers.roles.roles import role_name
from tailgate.sql.statements.session_statements import CreateToken, DropToken


def create_token(cursor: Parser) -> CreateToken:
    """Parses name FOR role [VALID UNTIL 'timestamp'] [AS 'hash'], after CREATE TOKEN. Only gateways write the hash."""
    this = name(cursor).name
    cursor.expect_word("for")
    role = role_name(cursor)
    until, at = None, (0, 0)
    if cursor.accept_word("valid", "until"):
        begin = cursor.position
        until = cursor.string()
        at = (begin, cursor.tokens[cursor.index - 1].end)
    return CreateToken(this, role, until, at, cursor.string() if cursor.accept_word("as") else None)


def drop_token(cursor: Parser) -> DropToken:
    """Parses [IF EXISTS] name FOR role, after DROP TOKEN."""
    exists = cursor.accept_word("if", "exists")
    this = name(cursor).name
    cursor.expect_word("for")
    return DropToken(this, role_name(cursor), exists)
