"""Parses expressions and types.

Operators from the weakest to the strongest: OR, AND, NOT, predicates (=, BETWEEN, IN, LIKE, IS), + -, * / %, ||, AT, signs.

Source: ksqlDB 0.29, documentation, "Operators", "Data types", "Lexical structure".
"""

from __future__ import annotations

from decimal import Decimal

from tailgate.lake.errors import DatatypeMismatch, StatementTooComplex, SyntaxError_
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb.names import RESERVED
from tailgate.sql.ksqldb.tokens import tokens
from tailgate.sql.lexer.tokens import INTEGER_DIGITS_MAX, Cursor

DEPTH_MAX = 60  # nested expressions: a level takes up to 9 frames of Python's stack, which holds 1000
COMPARISONS = ("=", "<>", "!=", "<=", ">=", "<", ">")
# words of types that are followed by more
STRUCTURES = ("array", "map", "struct")
ALIASES = {"integer": "int", "string": "varchar", "dec": "decimal", "numeric": "decimal"}


class KsqldbCursor(Cursor):
    """A cursor over ksqlDB's tokens, which counts the depth of expressions."""

    def __init__(self, text: str) -> None:
        super().__init__(text, tokens(text))
        self.depth = 0

    def name(self) -> str:
        """Consumes a name and returns it as the catalog has it."""
        token = self.token
        if token.kind not in ("word", "quoted") or (token.kind == "word" and token.value in RESERVED):
            raise self.error()
        return self.advance().value


def expression(cursor: KsqldbCursor) -> e.Expression:
    """Parses an expression. Raises 54001 if it is nested too deeply."""
    cursor.depth += 1
    if cursor.depth > DEPTH_MAX:
        raise StatementTooComplex("expression is nested too deeply", position=cursor.position)
    try:
        left = _and(cursor)
        while cursor.at_word("or"):
            at = cursor.advance().position
            left = e.Operation("or", (left, _and(cursor)), at)
        return left
    finally:
        cursor.depth -= 1


def _and(cursor: KsqldbCursor) -> e.Expression:
    left = _not(cursor)
    while cursor.at_word("and"):
        at = cursor.advance().position
        left = e.Operation("and", (left, _not(cursor)), at)
    return left


def _not(cursor: KsqldbCursor) -> e.Expression:
    signs = []
    while cursor.at_word("not"):
        signs.append(cursor.advance().position)
    operand = _predicate(cursor)
    for at in reversed(signs):
        operand = e.Operation("not", (operand,), at)
    return operand


def _predicate(cursor: KsqldbCursor) -> e.Expression:
    left = _sum(cursor)
    while True:
        at = cursor.position
        sign = next((s for s in COMPARISONS if cursor.at(s)), None)
        if sign is not None:
            cursor.advance()
            left = e.Operation("<>" if sign == "!=" else sign, (left, _sum(cursor)), at)
        elif cursor.accept_word("is"):
            left = _is(cursor, left, at)
        elif cursor.at_word("not") and cursor.peek().value in ("between", "in", "like"):
            cursor.advance()
            left = _range(cursor, left, negated=True, at=at)
        elif cursor.token.kind == "word" and cursor.token.value in ("between", "in", "like"):
            left = _range(cursor, left, negated=False, at=at)
        else:
            return left


def _is(cursor: KsqldbCursor, left: e.Expression, at: int) -> e.Expression:
    """Parses [NOT] {NULL | DISTINCT FROM expression}, after IS."""
    negated = cursor.accept_word("not")
    if cursor.accept_word("null"):
        test: e.Expression = e.Operation("is null", (left,), at)
    else:
        cursor.expect_word("distinct", "from")
        test = e.Operation("is distinct from", (left, _sum(cursor)), at)
    return e.Operation("not", (test,), at) if negated else test


