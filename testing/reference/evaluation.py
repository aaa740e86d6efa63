"""A reference implementation of queries: evaluates plans over multisets in plain Python.

    rows of tables ──evaluate(plan, tables)──► Result(rows, errors)

It shares only the plan's classes (`sql.plan`) and the types with the engine and the gateway. Random
queries are in `testing.worlds`.

A relation is a Counter of rows. A row on which an expression fails becomes an error instead, with the
row's multiplicity. Tests check this law: at every time, a maintained view has the rows of `evaluate`.
It may fail for fewer rows than the bound plan (a filter may run first), never for others.

Values: None, bool, int, float, str, bytes, Decimal, date, datetime (with time zone: in UTC).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from itertools import count
from typing import Any

from tailgate.lake.types import Type
from tailgate.sql import plan
from tailgate.sql.plan.rewriting import rebuild
from tailgate.sql.plan.traversal import bottom_up, with_scalars
from testing.reference.aggregates import Member, key, sort_key, tie_key, total
from testing.reference.general import read
from testing.reference.scalars import holds, value
from testing.reference.sets import generated
from testing.reference.values import Failure, Row, Value, fit, normal
from testing.reference.windows import Seen, values


@dataclass
class Result:
    """The result of a plan.

    `rows` has the multiplicity of each row; `errors` the number of failed rows, by SQLSTATE.
    """

    rows: Counter[Row] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)


# ---- relations ---------------------------------------------------------------------------------


def evaluate(relation: plan.Relation, tables: Mapping[int, Mapping[Row, int]]) -> Result:
    """Evaluates a plan over `tables`, which are keyed by relation id."""
    match relation:
        case plan.Scan(relation=id, columns=columns):
            return Result(Counter({tuple(map(stored, row, (c.type for c in columns))): n for row, n in tables[id].items() if n}))
        case plan.Values(rows=rows):
            return each(Result(Counter({(): 1})), lambda row: [tuple(value(e, row) for e in r) for r in rows])
        case plan.Filter(input=input, condition=condition):
            return each(evaluate(input, tables), lambda row: [row] if holds(condition, row) else [])
        case plan.Project(input=input, expressions=expressions):
            return each(evaluate(input, tables), lambda row: [tuple(value(e, row) for e in expressions)])
        case plan.Join():
            return join(relation, evaluate(relation.left, tables), evaluate(relation.right, tables))
        case plan.Reduce():
            return aggregate(relation, evaluate(relation.input, tables))
        case plan.Sort(input=input):
            return evaluate(input, tables)
        case plan.Limit(input=input, count=count, offset=offset):
            keys = input.keys if isinstance(input, plan.Sort) else ()
            return evaluate(plan.TopK(input, (), keys, count, offset), tables)
        case plan.Window():
            return window(relation, evaluate(relation.input, tables))
        case plan.Generate():
            return each(evaluate(relation.input, tables), lambda row: generate(relation, row))
        case plan.TopK():
            return top(relation, evaluate(relation.input, tables))
        case plan.Distinct(input=input):
            below = evaluate(input, tables)
            return Result(Counter(dict.fromkeys(representatives(below.rows).values(), 1)), below.errors)
        case plan.SetOperation(left=left, right=right):
            return combine(relation, evaluate(left, tables), evaluate(right, tables))
        case plan.UnionAll(inputs=inputs):
            out = Result()
            for i in inputs:
                part = evaluate(i, tables)
                out.rows.update(part.rows)
                out.errors.update(part.errors)
            return out
        case plan.Recursive():
            return recursive(relation, tables)
        case plan.WorkingTable(number=number):
            return Result(Counter(tables[working_table(number)]))
    raise NotImplementedError(type(relation).__name__)


def stored(v: Value, type: Type) -> Value:
    """Returns a value of a table; a general numeric is a tuple of the fields of its stored form."""
    if type.general and v is not None:
        return tuple(map(read, v)) if type.is_array else read(v)
    if isinstance(v, Decimal):
        return fit(v, type)  # with the digits after the decimal point that the type has
    return normal(v)


def working_table(number: int) -> int:
    """Returns the key of a working table in `tables`."""
    return -1 - number


def recursive(node: plan.Recursive, tables: Mapping[int, Mapping[Row, int]]) -> Result:
    """Evaluates WITH RECURSIVE: the step over the rows of each round, until a round has none. Rows above the limit are errors."""
    out, each_round, keys = Result(), evaluate(node.base, tables), set[Any]()
    for number in count():
        rows = each_round.rows if node.all else Counter({row: 1 for same, row in smallest(each_round.rows).items() if same not in keys})
        keys.update(map(key, rows))
        out.errors.update(each_round.errors)
        if not rows:
            return out
        if number > node.limit:
            out.errors["54000"] += 1
            return out
        out.rows.update(rows)
        each_round = evaluate(node.step, {**tables, working_table(node.number): rows})
    raise AssertionError


def each(input: Result, function: Callable[[Row], list[Row]]) -> Result:
    """Applies a function that returns rows to each row."""
    out = Result(Counter(), Counter(input.errors))
    for row, n in input.rows.items():
        try:
            for result in function(row):
                out.rows[result] += n
        except Failure as e:
            out.errors[e.sqlstate] += n
    return out


EPOCH = datetime(1970, 1, 1)
CLOCKS = frozenset("now transaction_timestamp statement_timestamp localtimestamp mz_now mz_logical_timestamp".split())


def at(relation: plan.Relation, millis: int) -> plan.Relation:
    """Replaces the functions of the clock by a time, in milliseconds since 1970."""
    naive = EPOCH + timedelta(milliseconds=millis)

    def with_literals(scalar: plan.Scalar) -> plan.Scalar:
        if not isinstance(scalar, plan.Call) or scalar.function.name not in CLOCKS:
            return rebuild(scalar, with_literals)
        shown: Any = {"timestamp": naive, "timestamptz": naive.replace(tzinfo=timezone.utc)}.get(scalar.type.name, Decimal(millis))
        return plan.Literal(shown, scalar.type)

    return bottom_up(relation, lambda node: with_scalars(node, with_literals))


def generate(node: plan.Generate, row: Row) -> list[Row]:
    """Returns the row joined with each row of a set-returning function."""
    elements = generated(node.function.name, tuple(value(a, row) for a in node.arguments))
    if not elements and node.kind == "left":
        return [row + (None,) * (len(node.columns) - len(row))]
    return [row + tuple(map(normal, m)) + ((i,) if node.ordinality else ()) for i, m in enumerate(elements, 1)]


def join(node: plan.Join, left: Result, right: Result) -> Result:
    out = Result(Counter(), left.errors + right.errors)
    width = len(node.left.columns)
    for side in equated(node.condition):  # PostgreSQL evaluates these for each row, even without a row on the other side
        used = columns(side)
        for a in left.rows if max(used) < width else right.rows if min(used) >= width else ():
            try:
                value(side, a if max(used) < width else (None,) * width + a)
            except Failure as e:
                out.errors[e.sqlstate] += 1
    matched: set[Row] = set()
    wide = len(node.right.columns)
    for a, n in left.rows.items():
        has_match = False
        for b, m in right.rows.items():
            try:
                if node.condition is not None and not holds(node.condition, a + b):
                    continue
            except Failure as e:
                out.errors[e.sqlstate] += n * m
                continue
            has_match = True
            matched.add(b)
            if node.kind not in ("semi", "anti"):
                out.rows[a + b] += n * m
        if (node.kind == "semi" and has_match) or (node.kind == "anti" and not has_match):
            out.rows[a] += n
        if node.kind in ("left", "full") and not has_match:
            out.rows[a + (None,) * wide] += n
    if node.kind in ("right", "full"):
        for b, m in right.rows.items():
            if b not in matched:
                out.rows[(None,) * width + b] += m
    return out


def equated(condition: plan.Scalar | None) -> Iterator[plan.Scalar]:
    """Yields the sides of equalities in a conjunction, if they contain columns."""
    match condition:
        case plan.And(arguments=arguments):
            for argument in arguments:
                yield from equated(argument)
        case plan.Call(function=function, arguments=arguments) if function.name == "=":
            yield from (a for a in arguments if columns(a))


def columns(scalar: plan.Scalar) -> set[int]:
    indexes: set[int] = set()

    def read(part: plan.Scalar) -> plan.Scalar:
        if isinstance(part, plan.Column):
            indexes.add(part.index)
        return rebuild(part, read)

    read(scalar)
    return indexes


def representatives(rows: Iterable[Row]) -> dict[Any, Row]:
    """Returns one of the rows that are equal by value, for each value. Equal numerics may have several display scales."""
    return {key(row): row for row in rows}


def smallest(rows: Iterable[Row]) -> dict[Any, Row]:
    """Returns the row with the smallest stored form of those that are equal by value, for each value."""
    return representatives(sorted(rows, key=lambda row: [tie_key(v) for v in row], reverse=True))


def by_value(rows: Mapping[Row, int]) -> Counter[Any]:
    """Returns the multiplicity of each value of a row."""
    out: Counter[Any] = Counter()
    for row, n in rows.items():
        out[key(row)] += n
    return out


def combine(node: plan.SetOperation, left: Result, right: Result) -> Result:
    """Evaluates INTERSECT or EXCEPT from the multiplicities on both sides."""
    out = Result(Counter(), left.errors + right.errors)
    rows, others = representatives(left.rows), by_value(right.rows)
    for same, n in by_value(left.rows).items():
        row, m = rows[same], others[same]
        if node.kind == "intersect":
            n = min(n, m)
        else:
            n = max(n - m, 0) if node.all else n * (not m)
        if n:
            out.rows[row] = n if node.all else 1
    return out


def aggregate(node: plan.Reduce, input: Result) -> Result:
    out = Result(Counter(), Counter(input.errors))
    groups: dict[Any, tuple[Row, list[tuple[Member | None, ...]]]] = {} if node.keys else {(): ((), [])}
    for row, n in input.rows.items():
        try:
            keys = tuple(value(k, row) for k in node.keys)
            members = tuple(member(call, row, n) for call in node.aggregates)
        except Failure as e:
            out.errors[e.sqlstate] += n
            continue
        groups.setdefault(key(keys), (keys, []))[1].append(members)
    for keys, rows in groups.values():
        try:
            results = tuple(normal(total(call, [m for r in rows if (m := r[i])])) for i, call in enumerate(node.aggregates))
        except Failure as e:
            out.errors[e.sqlstate] += 1
            continue
        out.rows[keys + results] += 1
    return out


def top(node: plan.TopK, input: Result) -> Result:
    """Evaluates LIMIT within each partition."""
    out = Result(Counter(), Counter(input.errors))
    partitions: dict[Any, list[tuple[Any, Any, Row]]] = {}
    for row, n in input.rows.items():
        try:
            split = key(tuple(value(k, row) for k in node.keys))
            sort_keys = [sort_key(value(k.expression, row), k.descending, k.nulls_first) for k in node.order]
        except Failure as e:
            out.errors[e.sqlstate] += n
            continue
        partitions.setdefault(split, []).extend([(sort_keys, [tie_key(v) for v in row], row)] * n)
    count, offset = number(node.count), number(node.offset) or 0
    for rows in partitions.values():
        rows.sort(key=lambda r: r[:2])
        end = len(rows) if count is None else offset + count
        while node.ties and offset < end < len(rows) and rows[end][0] == rows[end - 1][0]:
            end += 1
        for _, _, row in rows[offset:end]:
            out.rows[row] += 1
    return out


def window(node: plan.Window, input: Result) -> Result:
    out = Result(Counter(), Counter(input.errors))
    partitions: dict[Any, list[tuple[Any, Any, Row, list[Seen]]]] = {}
    for row, n in input.rows.items():
        try:
            split = key(tuple(value(p, row) for p in node.partition))
            keys = [value(k.expression, row) for k in node.order]
            sort_keys = [sort_key(v, k.descending, k.nulls_first) for v, k in zip(keys, node.order, strict=True)]
            for _ in range(n):
                inputs = [
                    Seen(
                        tuple(value(a, row) for a in c.arguments),
                        c.filter is None or value(c.filter, row) is True,
                        sort_keys,
                        keys[0] if keys else None,
                    )
                    for c in node.calls
                ]
                partitions.setdefault(split, []).append((sort_keys, [tie_key(v) for v in row], row, inputs))
        except Failure as e:
            out.errors[e.sqlstate] += n
    for rows in partitions.values():
        rows.sort(key=lambda r: r[:2])
        columns = [values(c, node.order, [r[3][i] for r in rows]) for i, c in enumerate(node.calls)]
        for i, r in enumerate(rows):
            results = [column[i] for column in columns]
            failed = [v for v in results if isinstance(v, Failure)]
            if failed:
                out.errors[failed[0].sqlstate] += 1
            else:
                out.rows[r[2] + tuple(map(normal, results))] += 1
    return out


def number(scalar: plan.Scalar | None) -> int | None:
    if scalar is None:
        return None
    result = value(scalar, ())
    assert result is None or isinstance(result, int)
    return result


def member(call: plan.AggregateCall, row: Row, copies: int) -> Member | None:
    """Returns the values that an aggregate reads of a row; None if its FILTER excludes the row."""
    if call.filter is not None and value(call.filter, row) is not True:
        return None
    return tuple(value(a, row) for a in call.arguments), tuple(value(k.expression, row) for k in call.order), copies


def differences(expected: Result, actual: Mapping[Row, int]) -> Iterator[str]:
    """Yields the rows with a wrong multiplicity.

    Yields nothing if the plan fails for some row, because a view may then have fewer failures.
    """
    if expected.errors:
        return
    for row in sorted({*expected.rows, *actual}, key=repr):
        expected_count, got = expected.rows.get(row, 0), actual.get(row, 0)
        if expected_count != got:
            yield f"{row}: {got} instead of {expected_count}"
