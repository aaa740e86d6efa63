"""Prints a plan as a tree, for EXPLAIN and tests. The output has no ids and is stable.

Project: [c0, count AS n]
└─ Reduce: keys=[channel] aggregates=[count(*)]
   └─ Scan: pageviews
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from typing_extensions import assert_never

from tailgate.lake.keywords import quoted_text
from tailgate.lake.types import Field
from tailgate.sql.functions.aggregates import WITHIN_GROUP
from tailgate.sql.plan import (
    AggregateCall,
    And,
    ArrivalJoin,
    Call,
    Case,
    Closing,
    Coalesce,
    Column,
    Distinct,
    Filter,
    Generate,
    GreatestLeast,
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
    Recursive,
    Reduce,
    Relation,
    Scalar,
    Scan,
    SetOperation,
    Sort,
    SortKey,
    TopK,
    UnionAll,
    Values,
    Window,
    WithinJoin,
    WorkingTable,
)  # fmt: skip
from tailgate.sql.plan.traversal import inputs
from tailgate.sql.plan.writes import BoundWrite, ChangeRows, InsertRows, MergeRows, TruncateTables, WithRows
from tailgate.values.composites import dimensions
from tailgate.values.composites.arrays import nested_text
from tailgate.values.numbers.money import write as write_money
from tailgate.values.registry import text_writer
from tailgate.values.times.dates import write_date, write_time, write_timestamp, write_timestamptz
from tailgate.values.times.zoned_times import write_timetz

Scanned = Callable[[Scan], str]


@dataclass(frozen=True, slots=True)
class Explained:
    """A plan for EXPLAIN: the lines of its tree, and an object with the names of PostgreSQL's EXPLAIN (FORMAT JSON)."""

    lines: tuple[str, ...]
    document: Mapping[str, object]


def explained(plan: Relation) -> Explained:
    """Returns the plan of a query for EXPLAIN."""
    return Explained(tuple(shown for shown, _ in lines(plan)), document(plan))


def explained_write(write: BoundWrite) -> Explained:
    """Returns the plan of a statement that writes: its table, and below it the plan of the rows."""
    if isinstance(write, WithRows):
        return _explained_with(write)
    assert not isinstance(write, TruncateTables) and write.rows is not None
    conflict = write.conflict if isinstance(write, InsertRows) and write.conflict != "error" else None
    match write:
        case InsertRows():
            operation = "Insert"
        case ChangeRows(updates=updates):
            operation = "Update" if updates else "Delete"
        case MergeRows():
            operation = "Merge"
    node: dict[str, object] = {"Node Type": "ModifyTable", "Operation": operation, "Relation Name": write.table.name}
    shown = f"{operation}: {write.table.name}"
    if conflict is not None:
        node["Conflict Resolution"] = conflict.upper()
        shown += f" on conflict do {conflict}"
    (first, *others), below = (shown for shown, _ in lines(write.rows)), document(write.rows)
    return Explained((shown, f"└─ {first}", *(f"   {line}" for line in others)), {**node, "Plans": [below]})


def _explained_with(write: WithRows) -> Explained:
    """Returns the plan of a WITH that writes: that of its body, then those of the parts."""
    body = explained_write(write.body) if isinstance(write.body, InsertRows | ChangeRows | MergeRows) else explained(write.body)
    shown, plans = list(body.lines), [body.document]
    for name, rows in write.parts:
        part = explained_write(rows) if isinstance(rows, InsertRows | ChangeRows) else explained(rows)
        first, *others = part.lines
        shown += [f"With: {name}", f"└─ {first}", *(f"   {line}" for line in others)]
        plans.append({**part.document, "Subplan Name": f"CTE {name}"})
    return Explained(tuple(shown), {"Node Type": "With", "Plans": plans})


def tree(plan: Relation, scanned: Scanned | None = None) -> str:
    """Returns the plan as text, one line per node, with the inputs below."""
    return "\n".join(shown for shown, _ in lines(plan, scanned))


