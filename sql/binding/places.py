"""Where things stand in the text, for errors."""

from __future__ import annotations

from sqlglot import exp

from sql.functions import catalogue
from sql.grammar.names import position


def aggregate_place(node: exp.Expr) -> int | None:
    """Where the first aggregate in a tree begins."""
    places = [
        p
        for n in node.find_all(exp.Anonymous)
        if any(r.kind == "aggregate" for r in catalogue.calls(str(n.this))) and (p := position(n)) is not None
    ]
    return min(places, default=None)


def leftmost(node: exp.Expr) -> int | None:
    """Where an expression begins, parentheses aside: exprLocation()."""
    places = [p for n in node.walk() if not _is_silent(n) and (p := position(n)) is not None]
    return min(places, default=None)


def _is_silent(node: exp.Expr) -> bool:
    """Whether PostgreSQL's tree has no place for it: a literal with its type is a constant, and that stands where the quotes do."""
    if isinstance(node, exp.Cast):
        return isinstance(node.this, exp.Literal) and node.this.is_string
    return isinstance(node, (exp.Paren, exp.DataType))
