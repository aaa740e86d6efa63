"""Arithmetic in ksqlDB's types.

    INT      wraps around, as in Java; so does BIGINT
    DOUBLE   a division by zero is an infinity or NaN, and a result that is too large an infinity
    DECIMAL  precision and scale of the result follow from those of the operands
    VARCHAR  + is concatenation; a NULL is the text null, as in Java

Another division by zero fails.

Source: ksqlDB 0.29, documentation, "Operators", and "Data types", section "Decimal".
"""

from __future__ import annotations

from tailgate.lake.errors import DatatypeMismatch
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.typed.values import Typed, coerced

OF_BIGINT = {"+": "ksqldb_plus", "-": "ksqldb_minus", "*": "ksqldb_times"}
OF_DOUBLE = {
    "+": "ksqldb_double_plus",
    "-": "ksqldb_double_minus",
    "*": "ksqldb_double_times",
    "/": "ksqldb_quotient",
    "%": "ksqldb_remainder",
}


def arithmetic(sign: str, operands: list[Typed], position: int, *, is_pulled: bool = False) -> Typed:
    """Returns a sum, difference, product, quotient or remainder, or a negation. Raises 42804.

    `is_pulled`: as of Scope. In pull queries, + of a text that is NULL is NULL, because ksqlDB does not compile their expressions.
    """
    operand_types, may_fail = [o.type for o in operands], any(o.may_fail for o in operands)
    if sign == "+" and operand_types == [types.VARCHAR, types.VARCHAR]:
        parts = [o.text if is_pulled or o.constant is not None else f"coalesce({o.text}, 'null')" for o in operands]
        return Typed(f"({' || '.join(parts)})", types.VARCHAR, may_fail)
    if any(t.name not in types.NUMBERS for t in operand_types):  # NULL without a type, too
        raise _unsupported(operands, position)
    type = types.widest(operand_types)
    if len(operands) == 1:
        return _negation(coerced(operands[0], type))
    if type.name == "decimal":
        return _decimal(sign, operands)
    left, right = (coerced(o, type).text for o in operands)
    if type == types.DOUBLE:
        return Typed(f"{OF_DOUBLE[sign]}({left}, {right})", type, may_fail)
    if sign in ("/", "%"):
        is_positive = right.isdigit() and int(right) > 0  # a literal
        return Typed(f"({left} {sign} {right})", type, may_fail or not is_positive)
    if type == types.INT:
        return Typed(f"ksqldb_wrapped(CAST({left} AS bigint) {sign} {right})", type, may_fail)
    return Typed(f"{OF_BIGINT[sign]}({left}, {right})", type, may_fail)


def _unsupported(operands: list[Typed], position: int) -> DatatypeMismatch:
    listed = " ".join("null" if o.type == types.UNKNOWN else types.in_schema(o.type) for o in operands)
    return DatatypeMismatch(f"Unsupported arithmetic types. {listed}", position=position)


def _negation(operand: Typed) -> Typed:
    if operand.type == types.INT:
        return Typed(f"ksqldb_wrapped(- CAST({operand.text} AS bigint))", types.INT, operand.may_fail)
    if operand.type == types.BIGINT:
        return Typed(f"ksqldb_minus(0, {operand.text})", types.BIGINT, operand.may_fail)
    return Typed(f"(- {operand.text})", operand.type, operand.may_fail)


def _decimal(sign: str, operands: list[Typed]) -> Typed:
    left, right = (coerced(o, types.decimal_of(o.type)) for o in operands)
    type = _result(sign, left.type, right.type)
    return Typed(f"CAST({left.text} {sign} {right.text} AS {types.postgresql(type)})", type, may_fail=True)


def _result(sign: str, left: TypeName, right: TypeName) -> TypeName:
    """Returns the type of a result of two DECIMAL."""
    (p1, s1), (p2, s2) = left.numbers, right.numbers
    match sign:
        case "*":
            return types.bounded(p1 + p2 + 1, s1 + s2)
        case "/":
            scale = max(types.SCALE_MIN, s1 + p2 + 1)
            return types.bounded(p1 - s1 + s2 + scale, scale)
        case "%":
            scale = max(s1, s2)
            return types.bounded(min(p1 - s1, p2 - s2) + scale, scale)
    scale = max(s1, s2)
    return types.bounded(max(p1 - s1, p2 - s2) + scale + 1, scale)