def lines(plan: Relation, scanned: Scanned | None = None) -> list[tuple[str, Relation]]:
    """Returns the lines of the tree, each with its node.

    `scanned` returns the text for a Scan, by default the name in the plan.
    """
    out: list[tuple[str, Relation]] = []

    def add(node: Relation, first: str, rest: str) -> None:
        shown = f"Scan: {scanned(node)}" if isinstance(node, Scan) and scanned is not None else line(node)
        out.append((first + shown, node))
        below = inputs(node)
        for i, child in enumerate(below):
            last = i == len(below) - 1
            add(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))

    add(plan, "", "")
    return out


def document(plan: Relation) -> dict[str, object]:
    """Returns the plan as an object of JSON with the names of PostgreSQL's EXPLAIN (FORMAT JSON)."""
    kind, _, detail = line(plan).partition(": ")
    node: dict[str, object] = {"Node Type": kind}
    if isinstance(plan, Scan):
        node["Relation Name"] = detail
    elif detail:
        node["Detail"] = detail
    below = [document(child) for child in inputs(plan)]
    return {**node, "Plans": below} if below else node


def line(plan: Relation) -> str:
    """Returns the line of a node, without its inputs."""
    match plan:
        case Scan(name=name):
            return f"Scan: {name}"
        case Values(rows=rows, columns=columns):
            if not columns:
                return "Values: one row"
            return "Values: " + ", ".join("(" + ", ".join(text(s, ()) for s in row) + ")" for row in rows)
        case Filter(input=input, condition=condition):
            return f"Filter: {text(condition, input.columns, outer=True)}"
        case Project(input=input, expressions=expressions, columns=columns):
            return "Project: [" + ", ".join(_named(e, f, input.columns) for e, f in zip(expressions, columns, strict=True)) + "]"
        case Join(left=left, right=right, kind=kind, condition=condition):
            on = "" if condition is None else f": {text(condition, _both(left, right), outer=True)}"
            return f"{kind.capitalize()} join{on}"
        case ArrivalJoin(left=left, right=right, kind=kind, condition=condition):
            return f"{kind.capitalize()} join as of arrival: {text(condition, _both(left, right), outer=True)}"
        case WithinJoin():
            return _within(plan)
        case Closing(input=input, time=time, end=end, grace=grace, last=last, session=session, retention=retention):
            until, at = text(end, input.columns), text(time, input.columns)
            keys = () if session is None else tuple(text(key, input.columns) for key in session.keys)
            merged = "" if session is None else f", sessions of [{', '.join(keys)}]"
            stays = "" if retention is None else f", kept for {retention / 1e6:g} s"
            return f"Closing: {until} + {grace / 1e6:g} s, by {at}{merged}{', last rows only' if last else ''}{stays}"
        case Reduce(input=input, keys=keys, aggregates=aggregates, retention=retained):
            shown = ", ".join(text(k, input.columns, outer=True) for k in keys)
            calls = ", ".join(aggregate(a, input.columns) for a in aggregates)
            until = "" if retained is None else f" until {text(retained.end, input.columns)} + {retained.length / 1e6:g} s"
            return f"Reduce: keys=[{shown}] aggregates=[{calls}]{until}"
        case Distinct():
            return "Distinct"
        case UnionAll():
            return "Union all"
        case Recursive(name=name, all=all):
            return f"Recursive{' all' if all else ''}: {name}"
        case WorkingTable(name=name):
            return f"Working table: {name}"
        case Sort(input=input, keys=sort_keys):
            return f"Sort: {order_by(sort_keys, input.columns)}"
        case Limit(count=count, offset=offset):
            skipped = "" if offset is None else f" offset {text(offset, ())}"
            return f"Limit: {'all' if count is None else text(count, ())}{skipped}"
        case SetOperation(kind=kind, all=all):
            return kind.capitalize() + (" all" if all else "")
        case TopK(input=input, keys=keys, order=order, count=count, offset=offset, ties=ties):
            within = f" keys=[{', '.join(text(k, input.columns, outer=True) for k in keys)}]" if keys else ""
            skipped = "" if offset is None else f" offset {text(offset, ())}"
            rows_text = f"{'all' if count is None else text(count, ())}{skipped}{' with ties' if ties else ''}"
            return f"TopK: {rows_text}{within} order=[{order_by(order, input.columns)}]"
        case Window(input=input, partition=partition, order=order, calls=calls):
            split = ", ".join(text(p, input.columns, outer=True) for p in partition)
            shown = ", ".join(f"{c.function.name}({', '.join(text(a, input.columns, outer=True) for a in c.arguments)})" for c in calls)
            return f"Window: [{shown}] partition=[{split}] order=[{order_by(order, input.columns)}]"
        case Generate(input=input, function=function, arguments=arguments):
            shown = ", ".join(text(a, input.columns, outer=True) for a in arguments)
            return f"Generate: {function.name}({shown})" + (" with ordinality" if plan.ordinality else "")
        case _:
            assert_never(plan)


