"""Parses DECLARE: the variables of a block."""

from __future__ import annotations

from typing import Literal

from tailgate.lake.errors import NullValueNotAllowed, SyntaxError_
from tailgate.sql.lexer.escapes import near
from tailgate.sql.plpgsql.nodes import Declaration
from tailgate.sql.plpgsql.reader import Reader, refused

DEFAULTS = (":=", "=")  # the signs for DEFAULT
TYPE_ENDS = ("collate", "not", "default")


def declarations(reader: Reader) -> tuple[Declaration, ...]:
    """Parses [DECLARE declaration; …] up to BEGIN. The variables belong to the innermost frame."""
    out: list[Declaration] = []
    if reader.cursor.accept_word("declare"):
        while not reader.cursor.at_word("begin"):
            if not reader.cursor.accept_word("declare"):
                out.append(_declaration(reader))
    return tuple(out)


def _declaration(reader: Reader) -> Declaration:
    cursor, line, start = reader.cursor, reader.line(), reader.cursor.token
    if cursor.at("<<"):
        raise SyntaxError_("block label must be placed before DECLARE, not after", position=start.position)
    name, variables = reader.word(), reader.frames[-1].variables
    if name in variables:
        raise near("duplicate declaration", start.text, start.position)
    for words in (("alias", "for"), ("cursor",), ("no", "scroll", "cursor"), ("scroll", "cursor")):
        if cursor.at_word(*words):
            raise refused(" ".join(words).upper(), cursor.token)
    is_constant = cursor.accept_word("constant")
    type, copied = _type(reader)
    if cursor.at_word("collate"):
        raise refused("COLLATE of a variable", cursor.token)
    at = cursor.position
    not_null, default = cursor.accept_word("not"), None
    if not_null:
        cursor.expect_word("null")
    if not cursor.accept(";"):
        if not cursor.accept_word("default") and not any(map(cursor.accept, DEFAULTS)):
            raise cursor.error()
        default = reader.expression(";")
    elif not_null:
        message = f'variable "{name}" must have a default value, since it\'s declared NOT NULL'
        raise NullValueNotAllowed(message, position=at)
    variables[name] = is_constant
    return Declaration(name, type, copied, not_null, default, line)


def _type(reader: Reader) -> tuple[str, Literal["", "type", "rowtype"]]:
    """Parses a type, name%TYPE or relation%ROWTYPE. Returns its text, and which of them it is."""
    cursor, start, depth = reader.cursor, reader.cursor.token, 0
    while depth or not (cursor.at(";") or any(map(cursor.at, DEFAULTS)) or any(map(cursor.at_word, TYPE_ENDS))):
        if cursor.finished:
            raise cursor.error(message="mismatched parentheses" if depth else "incomplete data type declaration")
        if cursor.at("%") and cursor.peek().value in ("type", "rowtype"):
            text = cursor.since(start.position)
            cursor.advance()
            return text, "type" if cursor.advance().value == "type" else "rowtype"
        depth += cursor.at("(") - cursor.at(")")
        cursor.advance()
    if cursor.token is start:
        raise cursor.error(message="missing data type declaration")
    text = cursor.since(start.position)
    if text.lower() != "record":
        reader.check(f"SELECT CAST(NULL AS {text})", start.position - len("SELECT CAST(NULL AS "))
    return text, ""
