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
COLLATION_HINT = 'Texts are compared as bytes, as in "C". Only ORDER BY of a query can sort by ICU: ORDER BY name COLLATE "en-x-icu".'
# collations of libraries, which a PostgreSQL may have: en_US, de_AT.utf8, und-x-icu
_LOCALE = re.compile(r"C\.(utf8|UTF-8)|[a-z]{2,3}_[A-Z]{2}(@\w+)?(\.[\w-]+)?(@\w+)?|[\w-]+-x-icu")

_ICU = re.compile(r"([a-z]{2,3})(-[A-Z][a-z]{3})?(-[A-Z]{2})?-x-icu")
# languages of ICU's collations, by which ORDER BY of a query can sort; und is that of all others
_ICU_LANGUAGES = frozenset(
    """
    af am ar as az be bg bn bo br bs ca ceb chr cs cy da de dsb dz ee el en eo es et fa ff fi fil fo fr fy ga gl gu ha haw he hi hr hsb hu
    hy id ig is it ja ka kk kl km kn ko kok ku ky lb lkt ln lo lt lv mk ml mn mr ms mt my nb ne nl nn om or pa pl ps pt ro ru se si sk sl
    smn sq sr sv sw ta te th tk to tr ug uk und ur uz vi wae wo yi yo yue zh zu
    """.split()
)


def icu_locale(collation: str) -> str | None:
    """Returns ICU's name of the locale of a collation, or None if ORDER BY cannot sort by it.

    >>> icu_locale("de-AT-x-icu"), icu_locale("und-x-icu"), icu_locale("C")
    ('de_AT', 'und', None)
    """
    match = _ICU.fullmatch(collation)
    return collation.removesuffix("-x-icu").replace("-", "_") if match is not None and match[1] in _ICU_LANGUAGES else None


def check_collation(name: str, at: int | None) -> None:
    """Raises 0A000 for a collation that does not compare bytes, and 42704 for a name that no locale has."""
    if name in COLLATIONS:
        return
    if _LOCALE.fullmatch(name):
        raise FeatureNotSupported(f'collation "{name}" is not supported', hint=COLLATION_HINT, position=at)
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