def order_by(keys: tuple[SortKey, ...], columns: tuple[Field, ...]) -> str:
    """Returns the sort keys as in ORDER BY."""
    return ", ".join(
        text(k.expression, columns, outer=True)
        + (" desc" if k.descending else "")
        + ("" if k.nulls_first == k.descending else " nulls first" if k.nulls_first else " nulls last")
        for k in keys
    )


def _both(left: Relation, right: Relation) -> tuple[Field, ...]:
    """Returns the columns of both sides.

    Equal names are qualified with the relation, or left or right.
    """
    names = {f.name for f in left.columns} & {f.name for f in right.columns}

    def shown(side: Relation, word: str) -> tuple[Field, ...]:
        prefix = side.name if isinstance(side, Scan) else word
        return tuple(Field(f"{prefix}.{f.name}" if f.name in names else f.name, f.type) for f in side.columns)

    return shown(left, "left") + shown(right, "right")


def _within(join: WithinJoin) -> str:
    columns = _both(join.left, join.right)
    left, right = (text(time, columns) for time in join.times)
    bounds = f"{right} in {left} - {join.before / 1e6:g} s to {left} + {join.after / 1e6:g} s"
    grace = "" if join.grace is None else f", grace {join.grace / 1e6:g} s"
    return f"{join.kind.capitalize()} join within: {text(join.condition, columns, outer=True)}, {bounds}{grace}"


def _named(scalar: Scalar, field: Field, columns: tuple[Field, ...]) -> str:
    shown = text(scalar, columns, outer=True)
    return shown if shown == field.name else f"{shown} AS {field.name}"


def aggregate(call: AggregateCall, columns: tuple[Field, ...]) -> str:
    """Returns an aggregate as readable SQL."""
    arguments = ", ".join(text(a, columns, outer=True) for a in call.arguments)
    distinct = "distinct " if call.distinct else ""
    order = f" order by {order_by(call.order, columns)}" if call.order else ""
    if call.function.name in WITHIN_GROUP:
        arguments, order = f"{arguments}) within group (", order.strip()
    elif not arguments:
        arguments = "*"
    where = f" filter (where {text(call.filter, columns, outer=True)})" if call.filter is not None else ""
    return f"{call.function.name}({distinct}{arguments}{order}){where}"


