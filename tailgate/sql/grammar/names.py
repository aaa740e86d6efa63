"""Parses names of columns, relations, functions and labels, and records positions of tree nodes.

Each kind of name accepts different key words, as in PostgreSQL.
"""

from __future__ import annotations

import re
from typing import TypeVar

from sqlglot import exp

from tailgate.lake import keywords
from tailgate.lake.errors import FeatureNotSupported, UndefinedObject
from tailgate.sql.lexer.tokens import Cursor, Token

E = TypeVar("E", bound=exp.Expr)
# collations that compare bytes, as all texts are compared
COLLATIONS = frozenset(("C", "POSIX", "default", "ucs_basic"))
# collations of libraries, which a PostgreSQL may have: en_US, de_AT.utf8, und-x-icu
_LOCALE = re.compile(r"C\.(utf8|UTF-8)|[a-z]{2,3}_[A-Z]{2}(@\w+)?(\.[\w-]+)?(@\w+)?|[\w-]+-x-icu")


def check_collation(name: str, at: int | None) -> None:
    """Raises 0A000 for a collation that does not compare bytes, and 42704 for a name that no locale has."""
    if name in COLLATIONS:
        return
    if _LOCALE.fullmatch(name):
        raise FeatureNotSupported(f'collation "{name}" is not supported', hint='Texts are compared as bytes, as in "C".', position=at)
    raise UndefinedObject(f'collation "{name}" for encoding "UTF8" does not exist', position=at)


def place(node: E, position: int) -> E:
    """Records the offset at which the text of a node begins. Returns the node."""
    node.meta["position"] = position
    return node


def position(node: exp.Expr) -> int | None:
    """Returns the offset at which the text of a node begins, or None if it is not recorded."""
    offset = node.meta.get("position")
    return offset if isinstance(offset, int) else None


def is_name(token: Token, refused: frozenset[str] = keywords.NOT_A_COLUMN) -> bool:
    """Returns whether a token is a quoted name, or a word other than the key words `refused`."""
    return token.kind == "quoted" or (token.kind == "word" and token.value not in refused)


def identifier(token: Token) -> exp.Identifier:
    """Returns the tree node of a name."""
    return place(exp.Identifier(this=token.value, quoted=token.kind == "quoted"), token.position)


def name(cursor: Cursor, refused: frozenset[str] = keywords.NOT_A_COLUMN) -> exp.Identifier:
    """Parses a name; by default the name of a column or relation (ColId)."""
    if not is_name(cursor.token, refused):
        raise cursor.error()
    return identifier(cursor.advance())


def label(cursor: Cursor) -> exp.Identifier:
    """Parses a label (ColLabel), which may be any key word: after AS and after a dot."""
    return name(cursor, frozenset())


def names(cursor: Cursor) -> list[exp.Identifier]:
    """Parses ( name, … )."""
    cursor.expect("(")
    identifiers = cursor.listed(name)
    cursor.expect(")")
    return identifiers


def relation(cursor: Cursor) -> exp.Table:
    """Parses [[catalog.]schema.]name."""
    parts = [name(cursor)]
    while cursor.accept("."):
        parts.append(label(cursor))
    if len(parts) > 3:
        raise cursor.error()
    catalog, schema, this = [None] * (3 - len(parts)) + parts
    return place(exp.Table(this=this, db=schema, catalog=catalog), position(parts[0]) or 0)
