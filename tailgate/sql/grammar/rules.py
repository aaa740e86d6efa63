"""The cursor of the grammar, with the two rules that are recursive: an expression and a query.

A query contains expressions, and an expression contains queries. The modules of this package parse
one part each and reach these two rules through the cursor, so no two modules import each other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from sqlglot import exp

from tailgate.sql.lexer.tokens import Cursor

# precedence levels of operators
OR, AND, NOT, IS, COMPARE, LIKE, OTHER, ADD, MULTIPLY, POWER, ZONE, COLLATE, SIGN = range(1, 14)


class Rules(Cursor, ABC):
    """A cursor that can parse an expression and a query. `sql.grammar.parser.Parser` implements it."""

    @abstractmethod
    def expression(self, level: int = OR, *, boolean: bool = True, left: exp.Expr | None = None) -> exp.Expr:
        """Parses an expression with operators of this level and higher ones.

        `boolean`: if false, an expression without AND, OR, IN, LIKE and similar (b_expr). `left`: the
        first operand, if it is already parsed.
        """

    @abstractmethod
    def query(self) -> exp.Expr:
        """Parses [WITH …] query [ORDER BY …] [LIMIT …] [FOR …]."""

    def expressions(self) -> list[exp.Expr]:
        """Parses one or more expressions, separated by commas."""
        return self.listed(lambda cursor: cursor.expression())
