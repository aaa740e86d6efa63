"""Parses CREATE FUNCTION of the schema pg_temp in PL/pgSQL: a function without arguments, whose OUT parameters are its result.

Source: PostgreSQL 15, "CREATE FUNCTION".
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from tailgate.lake.errors import FeatureNotSupported, InvalidFunctionDefinition, SyntaxError_
from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.grammar.types import type_name
from tailgate.sql.lexer.tokens import Token

SCHEMA = "pg_temp"
BEGINNINGS = (("create", "function"), ("create", "or", "replace", "function"))


@dataclass(frozen=True, slots=True)
class Output:
    """An OUT parameter. `type`: as typed, the name of a type or of a relation, whose row type it has."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Header:
    """The parts of the statement. `code`: the text of the block."""

    name: str
    outputs: tuple[Output, ...]
    code: Token
    replace: bool


def begins(cursor: Parser) -> bool:
    """Returns whether a function of pg_temp in PL/pgSQL is next."""
    for words in BEGINNINGS:
        if cursor.at_word(*words) and cursor.peek(len(words)).value == SCHEMA:
            return any(a.value == "language" and b.value == "plpgsql" for a, b in pairwise(cursor.tokens[cursor.index :]))
    return False


def parse(cursor: Parser) -> Header:
    """Parses the statement."""
    cursor.expect_word("create")
    replace = cursor.accept_word("or", "replace")
    cursor.expect_word("function")
    cursor.advance()
    cursor.expect(".")
    this = name(cursor).name
    cursor.expect("(")
    outputs = () if cursor.at(")") else tuple(cursor.listed(_output))
    cursor.expect(")")
    if cursor.accept_word("returns"):
        at = cursor.position
        if not cursor.accept_word("record") or len(outputs) < 2:
            raise FeatureNotSupported("RETURNS of a temporary function, except RECORD with several OUT parameters,", position=at)
    if not outputs:
        raise InvalidFunctionDefinition("function result type must be specified")
    return Header(this, outputs, _code(cursor), replace)


def _output(cursor: Parser) -> Output:
    at = cursor.position
    if not cursor.accept_word("out"):
        raise FeatureNotSupported("an argument of a function in PL/pgSQL is not supported", position=at)
    this, start = name(cursor).name, cursor.token
    type_name(cursor)
    return Output(this, cursor.since(start.position))


def _code(cursor: Parser) -> Token:
    """Parses AS 'code', LANGUAGE plpgsql and the volatility, in any order."""
    code: Token | None = None
    while not (cursor.finished or cursor.at(";")):
        at = cursor.position
        if cursor.accept_word("language"):
            cursor.advance()
        elif cursor.any_word("volatile", "immutable", "stable") is not None:
            pass
        elif cursor.accept_word("as") and cursor.token.kind == "string":
            if code is not None:
                raise SyntaxError_("conflicting or redundant options", position=at)
            code = cursor.advance()
        else:
            raise cursor.error()
    if code is None:
        raise InvalidFunctionDefinition("no function body specified")
    return code
