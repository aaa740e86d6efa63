"""Parses operands of expressions: columns, literals, parameters, parentheses, CASE, calls, subscripts."""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake import keywords
from tailgate.lake.errors import SyntaxError_, TailgateError
from tailgate.sql.grammar import calls
from tailgate.sql.grammar.names import identifier, is_name, label, place
from tailgate.sql.grammar.parentheses import at_query, parenthesised, subquery
from tailgate.sql.grammar.rules import Rules
from tailgate.sql.grammar.types import clock_type, interval_fields, type_name
from tailgate.sql.lexer.tokens import Token

# first words of type names with special syntax, for literals such as `timestamp with time zone '…'`
LITERAL_TYPES = frozenset(
    """
    int integer smallint bigint real float double decimal dec numeric boolean bit character char varchar national nchar time timestamp
    interval
    """.split()
)
# names of types that are not key words and have modifiers of one number
MODIFIED_TYPES = frozenset("timestamptz timetz bpchar varbit".split())


def operand(cursor: Rules) -> exp.Expr:
    """Parses an operand of an operator (c_expr)."""
    return _indirection(cursor, _operand(cursor))


def _operand(cursor: Rules) -> exp.Expr:
    token = cursor.token
    match token.kind:
        case "integer" | "decimal":
            cursor.advance()
            return place(exp.Literal.number(token.value), token.position)
        case "string":
            cursor.advance()
            return place(exp.Literal.string(token.value), token.position)
        case "bits":
            cursor.advance()
            kind = exp.BitString if token.value[0] == "b" else exp.HexString
            return place(kind(this=token.value[1:]), token.position)
        case "parameter":
            cursor.advance()
            return place(exp.Parameter(this=exp.Literal.number(token.value)), token.position)
        case "operator" if token.value == "(":
            return _parentheses(cursor)
        case "quoted":
            return _named(cursor)
        case "word":
            return _word(cursor, token)
    raise cursor.error()


def _word(cursor: Rules, token: Token) -> exp.Expr:
    word = token.value
    match word:
        case "null":
            cursor.advance()
            return place(exp.Null(), token.position)
        case "true" | "false":
            cursor.advance()
            return place(exp.Boolean(this=word == "true"), token.position)
        case "case":
            return _case(cursor)
        case "array":
            return _array(cursor)
        case "exists" if cursor.at("(", 1):
            cursor.advance()
            cursor.expect("(")
            tree = cursor.query()
            cursor.expect(")")
            return place(exp.Exists(this=tree), token.position)
        case "row" if cursor.at("(", 1):
            cursor.advance()
            cursor.expect("(")
            items = [] if cursor.at(")") else cursor.expressions()
            cursor.expect(")")
            return place(exp.Tuple(expressions=items), token.position)
    if word in calls.VALUES and not (word == "current_schema" and cursor.at("(", 1)):
        cursor.advance()
        value = place(exp.Anonymous(this=word), token.position)
        if word not in calls.CLOCKS or not cursor.at("("):
            return value
        return place(exp.Cast(this=value, to=clock_type(cursor, calls.CLOCKS[word])), token.position)
    if word in calls.SPECIAL and cursor.at("(", 1):
        cursor.advance()
        return calls.SPECIAL[word](cursor, token)
    if word in LITERAL_TYPES and _is_literal(cursor):
        return _typed_literal(cursor)
    return _named(cursor)


def _is_literal(cursor: Rules) -> bool:
    """Returns whether a typed literal follows, and not a column with the name of a type.

    Looks ahead for a string after the type, without consuming tokens.
    """
    ahead = 1
    while cursor.peek(ahead).kind == "word" and cursor.peek(ahead).value in (
        "precision",
        "varying",
        "with",
        "without",
        "time",
        "zone",
        "character",
        "char",
    ):
        ahead += 1
    if cursor.at("(", ahead):
        while not cursor.at(")", ahead) and cursor.peek(ahead).kind not in ("end", "error"):
            ahead += 1
        ahead += 1
        while cursor.peek(ahead).kind == "word" and cursor.peek(ahead).value in ("with", "without", "time", "zone"):
            ahead += 1
    return cursor.peek(ahead).kind == "string" or (cursor.peek().kind == "word" and cursor.token.value in keywords.COLUMN and ahead > 1)


def _typed_literal(cursor: Rules) -> exp.Expr:
    start = cursor.token
    to = type_name(cursor)
    at = cursor.position
    value = place(exp.Literal.string(cursor.string()), at)
    if to.args["kind"] == "interval" and not to.expressions and "fields" not in to.meta:
        to = interval_fields(cursor, to)
    if to.meta.get("implied"):
        to.set("expressions", [])
    return place(exp.Cast(this=value, to=to), start.position)


