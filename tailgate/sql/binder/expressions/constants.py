"""Binds constants and parameters: literals, NULL, TRUE, -1, $1."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from sqlglot import exp

from tailgate.lake.errors import (
    UndefinedParameter,
)  # fmt: skip
from tailgate.lake.types import BIT, BOOL, INT4, INT8, UNKNOWN
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.name_lookup import find_argument
from tailgate.sql.binder.types.literals import literal, numeric_of
from tailgate.sql.binder.types.parameters import parameter_number
from tailgate.sql.grammar.names import position
from tailgate.sql.lexer.tokens import INTEGER_DIGITS_MAX
from tailgate.sql.plan import (
    Literal,
    Scalar,
)  # fmt: skip
from tailgate.values.numbers.integers import RANGES


def bind_literal(binder: ExpressionBinder, node: exp.Literal) -> Scalar:
    at = position(node)
    if node.is_string:
        return Literal(node.this, UNKNOWN, at)
    text = node.this
    if text.isdigit() and len(text) <= INTEGER_DIGITS_MAX:
        value = int(text)
        for type in (INT4, INT8):
            if value <= RANGES[type.name][1]:
                return Literal(value, type, at)
    return literal(text, numeric_of(text), at)


def bind_bits(binder: ExpressionBinder, node: exp.BitString | exp.HexString) -> Scalar:
    prefix = "b" if isinstance(node, exp.BitString) else "x"
    return literal(prefix + str(node.this), BIT, position(node))


def bind_null(binder: ExpressionBinder, node: exp.Null) -> Scalar:
    return Literal(None, UNKNOWN, position(node))


def bind_boolean(binder: ExpressionBinder, node: exp.Boolean) -> Scalar:
    return Literal(bool(node.this), BOOL, position(node))


def bind_parameter(binder: ExpressionBinder, node: exp.Parameter) -> Scalar:
    number = parameter_number(node.name, position(node))
    if (argument := find_argument(binder, number, position(node))) is not None:
        return argument
    if not binder.parameters.allowed:
        raise UndefinedParameter(f"there is no parameter ${number}", position=position(node))
    return binder.parameters.at(number, position(node))


def bind_negative(binder: ExpressionBinder, node: exp.Neg) -> Scalar:
    inner, negative = node.this, True
    while isinstance(inner, (exp.Paren, exp.Neg)):  # a number with its signs is one literal, as in doNegate()
        negative ^= isinstance(inner, exp.Neg)
        inner = inner.this
    if isinstance(inner, exp.Literal) and not inner.is_string:
        scalar = bind_literal(binder, inner)
        assert isinstance(scalar, Literal)
        value = scalar.value
        assert isinstance(value, (int, Decimal))
        if not negative:
            return replace(scalar, position=position(node))
        if value in (2**31, 2**63) and inner.this.isdigit():
            return Literal(-int(value), INT4 if value == 2**31 else INT8, position(node))
        opposite = -value if isinstance(value, int) else value.copy_negate() if value else value
        return replace(scalar, value=opposite, position=position(node))
    inner = node.this
    return binder.prefix("-", inner, position(node))