def _range(cursor: KsqldbCursor, left: e.Expression, *, negated: bool, at: int) -> e.Expression:
    """Parses BETWEEN, IN or LIKE."""
    if cursor.accept_word("between"):
        low = _sum(cursor)
        cursor.expect_word("and")
        return e.Between(left, low, _sum(cursor), negated, at)
    if cursor.accept_word("in"):
        cursor.expect("(")
        items = cursor.listed(expression)
        cursor.expect(")")
        return e.InList(left, tuple(items), negated, at)
    cursor.expect_word("like")
    operands: tuple[e.Expression, ...] = (left, _sum(cursor))
    if cursor.accept_word("escape"):
        operands += (e.Constant(cursor.string(), at),)
    like = e.Operation("like", operands, at)
    return e.Operation("not", (like,), at) if negated else like


def _sum(cursor: KsqldbCursor) -> e.Expression:
    left = _product(cursor)
    while (sign := next((s for s in ("+", "-", "||") if cursor.at(s)), None)) is not None:
        at = cursor.advance().position
        left = e.Operation(sign, (left, _product(cursor)), at)
    return left


def _product(cursor: KsqldbCursor) -> e.Expression:
    left = _signed(cursor)
    while (sign := next((s for s in ("*", "/", "%") if cursor.at(s)), None)) is not None:
        at = cursor.advance().position
        left = e.Operation(sign, (left, _signed(cursor)), at)
    return left


def _signed(cursor: KsqldbCursor) -> e.Expression:
    at, negative = cursor.position, False
    while cursor.at("-") or cursor.at("+"):
        negative ^= cursor.advance().value == "-"
    operand = _postfix(cursor)
    if not negative:
        return operand
    if isinstance(operand, e.Constant) and isinstance(operand.value, int | float | Decimal) and not isinstance(operand.value, bool):
        return e.Constant(-operand.value, at)
    return e.Operation("-", (operand,), at)


def _postfix(cursor: KsqldbCursor) -> e.Expression:
    """Parses an operand followed by ->field and [index]."""
    operand = _primary(cursor)
    while True:
        at = cursor.position
        if cursor.accept("->"):
            operand = e.FieldAccess(operand, None if cursor.accept("*") else cursor.name(), at)
        elif cursor.accept("["):
            operand = e.Subscript(operand, expression(cursor), at)
            cursor.expect("]")
        else:
            return operand


def _primary(cursor: KsqldbCursor) -> e.Expression:
    token = cursor.token
    at = token.position
    if token.kind in ("string", "integer", "decimal"):
        return _literal(cursor)
    if cursor.at("("):
        return _parenthesized(cursor)
    match cursor.any_word("null", "true", "false"):
        case "null":
            return e.Constant(None, at)
        case "true" | "false" as word:
            return e.Constant(word == "true", at)
    if cursor.accept_word("case"):
        return _case(cursor, at)
    if cursor.at_word("cast") and cursor.at("(", 1):
        cursor.index += 2
        operand = expression(cursor)
        cursor.expect_word("as")
        type = type_name(cursor)
        cursor.expect(")")
        return e.Cast(operand, type, at)
    if (constructor := _constructor(cursor, at)) is not None:
        return constructor
    if token.kind == "word" and cursor.at("(", 1):
        return _call(cursor)
    first = cursor.name()
    if cursor.accept("=>"):
        return e.Lambda((first,), expression(cursor), at)
    if cursor.accept("."):
        return e.ColumnReference(cursor.name(), first, at)
    return e.ColumnReference(first, None, at)


def _literal(cursor: KsqldbCursor) -> e.Constant:
    token = cursor.advance()
    if token.kind == "string":
        return e.Constant(token.value, token.position)
    if cursor.token.kind == "word" and cursor.position == token.position + len(token.text):
        raise SyntaxError_("identifiers must not start with a digit; surround the identifier with double quotes", position=token.position)
    if token.kind == "integer":
        if len(token.value) > INTEGER_DIGITS_MAX:
            raise DatatypeMismatch(f"{token.value} is out of the range of BIGINT", position=token.position)
        return e.Constant(int(token.value), token.position)
    # a number with an exponent is a DOUBLE, others are DECIMAL
    return e.Constant(float(token.value) if "e" in token.value.lower() else Decimal(token.value), token.position)


