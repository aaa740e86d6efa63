"""Comparisons, and other conditions. One of a value that is NULL is false, not NULL (`settled`).

    numbers with each other; VARCHAR; BYTES; BOOLEAN, arrays, maps and structures for equality only;
    DATE, TIME and TIMESTAMP with the same type and with VARCHAR; DATE with TIMESTAMP

Source: ksqlDB 0.29, documentation, "Operators" and "Type Coercion".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tailgate.lake.errors import DatatypeMismatch, InvalidParameterValue, StatementTooComplex
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import (
    CaseExpression,
    Cast,
    ColumnReference,
    Expression,
    FieldAccess,
    FunctionCall,
    Operation,
    Subscript,
    TypeName,
)
from tailgate.sql.ksqldb.typed.coercion import MOMENTS, of_one_type
from tailgate.sql.ksqldb.typed.constants import moment_of
from tailgate.sql.ksqldb.typed.values import Typed, moment_of_varchar

NAMES = {
    "=": "EQUAL",
    "<>": "NOT_EQUAL",
    "<": "LESS_THAN",
    "<=": "LESS_THAN_OR_EQUAL",
    ">": "GREATER_THAN",
    ">=": "GREATER_THAN_OR_EQUAL",
    "is distinct from": "IS_DISTINCT_FROM",
}
EQUALITY = ("=", "<>", "is distinct from")
EQUAL_ONLY = ("boolean", *types.STRUCTURES)
NEVER_NULL = ("array_contains", "json_array_contains", "is_json_string")  # functions
OPERANDS_MAX = 100_000  # characters of the operands of AND, OR or CASE that may be NULL, which occur twice


def settled(condition: Typed) -> Typed:
    """Returns a condition that is false where it would be NULL."""
    return Typed(f"coalesce({condition.text}, false)", types.BOOLEAN, condition.may_fail)


def condition(text: str, operands: Sequence[Typed], *, may_fail: bool = False) -> Typed:
    """Returns a condition. `may_fail`: it may fail although its operands do not."""
    return Typed(f"({text})", types.BOOLEAN, may_fail=may_fail or any(operand.may_fail for operand in operands))


def comparison(sign: str, left: Typed, right: Typed, position: int) -> Typed:
    """Returns left sign right. Raises 42804 for types that are not compared, and 22007 for a text of another form."""
    if sign != "is distinct from" and types.UNKNOWN in (left.type, right.type):
        raise DatatypeMismatch(
            f"Comparison with NULL not supported: {_shown(left.type)} {sign} {_shown(right.type)}",
            hint="Use IS NULL or IS NOT NULL.",
            position=position,
        )
    one, other = _as_moment(left, right, position), _as_moment(right, left, position)
    if not _compares(sign, one.type.name, other.type.name):
        raise DatatypeMismatch(
            f"Operator {NAMES[sign]} cannot be used to compare {types.in_schema(left.type)} and {types.in_schema(right.type)}",
            position=position,
        )
    return condition(f"{one.text} {sign.upper()} {other.text}", (one, other))


def _shown(type: TypeName) -> str:
    return "NULL" if type == types.UNKNOWN else types.in_schema(type)


def _compares(sign: str, one: str, other: str) -> bool:
    if "unknown" in (one, other) or (one in types.NUMBERS and other in types.NUMBERS) or {one, other} == {"date", "timestamp"}:
        return True
    return one == other and (sign in EQUALITY or one not in EQUAL_ONLY)


def _as_moment(value: Typed, other: Typed, position: int) -> Typed:
    """Returns a VARCHAR that is compared with a DATE, TIME or TIMESTAMP as a value of that type."""
    if value.type != types.VARCHAR or other.type.name not in MOMENTS:
        return value
    if isinstance(value.constant, str):
        return moment_of(value.constant, other.type, position)
    return moment_of_varchar(value, other.type)


def between(operand: Typed, low: Typed, high: Typed, position: int) -> Typed:
    """Returns operand BETWEEN low AND high."""
    above, below = comparison(">=", operand, low, position), comparison("<=", operand, high, position)
    return condition(f"{above.text} AND {below.text}", (above, below))


def in_list(values: Sequence[Typed], expressions: Sequence[Expression], position: int) -> Typed:
    """Returns value IN (values), the first of expressions IN the others, whose types have a common type. Raises 42804."""
    (first, *others), _ = of_one_type(values, expressions, position)
    return condition(f"{first.text} IN ({', '.join(item.text for item in others)})", (first, *others))


def like(operands: Sequence[Typed], position: int) -> Typed:
    """Returns text LIKE pattern [ESCAPE character]. Raises 42804 for other types than VARCHAR."""
    for operand in operands:
        if operand.type not in (types.VARCHAR, types.UNKNOWN):
            raise DatatypeMismatch(f"LIKE expects STRING, got: {types.in_schema(operand.type)}", position=position)
    if len(operands) == 3 and len(str(operands[2].constant)) != 1:
        raise InvalidParameterValue("ESCAPE must be one character", position=position)
    pattern = operands[1].constant
    if len(operands) == 3:
        escape = f" ESCAPE {operands[2].text}"
    else:  # a backslash is a character as others, in PostgreSQL it escapes the next one
        escape = "" if isinstance(pattern, str) and "\\" not in pattern else " ESCAPE ''"
    return condition(f"{operands[0].text} LIKE {operands[1].text}{escape}", operands, may_fail=len(operands) == 3 and pattern is None)


def logical(sign: str, operands: Sequence[Typed], position: int) -> Typed:
    """Returns NOT, AND or OR of conditions. Raises 42804 for other types than BOOLEAN."""
    _check_boolean(sign, operands, position)
    if sign == "not":
        return condition(f"NOT {operands[0].text}", operands)
    return condition(f" {sign.upper()} ".join(o.text for o in operands), operands)


def in_order(
    operation: Operation,
    settled: Callable[[Expression], Typed],
    translated: Callable[[Expression], Typed],
    is_key: Callable[[Expression], bool],
) -> Typed:
    """Returns AND or OR. Raises 42804 for other types than BOOLEAN, and 54001 for one that is nested too deeply.

    ksqlDB evaluates the operands in order. One that is NULL, because a column in it is NULL, makes the result NULL, unless an operand
    before it decides. `settled`: returns an operand that is NULL in this case only. `translated`: returns the last operand, or all if none
    may be NULL, as a value or a condition. `is_key`: whether an expression is one of GROUP BY, whose operands have no values.
    """
    sign, (*first, last) = operation.operator, _chain(operation, is_key)
    nullable = [may_be_null(operand, is_key) for operand in first]
    if not any(nullable):
        return logical(sign, list(map(translated, operation.operands)), operation.position)
    operands = [*map(settled, first), translated(last)]
    _check_boolean(sign, operands, operation.position)
    test, result = ("NOT ", "false") if sign == "and" else ("", "true")
    whens, copied = "", 0
    for is_nullable, operand in zip(nullable, operands, strict=False):
        whens += f" WHEN {operand.text} IS NULL THEN NULL" if is_nullable else ""
        whens += f" WHEN {test}{operand.text} THEN {result}"
        copied += len(operand.text) if is_nullable else 0
    check_copied(copied, operation.position)
    return condition(f"CASE{whens} ELSE {operands[-1].text} END", operands)


def check_copied(length: int, position: int) -> None:
    """Raises 54001 for conditions that are too long to occur twice. `length`: their characters."""
    if length > OPERANDS_MAX:
        raise StatementTooComplex("condition is nested too deeply", position=position)


def _check_boolean(sign: str, operands: Sequence[Typed], position: int) -> None:
    for operand in operands:
        if operand.type not in (types.BOOLEAN, types.UNKNOWN):
            raise DatatypeMismatch(f"{sign.upper()} expects BOOLEAN, got: {types.in_schema(operand.type)}", position=position)


def _chain(operation: Operation, is_key: Callable[[Expression], bool]) -> list[Expression]:
    """Returns the operands of a AND b AND c, or of a OR b OR c."""
    left: Expression = operation
    operands: list[Expression] = []
    while isinstance(left, Operation) and left.operator == operation.operator and not is_key(left):
        left, right = left.operands
        operands.append(right)
    return [left, *reversed(operands)]


def may_be_null(operand: Expression, is_key: Callable[[Expression], bool]) -> bool:
    """Returns whether a condition may be NULL. A comparison never is: it is false if a column in it is NULL."""
    match operand:
        case ColumnReference() | FieldAccess() | Subscript() | Cast() | CaseExpression():
            return True
        case FunctionCall(name):
            return name not in NEVER_NULL
        case Operation("and" | "or" | "not", operands) if not is_key(operand):
            return any(may_be_null(inner, is_key) for inner in operands)
    return False