def _named(cursor: Rules) -> exp.Expr:
    """Parses a column, a call, or a literal that follows the name of its type."""
    token = cursor.token
    following = cursor.peek()
    if following.kind == "string" and is_name(token, keywords.RESERVED | keywords.COLUMN):
        return _typed_literal(cursor)
    if cursor.at("(", 1) and is_name(token, keywords.NOT_A_FUNCTION):
        if token.value in MODIFIED_TYPES and cursor.peek(2).kind == "integer" and cursor.at(")", 3) and cursor.peek(4).kind == "string":
            return _typed_literal(cursor)
        cursor.advance()
        return calls.call(cursor, identifier(token))
    if not is_name(token):
        if is_name(token, keywords.RESERVED | keywords.COLUMN):  # left('abc', 1): such a word can only be the name of a function
            cursor.advance()
        raise cursor.error()
    cursor.advance()
    parts: list[exp.Identifier | exp.Star] = [identifier(token)]
    while cursor.at("."):
        if cursor.at("*", 1):
            cursor.advance()
            star = cursor.advance()
            return place(_column([*parts, place(exp.Star(), star.position)]), token.position)
        cursor.advance()
        parts.append(label(cursor))
    if len(parts) > 4:
        shown = ".".join(p.name for p in parts)
        raise SyntaxError_(f"improper qualified name (too many dotted names): {shown}", position=token.position)
    if cursor.at("(") and isinstance(function := parts[-1], exp.Identifier):
        return calls.call(cursor, function, schema=parts[-2].name if len(parts) > 1 else "", position=token.position)
    if cursor.token.kind == "string" and len(parts) > 1:
        cursor.index -= 2 * len(parts) - 1
        return _typed_literal(cursor)
    return place(_column(parts), token.position)


def _column(parts: list[exp.Identifier | exp.Star]) -> exp.Expr:
    this, table, db, catalog = (list(reversed(parts)) + [None] * 3)[:4]
    return exp.Column(this=this, table=table, db=db, catalog=catalog)


def _parentheses(cursor: Rules) -> exp.Expr:
    """Parses ( expression ), ( row ) or ( query ). A query may itself begin with parentheses."""
    at = cursor.position
    if at_query(cursor, 1):
        start = cursor.index
        try:
            return subquery(cursor)
        except TailgateError:
            # ((SELECT 1) + 1) also looks like a query at first
            if not cursor.tokens[start + 1].value == "(":
                raise
            cursor.index = start
    cursor.expect("(")
    items = cursor.expressions()
    cursor.expect(")")
    if len(items) > 1:
        return place(exp.Tuple(expressions=items), at)
    return place(exp.Paren(this=items[0]), at)


def _case(cursor: Rules) -> exp.Expr:
    at = cursor.advance().position
    subject = None if cursor.at_word("when") else cursor.expression()
    branches = []
    while True:
        start = cursor.position
        cursor.expect_word("when")
        condition = cursor.expression()
        cursor.expect_word("then")
        branches.append(place(exp.If(this=condition, true=cursor.expression()), start))
        if not cursor.at_word("when"):
            break
    otherwise = cursor.expression() if cursor.accept_word("else") else None
    cursor.expect_word("end")
    return place(exp.Case(this=subject, ifs=branches, default=otherwise), at)


def _array(cursor: Rules) -> exp.Expr:
    at = cursor.advance().position
    if cursor.at("("):
        return place(exp.Anonymous(this="array", expressions=[parenthesised(cursor)]), at)
    if not cursor.at("["):
        raise cursor.error()
    return place(_elements(cursor), at)


def _elements(cursor: Rules) -> exp.Array:
    """Parses [ expression, … ] or [ [ … ], … ]."""
    cursor.expect("[")
    items: list[exp.Expr] = []
    if not cursor.at("]"):
        nested = cursor.at("[")
        while True:
            if nested and not cursor.at("["):
                raise cursor.error()
            at = cursor.position
            items.append(place(_elements(cursor), at) if nested else cursor.expression())
            if not cursor.accept(","):
                break
    cursor.expect("]")
    return exp.Array(expressions=items)


def subscript(cursor: Rules) -> exp.Expr:
    """Parses [index] or [[from]:[to]]. Returns the index, or an exp.Slice."""
    cursor.expect("[")
    low = None if cursor.at(":") else cursor.expression()
    index = exp.Slice(this=low, expression=None if cursor.at("]") else cursor.expression()) if cursor.accept(":") else low
    cursor.expect("]")
    assert index is not None
    return index


def _indirection(cursor: Rules, node: exp.Expr) -> exp.Expr:
    """Parses [index], [from:to], .field and .* after a column, parameter, call or parentheses."""
    while True:
        at = cursor.position
        if cursor.at("[") and not isinstance(node, exp.Literal):
            node = place(exp.Bracket(this=node, expressions=[subscript(cursor)]), at)
        elif cursor.at(".") and isinstance(node, (exp.Paren, exp.Parameter, exp.Subquery, exp.Bracket, exp.Dot, exp.Anonymous)):
            cursor.advance()
            star = cursor.token
            field = place(exp.Star(), star.position) if cursor.accept("*") else label(cursor)
            node = place(exp.Dot(this=node, expression=field), at)
        else:
            return node