def text(scalar: Scalar, columns: tuple[Field, ...], *, outer: bool = False) -> str:
    """Returns a scalar as readable SQL. `outer`: without enclosing parentheses."""

    def inner(s: Scalar) -> str:
        return text(s, columns)

    def grouped(shown: str) -> str:
        return shown if outer else f"({shown})"

    match scalar:
        case Column(index=index):
            return columns[index].name if index < len(columns) else f"c{index}"
        case Literal():
            return _literal(scalar)
        case Parameter(number=number):
            return f"${number}"
        case Call(function=function, arguments=arguments, type=type):
            if function.kind == "cast":
                return f"{inner(arguments[0])}::{type}"
            if function.kind == "operator":
                return grouped(f"{inner(arguments[0])} {function.name} {inner(arguments[1])}")
            if function.kind == "prefix":
                return grouped(f"{function.name} {inner(arguments[0])}")
            if function.name in ("[]", "[:]"):
                of, *ends = (text(a, columns, outer=True) for a in arguments)
                count = len(ends) // 2
                shown = list(map(":".join, zip(ends[:count], ends[count:], strict=True))) if function.name == "[:]" else ends
                return grouped(of) + "".join(f"[{end}]" for end in shown)
            name, _, unit = function.name.partition(":")
            shown = ([f"'{unit}'"] if unit else []) + [text(a, columns, outer=True) for a in arguments]
            return f"{name}({', '.join(shown)})"
        case And(arguments=arguments):
            return grouped(" AND ".join(map(inner, arguments)))
        case Or(arguments=arguments):
            return grouped(" OR ".join(map(inner, arguments)))
        case Not(argument=IsNull(argument=argument)):
            return grouped(f"{inner(argument)} IS NOT NULL")
        case Not(argument=argument):
            return grouped(f"NOT {inner(argument)}")
        case IsNull(argument=argument):
            return grouped(f"{inner(argument)} IS NULL")
        case IsDistinct(left=left, right=right):
            return grouped(f"{inner(left)} IS DISTINCT FROM {inner(right)}")
        case InList(argument=argument, items=items):
            return grouped(f"{inner(argument)} IN ({', '.join(map(inner, items))})")
        case Case(branches=branches, otherwise=otherwise):
            whens = " ".join(f"WHEN {text(c, columns, outer=True)} THEN {text(t, columns, outer=True)}" for c, t in branches)
            return f"CASE {whens} ELSE {text(otherwise, columns, outer=True)} END"
        case Coalesce(arguments=arguments):
            return f"coalesce({', '.join(text(a, columns, outer=True) for a in arguments)})"
        case GreatestLeast(which=which, arguments=arguments):
            return f"{which}({', '.join(text(a, columns, outer=True) for a in arguments)})"
        case _:
            assert_never(scalar)


MOMENTS: dict[str, Callable[[int], bytes]] = {
    "date": write_date,
    "timestamp": write_timestamp,
    "timestamptz": lambda value: write_timestamptz(value, "UTC"),
    "time": write_time,
    "timetz": write_timetz,
    "money": write_money,
}


def _literal(literal: Literal) -> str:
    value, type = literal.value, literal.type
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if type.enum is not None and isinstance(value, int):
        value = dict(type.labels).get(value, str(value))
    if isinstance(value, int) and type.name not in MOMENTS:
        return str(value)
    if isinstance(value, str):
        quoted = quoted_text(value)
        return quoted if type.name == "text" else f"{quoted}::{type}"
    if isinstance(value, bytes):
        return f"'{text_writer(type)(value).decode()}'::{type}"
    if isinstance(value, int) and type.name in MOMENTS:
        return f"'{MOMENTS[type.name](value).decode()}'::{type}"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, tuple) and not type.is_array:
        months, days, micros = map(str, value)
        return f"'{months} months {days} days {micros} microseconds'::interval"
    if isinstance(value, tuple) and type.multidimensional:
        pair: Any = value
        items, shape = pair
        texts = [_literal(Literal(v, type.element)).encode() for v in items]
        return f"{dimensions.shown(shape)}={nested_text(texts, shape, b'array[', b']').decode()}"
    if isinstance(value, tuple):
        return "array[" + ", ".join(_literal(Literal(v, type.element)) for v in value) + "]"
    if isinstance(value, float):
        return f"{value!r}::{type}"
    return "'" + str(value) + f"'::{type}"
