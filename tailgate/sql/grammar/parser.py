"""The parser of expressions and queries: a cursor with all rules of the grammar."""

from __future__ import annotations

from sqlglot import exp

from tailgate.sql.grammar import expressions, queries
from tailgate.sql.grammar.rules import OR, Rules


class Parser(Rules):
    """A cursor over a text that parses expressions and queries."""

    def expression(self, level: int = OR, *, boolean: bool = True, left: exp.Expr | None = None) -> exp.Expr:
        return expressions.expression(self, level, boolean=boolean, left=left)

    def query(self) -> exp.Expr:
        return queries.query(self)


def parse_expression(text: str) -> exp.Expr:
    """Parses a text that is one expression."""
    cursor = Parser(text)
    tree = cursor.expression()
    cursor.finish()
    return tree


def parse_query(text: str) -> exp.Expr:
    """Parses a text that is one query."""
    cursor = Parser(text)
    tree = cursor.query()
    cursor.finish()
    return tree
