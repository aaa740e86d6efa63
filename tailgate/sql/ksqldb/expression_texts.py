"""Expressions as texts of ksqlDB, for messages: `s.n + 1 > 2` is ((S.N + 1) > 2)."""

from __future__ import annotations

from typing_extensions import assert_never

from tailgate.lake.keywords import quoted_text
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.names import quoted


def text(expression: e.Expression) -> str:
    """Returns the text of an expression, with parentheses around operators."""
    match expression:
        case e.Constant(value):
            return _constant(value)
        case e.ColumnReference(column, source):
            return quoted(column) if source is None else f"{quoted(source)}.{quoted(column)}"
        case e.FunctionCall(name, arguments, star):
            return f"{name.upper()}({'*' if star else _listed(arguments)})"
        case e.Operation("not", (e.Operation("is null", (operand,)),)):
            return f"({text(operand)} IS NOT NULL)"
        case e.Operation("is null", (operand,)):
            return f"({text(operand)} IS NULL)"
        case e.Operation(operator, (operand,)):
            return f"({operator.upper()} {text(operand)})" if operator == "not" else f"{operator}{text(operand)}"
        case e.Operation(operator, (left, right, *others)):
            ending = "".join(f" ESCAPE {text(other)}" for other in others)
            return f"({text(left)} {operator.upper()} {text(right)}{ending})"
        case e.Operation(operator):
            return operator.upper()
        case e.InList(operand, items, negated):
            return _negated(f"({text(operand)} IN ({_listed(items)}))", negated)
        case e.Between(operand, low, high, negated):
            return _negated(f"({text(operand)} BETWEEN {text(low)} AND {text(high)})", negated)
        case e.CaseExpression(operand, branches, otherwise):
            start = "CASE" if operand is None else f"CASE {text(operand)}"
            middle = "".join(f" WHEN {text(condition)} THEN {text(result)}" for condition, result in branches)
            return f"({start}{middle}{'' if otherwise is None else f' ELSE {text(otherwise)}'} END)"
        case e.Cast(operand, type):
            return f"CAST({text(operand)} AS {types.in_schema(type)})"
        case e.FieldAccess(operand, name):
            return f"{text(operand)}->{'*' if name is None else quoted(name)}"
        case e.Subscript(operand, index):
            return f"{text(operand)}[{text(index)}]"
        case e.Constructor("array", values):
            return f"ARRAY[{_listed(values)}]"
        case e.Constructor(kind, values, keys):
            names = (quoted(key) if isinstance(key, str) else text(key) for key in keys)
            return f"{kind.upper()}({', '.join(f'{name}:={text(value)}' for name, value in zip(names, values, strict=True))})"
        case e.Lambda(parameters, body):
            return f"({', '.join(map(quoted, parameters))}) => {text(body)}"
        case _:
            assert_never(expression)


def _negated(predicate: str, negated: bool) -> str:
    return f"(NOT {predicate})" if negated else predicate


def _listed(expressions: tuple[e.Expression, ...]) -> str:
    return ", ".join(map(text, expressions))


def _constant(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return quoted_text(value)
    return str(value)
