"""Scalars for people: about what was typed, over names of columns."""

from __future__ import annotations

from typing_extensions import assert_never

from sql.plan import (
    AggregateCall,
    And,
    Call,
    Case,
    Coalesce,
    Column,
    Extreme,
    InList,
    IsDistinct,
    IsNull,
    Literal,
    Not,
    Or,
    Parameter,
    Relation,
    Scalar,
)

Names = tuple[str, ...]


def names(relation: Relation) -> Names:
    return tuple(f.name for f in relation.columns)


def words(scalar: Scalar, over: Names) -> str:
    def go(s: Scalar) -> str:
        text = words(s, over)
        return f"({text})" if isinstance(s, And | Or) or (isinstance(s, Call) and s.function.kind == "operator") else text

    match scalar:
        case Column(index=index):
            return over[index]
        case Literal(value=value, type=type):
            if value is None:
                return "NULL"
            if isinstance(value, bool):
                return str(value).lower()
            return str(value) if type.facts.category == "N" else "'" + str(value).replace("'", "''") + "'"
        case Parameter(number=number):
            return f"${number}"
        case Call(function, arguments, type) if function.kind == "cast":
            return f"{go(arguments[0])}::{type}"
        case Call(function, arguments) if function.kind == "operator":
            return f" {function.name} ".join(map(go, arguments))
        case Call(function, arguments) if function.kind == "prefix":
            return f"{function.name} {go(arguments[0])}"
        case Call(function, arguments):
            name, _, unit = function.name.partition(":")
            given = [f"'{unit}'"] if unit else []
            return f"{name}({', '.join(given + [words(a, over) for a in arguments])})"
        case And(arguments):
            return " AND ".join(map(go, arguments))
        case Or(arguments):
            return " OR ".join(map(go, arguments))
        case Not(argument):
            return f"NOT {go(argument)}"
        case IsNull(argument):
            return f"{go(argument)} IS NULL"
        case IsDistinct(left, right):
            return f"{go(left)} IS DISTINCT FROM {go(right)}"
        case InList(argument, items):
            return f"{go(argument)} IN ({', '.join(map(go, items))})"
        case Case(branches, otherwise):
            each = " ".join(f"WHEN {words(when, over)} THEN {words(then, over)}" for when, then in branches)
            return f"CASE {each} ELSE {words(otherwise, over)} END"
        case Coalesce(arguments):
            return f"coalesce({', '.join(words(a, over) for a in arguments)})"
        case Extreme(which, arguments):
            return f"{which}({', '.join(words(a, over) for a in arguments)})"
        case _:
            assert_never(scalar)


def aggregate_words(call: AggregateCall, over: Names) -> str:
    arguments = ", ".join(words(a, over) for a in call.arguments) or "*"
    text = f"{call.function.name}({'DISTINCT ' if call.distinct else ''}{arguments})"
    return text if call.filter is None else f"{text} FILTER (WHERE {words(call.filter, over)})"
