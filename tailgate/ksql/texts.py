"""Splits the lines of a user into statements: at semicolons outside of quotes and comments."""

from __future__ import annotations

import re

_PART = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`|\"[^\"]*\"|--[^\n]*|/\*.*?\*/|\\[ \t]*\n|;|[^'`\"\-/\\;]+|.", re.DOTALL)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/|\\[ \t]*\n", re.DOTALL)


def statements(text: str) -> tuple[list[str], str]:
    """Returns the statements of a text, with their semicolons, and what follows the last one.

    >>> statements("SHOW STREAMS; SELECT ';' -- a; b\\nFROM x; list")
    (['SHOW STREAMS;', "SELECT ';' \\nFROM x;"], 'list')
    """
    whole: list[str] = []
    parts: list[str] = []
    for match in _PART.finditer(text):
        part = match.group()
        parts.append(" " * part.startswith("\\") if _COMMENT.fullmatch(part) else part)
        if part == ";":
            statement = "".join(parts).strip()
            whole += [statement] * (statement != ";")
            parts = []
    return whole, "".join(parts).strip()


def first_words(statement: str, count: int = 2) -> list[str]:
    """Returns the first words of a statement in lower case."""
    return statement.rstrip(";").lower().split()[:count]
