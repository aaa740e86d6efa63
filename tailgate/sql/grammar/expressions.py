"""Parses expressions by precedence climbing, with PostgreSQL's operator precedence.

A level is the precedence of an operator. `expression(cursor, level)` consumes all operators of this
level and higher ones. Comparisons are not associative: `a < b < c` is an error at the second operator,
as in PostgreSQL.

Source: PostgreSQL 15, "Operator Precedence"; gram.y, a_expr, b_expr and the %left lines.
"""

from __future__ import annotations

from sqlglot import exp

from tailgate.sql.grammar import primaries
from tailgate.sql.grammar.calls import FORMS
from tailgate.sql.grammar.names import label, place
from tailgate.sql.grammar.operators import COMPARISONS, binary
from tailgate.sql.grammar.parentheses import parenthesised
from tailgate.sql.grammar.rules import ADD, AND, COLLATE, COMPARE, IS, LIKE, MULTIPLY, NOT, OR, OTHER, POWER, SIGN, ZONE, Rules
from tailgate.sql.grammar.types import type_name

LEVELS = {"+": ADD, "-": ADD, "*": MULTIPLY, "/": MULTIPLY, "%": MULTIPLY, "^": POWER} | dict.fromkeys(COMPARISONS, COMPARE)
PUNCTUATION = frozenset({",", "(", ")", "[", "]", ".", ";", ":", "::", ":=", "=>", "..", "\\"})


def expression(cursor: Rules, level: int = OR, *, boolean: bool = True, left: exp.Expr | None = None) -> exp.Expr:
    """Parses an expression with operators of this level and higher ones.

    `boolean`: if false, an expression without AND, OR, IN, LIKE and similar (b_expr). `left`: the first
    operand, if it is already parsed.
    """
    left = _prefix(cursor, boolean) if left is None else left
    compared = False
    while True:
        token = cursor.token
        if token.kind == "operator" and token.value not in PUNCTUATION:
            power = LEVELS.get(token.value, OTHER)
            if power < level:
                return left
            if power == COMPARE:
                if compared:
                    raise cursor.error()
                compared = True
            cursor.advance()
            left = binary(token.value, left, _operand(cursor, power + 1, boolean), token.position)
        elif token.kind == "word" and (
            following := _word_operator(cursor, token.value, left, level) if boolean else _b_word(cursor, token.value, left, level)
        ):
            left = following
        elif cursor.at("::"):
            cursor.advance()
            left = place(exp.Cast(this=left, to=type_name(cursor)), token.position)
        else:
            return left


def _prefix(cursor: Rules, boolean: bool) -> exp.Expr:
    """Parses an operand with its prefix operators."""
    token = cursor.token
    if token.kind == "word" and token.value == "not" and boolean:
        cursor.advance()
        return place(exp.Not(this=expression(cursor, NOT)), token.position)
    if token.kind == "operator" and token.value not in PUNCTUATION and token.value not in COMPARISONS:
        if token.value in ("*", "/", "%", "^"):
            raise cursor.error()
        cursor.advance()
        if token.value in ("+", "-"):
            operand = expression(cursor, SIGN, boolean=boolean)
            if token.value == "+":
                return place(exp.Anonymous(this="+", expressions=[operand]), token.position)
            return place(exp.Neg(this=operand), token.position)
        operand = expression(cursor, OTHER + 1, boolean=boolean)
        return place(exp.Anonymous(this=token.value, expressions=[operand]), token.position)
    return primaries.operand(cursor)


def _operand(cursor: Rules, level: int, boolean: bool) -> exp.Expr:
    """Parses the right side of an operator: an expression, or ANY, SOME or ALL of a query or array."""
    token = cursor.token
    if boolean and token.kind == "word" and token.value in ("any", "some", "all"):
        cursor.advance()
        inner = parenthesised(cursor)
        return place((exp.All if token.value == "all" else exp.Any)(this=inner), token.position)
    return expression(cursor, level, boolean=boolean)


def _b_word(cursor: Rules, word: str, left: exp.Expr, level: int) -> exp.Expr | None:
    if word == "is" and level <= IS and cursor.peek().value in ("distinct", "not"):
        return _is(cursor, left)
    return None


