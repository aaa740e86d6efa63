"""Names in text: columns, relations, functions, labels, each with the key words it may be; and places in the tree."""

from __future__ import annotations

from typing import TypeVar

from sqlglot import exp

from lake import words
from sql.tokens import Cursor, Token

E = TypeVar("E", bound=exp.Expr)


def place(node: E, position: int) -> E:
    """The node, remembering where its text begins."""
    node.meta["position"] = position
    return node


def position(node: exp.Expr) -> int | None:
    """Where a node's text begins, if it was remembered."""
    found = node.meta.get("position")
    return found if isinstance(found, int) else None


def is_name(token: Token, refused: frozenset[str] = words.NOT_A_COLUMN) -> bool:
    return token.kind == "quoted" or (token.kind == "word" and token.value not in refused)


def identifier(token: Token) -> exp.Identifier:
    return place(exp.Identifier(this=token.value, quoted=token.kind == "quoted"), token.position)


def name(cursor: Cursor, refused: frozenset[str] = words.NOT_A_COLUMN) -> exp.Identifier:
    """A name here; by default one that a column or relation may have (ColId)."""
    if not is_name(cursor.token, refused):
        raise cursor.error()
    return identifier(cursor.advance())


def label(cursor: Cursor) -> exp.Identifier:
    """Any word at all (ColLabel): after AS, and after a dot."""
    return name(cursor, frozenset())


def names(cursor: Cursor) -> list[exp.Identifier]:
    """( name, … )"""
    cursor.expect("(")
    found = cursor.listed(name)
    cursor.expect(")")
    return found


def relation(cursor: Cursor) -> exp.Table:
    """[[catalog.]schema.]name"""
    parts = [name(cursor)]
    while cursor.sign("."):
        parts.append(label(cursor))
    if len(parts) > 3:
        raise cursor.error()
    catalog, schema, this = [None] * (3 - len(parts)) + parts
    return place(exp.Table(this=this, db=schema, catalog=catalog), position(parts[0]) or 0)
