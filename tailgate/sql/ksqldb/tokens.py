"""Splits a text into tokens by ksqlDB's lexical rules.

The tokens differ from PostgreSQL's (`sql.lexer.tokens`): names in back-quotes, the operators `->`,
`=>` and `:=`, variables `${name}`, and a backslash at the end of a line, which is white space.
The `value` of a name is its name in the catalog (`names`), so a word has its lower-case form as in
PostgreSQL's tokens. Names are not truncated.
"""

from __future__ import annotations

import re

from tailgate.lake.errors import SyntaxError_
from tailgate.sql.ksqldb.names import catalog_name
from tailgate.sql.lexer.tokens import Kind, Token

BLANK = re.compile(r"(?:[ \t\n\r\f\v]|\\[ \t]*(?=\r?\n)|--[^\n\r]*|/\*.*?\*/)+", re.DOTALL)
WORD = re.compile(r"[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_@\x80-\U0010ffff]*")
DECIMAL = re.compile(r"(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+")
INTEGER = re.compile(r"[0-9]+")
STRING = re.compile(r"'((?:[^']|'')*)'")
QUOTED = re.compile(r"`((?:[^`]|``)*)`|\"((?:[^\"]|\"\")*)\"")
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
OPERATOR = re.compile(r"->|=>|:=|<>|!=|<=|>=|\|\||[-+*/%=<>(),.;\[\]{}:]")
OPENING = {"'": "unterminated quoted string", "`": "unterminated quoted identifier", '"': "unterminated quoted identifier"}


def tokens(text: str) -> tuple[Token, ...]:
    """Returns all tokens of a text. The last one has the kind 'end', or 'error' with the lexical error.

    >>> [(t.kind, t.value) for t in tokens("SELECT `a`->B")]
    [('word', 'select'), ('quoted', 'A'), ('operator', '->'), ('word', 'b'), ('end', '')]
    """
    row: list[Token] = []
    at = 0
    while True:
        if (blank := BLANK.match(text, at)) is not None:
            at = blank.end()
        if at == len(text):
            return (*row, Token("end", "", "", at))
        token = _token(text, at)
        row.append(token)
        if token.kind == "error":
            return tuple(row)
        at = token.end


def _token(text: str, at: int) -> Token:
    """Returns the token that begins at an offset."""
    if (match := WORD.match(text, at)) is not None:
        word = match.group()
        return Token("word", word, catalog_name(_upper(word)), at)
    if (match := QUOTED.match(text, at)) is not None:
        name = match[1].replace("``", "`") if match[1] is not None else match[2].replace('""', '"')
        return Token("quoted", match.group(), catalog_name(name), at)
    if (match := STRING.match(text, at)) is not None:
        return Token("string", match.group(), match[1].replace("''", "'"), at)
    if (match := VARIABLE.match(text, at)) is not None:
        return Token("parameter", match.group(), match[1], at)
    patterns: tuple[tuple[Kind, re.Pattern[str]], ...] = (("decimal", DECIMAL), ("integer", INTEGER), ("operator", OPERATOR))
    for kind, pattern in patterns:
        if (match := pattern.match(text, at)) is not None:
            return Token(kind, match.group(), match.group(), at)
    rest = text[at:].split(None, 1)[0] if text[at:].strip() else text[at:]
    message = OPENING.get(text[at], "syntax error")
    return Token("error", rest, rest, at, SyntaxError_(f'{message} at or near "{rest}"', position=at))


def _upper(word: str) -> str:
    """Returns a word in upper case. Only ASCII letters are folded."""
    return "".join(c.upper() if c.isascii() else c for c in word)