def _word_operator(cursor: Rules, word: str, left: exp.Expr, level: int) -> exp.Expr | None:
    """Parses an operator that is a word, such as IS, IN or LIKE.

    Returns None if there is none of this level.
    """
    token = cursor.token
    following = cursor.peek().value if cursor.peek().kind == "word" else ""
    match word:
        case "or" if level <= OR:
            cursor.advance()
            return place(exp.Or(this=left, expression=expression(cursor, AND)), token.position)
        case "and" if level <= AND:
            cursor.advance()
            return place(exp.And(this=left, expression=expression(cursor, NOT)), token.position)
        case "is" if level <= IS:
            return _is(cursor, left)
        case "isnull" | "notnull" if level <= IS:
            cursor.advance()
            test = place(exp.Is(this=left, expression=exp.Null()), token.position)
            return test if word == "isnull" else place(exp.Not(this=test), token.position)
        case "not" if level <= LIKE and following in ("between", "in", "like", "ilike", "similar"):
            cursor.advance()
            inner = _word_operator(cursor, following, left, LIKE)
            assert inner is not None
            negation = place(exp.Not(this=inner), token.position)
            negation.meta["word"] = True
            return negation
        case "between" if level <= LIKE:
            return _between(cursor, left)
        case "in" if level <= LIKE:
            cursor.advance()
            inner = parenthesised(cursor, many=True)
            if isinstance(inner, exp.Subquery):
                return place(exp.In(this=left, query=inner), token.position)
            return place(exp.In(this=left, expressions=inner.expressions), token.position)
        case "like" | "ilike" if level <= LIKE:
            cursor.advance()
            kind = exp.Like if word == "like" else exp.ILike
            return _escape(cursor, place(kind(this=left, expression=_operand(cursor, LIKE + 1, True)), token.position))
        case "similar" if level <= LIKE and following == "to":
            cursor.advance()
            cursor.expect_word("to")
            return _escape(cursor, place(exp.SimilarTo(this=left, expression=expression(cursor, LIKE + 1)), token.position))
        case "operator" if level <= OTHER and cursor.at("(", 1):
            return _qualified_operator(cursor, left)
        case "overlaps" if level <= OTHER:
            cursor.advance()
            return place(exp.Overlaps(this=left, expression=expression(cursor, OTHER + 1)), token.position)
        case "at" if level <= ZONE and following == "time":
            cursor.expect_word("at", "time", "zone")
            return place(exp.AtTimeZone(this=left, zone=expression(cursor, ZONE + 1)), token.position)
        case "collate" if level <= COLLATE:
            cursor.advance()
            name = label(cursor)
            while cursor.accept("."):
                name = label(cursor)
            return place(exp.Collate(this=left, expression=name), token.position)
    return None


def _between(cursor: Rules, left: exp.Expr) -> exp.Expr:
    """Parses BETWEEN [SYMMETRIC | ASYMMETRIC] low AND high."""
    at = cursor.advance().position
    symmetric = cursor.accept_word("symmetric") or None
    if not symmetric:
        cursor.accept_word("asymmetric")
    low = expression(cursor, COMPARE, boolean=False)
    cursor.expect_word("and")
    high = expression(cursor, LIKE + 1)
    return place(exp.Between(this=left, low=low, high=high, symmetric=symmetric), at)


def _qualified_operator(cursor: Rules, left: exp.Expr) -> exp.Expr:
    """Parses OPERATOR(schema.sign) and the right operand."""
    at = cursor.advance().position
    cursor.expect("(")
    while cursor.at(".", 1):
        label(cursor)
        cursor.expect(".")
    if cursor.token.kind != "operator" or cursor.token.value in PUNCTUATION:
        raise cursor.error()
    sign = cursor.advance().value
    cursor.expect(")")
    return binary(sign, left, _operand(cursor, OTHER + 1, True), at)


def _escape(cursor: Rules, like: exp.Expr) -> exp.Expr:
    at = cursor.position
    if cursor.accept_word("escape"):
        return place(exp.Escape(this=like, expression=expression(cursor, LIKE + 1)), at)
    return like


def _is(cursor: Rules, left: exp.Expr) -> exp.Expr:
    """Parses IS [NOT] NULL, TRUE, FALSE, UNKNOWN, [NFC | NFD | NFKC | NFKD] NORMALIZED or DISTINCT FROM."""
    at = cursor.advance().position
    negated = cursor.accept_word("not")
    test: exp.Expr
    if cursor.accept_word("distinct", "from"):
        right = expression(cursor, IS + 1)
        return place((exp.NullSafeEQ if negated else exp.NullSafeNEQ)(this=left, expression=right), at)
    form = cursor.any_word(*FORMS) if cursor.peek().value == "normalized" else None
    match cursor.any_word("normalized") if form else cursor.any_word("null", "true", "false", "unknown", "document", "normalized"):
        case "null":
            test = exp.Is(this=left, expression=exp.Null())
        case "true":
            test = exp.Is(this=left, expression=exp.Boolean(this=True))
        case "false":
            test = exp.Is(this=left, expression=exp.Boolean(this=False))
        case "normalized":
            arguments = [left, *([place(exp.Literal.string(form.upper()), at)] if form else [])]
            test = exp.Anonymous(this="is_normalized", expressions=arguments)
        case "unknown" | "document" as word:
            test = exp.Is(this=left, expression=exp.Var(this=word))
        case _:
            raise cursor.error()
    place(test, at)
    test.meta["negated"] = negated
    return place(exp.Not(this=test), at) if negated else test
