"""One scalar as Spark SQL: typed, from the catalogue's templates, never from PostgreSQL's text.

Spark runs in ANSI mode with the session's zone at UTC; functions whose names begin with tg_ are the Java library's.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from decimal import Decimal

from typing_extensions import assert_never

from lake.errors import FeatureNotSupported
from lake.types import Type
from sql.plan import And, Call, Case, Coalesce, Column, Extreme, InList, IsDistinct, IsNull, Literal, Not, Or, Parameter, Scalar


def expression(scalar: Scalar, columns: Sequence[str]) -> str:
    """Spark SQL over columns of these names, complete in itself."""

    def of(s: Scalar) -> str:
        return expression(s, columns)

    match scalar:
        case Column(index=index):
            return columns[index]
        case Literal(value=value, type=type):
            return literal(value, type)
        case Parameter(number=number, position=position):
            raise FeatureNotSupported(f"parameter ${number} is not supported here", position=position)
        case Call():
            return _call(scalar, [of(a) for a in scalar.arguments])
        case And(arguments=arguments):
            return "(" + " AND ".join(map(of, arguments)) + ")"
        case Or(arguments=arguments):
            return "(" + " OR ".join(map(of, arguments)) + ")"
        case Not(argument=argument):
            return f"(NOT {of(argument)})"
        case IsNull(argument=argument):
            return f"({of(argument)} IS NULL)"
        case IsDistinct(left=left, right=right):
            return f"(NOT ({of(left)} <=> {of(right)}))"
        case InList(argument=argument, items=items):
            return f"({of(argument)} IN ({', '.join(map(of, items))}))"
        case Case(branches=branches, otherwise=otherwise):
            whens = " ".join(f"WHEN {of(condition)} THEN {of(then)}" for condition, then in branches)
            return f"(CASE {whens} ELSE {of(otherwise)} END)"
        case Coalesce(arguments=arguments):
            return f"coalesce({', '.join(map(of, arguments))})"
        case Extreme(which=which, arguments=arguments):
            return of(arguments[0]) if len(arguments) == 1 else f"{which}({', '.join(map(of, arguments))})"
        case _:
            assert_never(scalar)


def _call(call: Call, arguments: list[str]) -> str:
    template = call.function.spark
    if not template:
        raise FeatureNotSupported(f"{call.function} is not supported in a materialized view", position=call.position)
    return fill(template, arguments, [a.type for a in call.arguments], call.type, call.type.spark)


def fill(template: str, arguments: list[str], types: Sequence[Type], result: Type, spelled: str) -> str:
    """A template with its marks replaced; `spelled` is the result's type in the engine's words."""
    marks: dict[str, str] = {"type": spelled}
    if result.name == "numeric":
        precision, scale = result.decimal
        marks |= {"precision": str(precision), "scale": str(scale)}
    elif result.modifiers:
        marks["length"] = str(result.modifiers[0])
    if types and types[0].name == "numeric":
        marks["scale0"] = str(types[0].decimal[1])
    return template.format(*arguments, **marks)


def literal(value: object, type: Type) -> str:
    """A value in stored form as Spark SQL of exactly its type."""
    spelled = type.spark
    if value is None:
        return f"CAST(NULL AS {spelled})"
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return f"CAST({value} AS {spelled})" if -(2**63) < value else f"CAST('{value}' AS {spelled})"
        case float() | Decimal():
            return f"CAST('{value}' AS {spelled})"
        case str():
            return quoted(value)
        case bytes():
            return f"X'{value.hex()}'"
        case datetime() if value.tzinfo is not None:
            return f"TIMESTAMP'{value.astimezone(timezone.utc).replace(tzinfo=None).isoformat(sep=' ')}Z'"
        case datetime():
            return f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"
        case tuple():
            months, days, micros = value
            return f"named_struct('months', {months}, 'days', {days}, 'micros', CAST({micros} AS BIGINT))"
        case _:
            return f"DATE'{value}'"


def quoted(text: str) -> str:
    """A string literal; Spark reads backslashes as escapes.

    >>> print(quoted("it's \\\\d"))
    'it\\'s \\\\d'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
