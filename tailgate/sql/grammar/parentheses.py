"""Parses queries and expressions in parentheses, and ORDER BY, which calls and queries share."""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.errors import StatementTooComplex, TailgateError, WrongObjectType
from tailgate.sql.grammar.names import place, position
from tailgate.sql.grammar.rules import Rules

BEGINNINGS = ("select", "values", "with", "table")
PARENTHESES_MAX = 1000  # consecutive opening parentheses; more would overflow the stack


def at_query(cursor: Rules, ahead: int = 0) -> bool:
    """Returns whether a query, possibly in parentheses, begins `ahead` tokens after the current one."""
    while cursor.at("(", ahead):
        ahead += 1
        if ahead > PARENTHESES_MAX:
            raise StatementTooComplex("stack depth limit exceeded", hint="Split the statement.", position=cursor.position)
    token = cursor.peek(ahead)
    return token.kind == "word" and token.value in BEGINNINGS


def subquery(cursor: Rules) -> exp.Subquery:
    """Parses ( query ).

    The result is cached in `cursor.cache`. A query, an expression and a joined table may all begin
    with a subquery, and the parser tries them in turn. Without the cache the time would double with
    each level of parentheses.
    """
    start, at = cursor.index, cursor.position
    entry = cursor.cache.get(start)
    if entry is None:
        try:
            cursor.expect("(")
            if not at_query(cursor):
                raise cursor.error()
            tree = cursor.query()
            cursor.expect(")")
            entry = tree, cursor.index
        except TailgateError as error:
            entry = error
        cursor.cache[start] = entry
    if isinstance(entry, TailgateError):
        raise entry
    tree, cursor.index = entry
    return place(exp.Subquery(this=tree), at)


def parenthesised(cursor: Rules, *, many: bool = False) -> exp.Subquery | exp.Tuple | exp.Expr:
    """Parses ( query ) to a Subquery, or ( expression ), or with `many` ( expression, … ) to a Tuple."""
    at = cursor.expect("(").position
    if at_query(cursor):
        begins, in_parentheses = cursor.position, cursor.at("(")
        tree = cursor.query()
        if not (many and in_parentheses) or cursor.at(")"):
            cursor.expect(")")
            return place(exp.Subquery(this=tree), at)
        # IN ((SELECT 1) + 1, 2): the query begins a list
        items = [cursor.expression(left=place(exp.Subquery(this=tree), begins))]
        while cursor.accept(","):
            items.append(cursor.expression())
        cursor.expect(")")
        return place(exp.Tuple(expressions=items), at)
    inner: exp.Expr = exp.Tuple(expressions=cursor.expressions()) if many else cursor.expression()
    cursor.expect(")")
    return place(inner, at) if position(inner) is None else inner


def order_by(cursor: Rules) -> list[exp.Expr]:
    """Parses ORDER BY expression [ASC | DESC] [NULLS FIRST | LAST], …"""
    cursor.expect_word("order", "by")
    keys: list[exp.Expr] = []
    while True:
        this = cursor.expression()
        descending = cursor.any_word("asc", "desc") == "desc"
        if cursor.at_word("using"):
            cursor.advance()
            sign = cursor.advance()
            if sign.value in ("=", "<>", "<=", ">="):
                message = f"operator {sign.text} is not a valid ordering operator"
                hint = 'Ordering operators must be "<" or ">" members of btree operator families.'
                raise WrongObjectType(message, hint=hint, position=sign.position)
            descending = sign.value == ">"
        first = None
        if cursor.at_word("nulls"):
            first = cursor.accept_word("nulls", "first")
            if not first and not cursor.accept_word("nulls", "last"):
                raise cursor.error()
        keys.append(exp.Ordered(this=this, desc=descending, nulls_first=descending if first is None else first))
        if not cursor.accept(","):
            return keys