def _parenthesized(cursor: KsqldbCursor) -> e.Expression:
    """Parses (expression), or (a, b) => body."""
    begin = cursor.index
    at = cursor.advance().position
    names: list[str] = []
    while cursor.token.kind in ("word", "quoted") and (cursor.at(",", 1) or cursor.at(")", 1)) and cursor.token.value not in RESERVED:
        names.append(cursor.advance().value)
        if not cursor.accept(","):
            break
    if names and cursor.at(")") and cursor.at("=>", 1):
        cursor.index += 2
        return e.Lambda(tuple(names), expression(cursor), at)
    cursor.index = begin + 1
    inner = expression(cursor)
    cursor.expect(")")
    return inner


def _case(cursor: KsqldbCursor, at: int) -> e.CaseExpression:
    """Parses the rest of CASE."""
    operand = None if cursor.at_word("when") else expression(cursor)
    branches = []
    while cursor.accept_word("when"):
        condition = expression(cursor)
        cursor.expect_word("then")
        branches.append((condition, expression(cursor)))
    if not branches:
        raise cursor.error()
    otherwise = expression(cursor) if cursor.accept_word("else") else None
    cursor.expect_word("end")
    return e.CaseExpression(operand, tuple(branches), otherwise, at)


def _constructor(cursor: KsqldbCursor, at: int) -> e.Constructor | None:
    """Parses ARRAY[…], MAP(…) or STRUCT(…), or returns None."""
    if cursor.at_word("array") and cursor.at("[", 1):
        cursor.index += 2
        values = () if cursor.at("]") else tuple(cursor.listed(expression))
        cursor.expect("]")
        return e.Constructor("array", values, (), at)
    if cursor.at_word("map") and cursor.at("(", 1):
        cursor.index += 2
        pairs = [] if cursor.at(")") else cursor.listed(_entry)
        cursor.expect(")")
        return e.Constructor("map", tuple(v for _, v in pairs), tuple(k for k, _ in pairs), at)
    if cursor.at_word("struct") and cursor.at("(", 1):
        cursor.index += 2
        members = [] if cursor.at(")") else cursor.listed(_member)
        cursor.expect(")")
        return e.Constructor("struct", tuple(v for _, v in members), tuple(n for n, _ in members), at)
    return None


def _entry(cursor: KsqldbCursor) -> tuple[e.Expression, e.Expression]:
    """Parses key := value."""
    key = expression(cursor)
    cursor.expect(":=")
    return key, expression(cursor)


def _member(cursor: KsqldbCursor) -> tuple[str, e.Expression]:
    """Parses name := value."""
    name = cursor.name()
    cursor.expect(":=")
    return name, expression(cursor)


def _call(cursor: KsqldbCursor) -> e.FunctionCall:
    """Parses function(…)."""
    token = cursor.advance()
    cursor.expect("(")
    if cursor.accept("*"):
        cursor.expect(")")
        return e.FunctionCall(token.value, (), star=True, position=token.position)
    arguments = () if cursor.at(")") else tuple(cursor.listed(expression))
    cursor.expect(")")
    return e.FunctionCall(token.value, arguments, position=token.position)


def type_name(cursor: KsqldbCursor) -> e.TypeName:
    """Parses a type. The numbers of other types than DECIMAL have no effect, as in VARCHAR(10)."""
    cursor.depth += 1
    if cursor.depth > DEPTH_MAX:
        raise StatementTooComplex("type is nested too deeply", position=cursor.position)
    at = cursor.position
    name = cursor.name()
    name = ALIASES.get(name, name)
    numbers: tuple[int, ...] = ()
    arguments: list[e.TypeName] = []
    fields: list[str] = []
    last_comma = -1
    if name in STRUCTURES and cursor.accept("<"):
        while not cursor.at(">"):
            if name == "struct":
                fields.append(cursor.name())
            arguments.append(type_name(cursor))
            comma = cursor.position
            if not cursor.accept(","):
                break
            last_comma = comma if cursor.at(">") else -1
        cursor.expect(">")
    elif cursor.accept("("):
        if name == "varchar" and cursor.token.kind == "word":
            cursor.expect_word("string")  # KSQL 4: VARCHAR(STRING)
        else:
            numbers = tuple(cursor.listed(KsqldbCursor.integer))
        cursor.expect(")")
    cursor.depth -= 1
    return e.TypeName(name, numbers if name == "decimal" else (), tuple(arguments), tuple(fields), at, last_comma)
