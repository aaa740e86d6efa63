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
    places = [p for n in node.walk() if not isinstance(n, (exp.Paren, exp.DataType)) and (p := position(n)) is not None]
    return min(places, default=None)
