"""Plans for people: about what was typed, over names of columns."""

from __future__ import annotations

from typing_extensions import assert_never

from lake.catalog import Catalog, Item
from sql.explain import line
from sql.functions.aggregates import WITHIN_GROUP
from sql.plan import (
    Aggregate,
    AggregateCall,
    And,
    Call,
    Case,
    Coalesce,
    Column,
    Distinct,
    Extreme,
    Filter,
    Generate,
    InList,
    IsDistinct,
    IsNull,
    Join,
    Limit,
    Literal,
    Not,
    Or,
    Parameter,
    Project,
    Relation,
    Scalar,
    Scan,
    SetOperation,
    Sort,
    SortKey,
    TopK,
    Union_,
    Values,
    Window,
)
from sql.relations import inputs

Names = tuple[str, ...]


def names(relation: Relation) -> Names:
    return tuple(f.name for f in relation.columns)


def label(scalar: Scalar, over: Names) -> str:
    """A name for a column that was nobody's: of what it is computed from.

    >>> from sql.plan import Column
    >>> from lake.types import TEXT
    >>> label(Column(0, TEXT), ("a", "b"))
    'a'
    """
    match scalar:
        case Column(index=index):
            return over[index]
        case Call(function, (_, Literal(value=str() as key))) if function.name in ("->", "->>"):
            return key
        case Call(_, (argument, *_)):
            return label(argument, over)
        case _:
            return "?column?"


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
    arguments = ", ".join(words(a, over) for a in call.arguments)
    order = f"ORDER BY {order_words(call.order, over)}" if call.order else ""
    if call.function.name in WITHIN_GROUP:
        text = f"{call.function.name}({arguments}) WITHIN GROUP ({order})"
    else:
        inside = " ".join(w for w in ("DISTINCT" if call.distinct else "", arguments or "*", order) if w)
        text = f"{call.function.name}({inside})"
    return text if call.filter is None else f"{text} FILTER (WHERE {words(call.filter, over)})"


def order_words(keys: tuple[SortKey, ...], over: Names) -> str:
    """What to sort by, as after ORDER BY."""
    return ", ".join(
        words(k.expression, over)
        + (" DESC" if k.descending else "")
        + ("" if k.nulls_first == k.descending else " NULLS FIRST" if k.nulls_first else " NULLS LAST")
        for k in keys
    )


def node_words(plan: Relation, catalog: Catalog) -> str:
    """One node of a plan, without what is below it."""
    match plan:
        case Scan(relation=id):
            return f"Scan: {catalog[id].name} ({_kind(catalog[id])})"
        case Filter(input, condition):
            return f"Filter: {words(condition, names(input))}"
        case Project(input, expressions, columns):
            parts = []
            for e, c in zip(expressions, columns, strict=True):
                text = words(e, names(input))
                parts.append(text if text == c.name else f"{text} AS {c.name}")
            return f"Project: {', '.join(parts)}"
        case Join(left, right, kind, condition):
            on = "" if condition is None else words(condition, names(left) + names(right))
            return ("Join" if kind == "inner" else f"Join ({kind})") + (f": {on}" if on else "")
        case Aggregate(input, keys, aggregates):
            by = ", ".join(words(k, names(input)) for k in keys)
            calls = ", ".join(aggregate_words(a, names(input)) for a in aggregates)
            return f"Aggregate: keys=[{by}] aggregates=[{calls}]"
        case Distinct():
            return "Distinct"
        case Values():
            return "Values"
        case Union_():
            return "Union"
        case Sort():
            return "Sort"
        case Limit():
            return "Limit"
        case SetOperation() | TopK() | Window() | Generate():
            return line(plan)
        case _:
            assert_never(plan)


def _kind(item: Item) -> str:
    if item.kind == "source":
        return "append-only" if not item.stored else "keyed" if item.key is not None else "without key"
    return item.kind


def tree(plan: Relation, catalog: Catalog, first: str = "", rest: str = "") -> str:
    """A plan, a node a line."""
    lines = [first + node_words(plan, catalog)]
    below = inputs(plan)
    for i, input in enumerate(below):
        last = i == len(below) - 1
        lines.append(tree(input, catalog, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  ")))
    return "\n".join(lines)
