"""Parses RAISE, and the names of errors in it and in EXCEPTION."""

from __future__ import annotations

from typing import get_args

from tailgate.lake.errors import SyntaxError_, UndefinedObject
from tailgate.sql.plpgsql.conditions import OTHERS, SQLSTATES
from tailgate.sql.plpgsql.nodes import Level, Raise
from tailgate.sql.plpgsql.reader import Reader

LEVELS: dict[str, Level] = {level.lower(): level for level in get_args(Level)}
OPTIONS = ("errcode", "message", "detail", "hint", "column", "constraint", "datatype", "table", "schema")


def condition(reader: Reader) -> str:
    """Parses the name of an error, SQLSTATE 'xxxxx', or OTHERS. Returns the SQLSTATE, or OTHERS."""
    cursor = reader.cursor
    if cursor.accept_word("sqlstate"):
        return _sqlstate(reader)
    name = reader.word()
    return OTHERS if name == OTHERS else _of_name(name)


def _of_name(name: str) -> str:
    """Returns the SQLSTATE of an error. Raises 42704."""
    if name not in SQLSTATES:
        raise UndefinedObject(f'unrecognized exception condition "{name}"')
    return SQLSTATES[name]


def _sqlstate(reader: Reader) -> str:
    at, sqlstate = reader.cursor.position, reader.cursor.string()
    if not is_sqlstate(sqlstate):
        raise SyntaxError_("invalid SQLSTATE code", position=at)
    return sqlstate


def is_sqlstate(text: str) -> bool:
    return len(text) == 5 and text.isascii() and text.isalnum() and text == text.upper()


def raise_statement(reader: Reader, line: int) -> Raise:
    """Parses a RAISE, behind the word."""
    cursor = reader.cursor
    if cursor.accept(";"):
        return Raise("EXCEPTION", None, (), None, None, (), line)
    level = LEVELS[cursor.any_word(*LEVELS) or "exception"]
    format, name, sqlstate = None, None, None
    arguments = tuple[str, ...]()
    if cursor.token.kind == "string":
        format = cursor.advance().value
        if cursor.accept(","):
            arguments = reader.expressions(";", "using")
        _check_places(format, len(arguments))
    elif cursor.accept_word("sqlstate"):
        name = sqlstate = _sqlstate(reader)
    elif not cursor.at_word("using"):
        name = reader.word()
        sqlstate = _of_name(name)
    options = cursor.listed(lambda _: _option(reader)) if cursor.accept_word("using") else []
    cursor.expect(";")
    return Raise(level, format, arguments, name, sqlstate, tuple(options), line)


def _check_places(format: str, arguments: int) -> None:
    places = format.replace("%%", "").count("%")
    if places != arguments:
        raise SyntaxError_(f"too {'many' if places < arguments else 'few'} parameters specified for RAISE")


def _option(reader: Reader) -> tuple[str, str]:
    """Parses option = value."""
    cursor = reader.cursor
    name = cursor.any_word(*OPTIONS)
    if name is None:
        raise cursor.error(message="unrecognized RAISE statement option")
    if not cursor.accept("=") and not cursor.accept(":="):
        raise cursor.error(message='syntax error, expected "="')
    return name, reader.expression(",", ";", consume=False)
