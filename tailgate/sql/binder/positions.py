"""Positions of expressions in the text, for error messages."""

from __future__ import annotations

from sqlglot import exp

from tailgate.sql.functions import catalogue
from tailgate.sql.grammar.names import position


def aggregate_place(node: exp.Expr) -> int | None:
    """Returns the position of the first aggregate in a tree."""
    places = [
        p
        for n in node.find_all(exp.Anonymous)
        if any(r.kind == "aggregate" for r in catalogue.calls(str(n.this))) and (p := position(n)) is not None
    ]
    return min(places, default=None)


def leftmost(node: exp.Expr) -> int | None:
    """Returns the position at which an expression begins, without parentheses: exprLocation()."""
    places = [p for n in node.walk() if not _is_silent(n) and (p := position(n)) is not None]
    return min(places, default=None)


def _is_silent(node: exp.Expr) -> bool:
    """Returns whether PostgreSQL's tree has no position for a node.

    A cast of a quoted literal is one constant there, whose position is that of the literal.
    """
    if isinstance(node, exp.Cast):
        return isinstance(node.this, exp.Literal) and node.this.is_string
    return isinstance(node, (exp.Paren, exp.DataType))
