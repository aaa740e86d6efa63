"""A reference implementation of queries: evaluates plans over multisets in plain Python.

    rows of tables ──evaluate(plan, tables)──► Result(rows, errors)

It shares only the plan's classes (`sql.plan`) and the types with the engine and the gateway. Random
queries are in `tests.worlds`.

A relation is a Counter of rows. A row on which an expression fails becomes an error instead, with the
row's multiplicity. Tests check this law: at every time, a maintained view has the rows of `evaluate`.
It may fail for fewer rows than the bound plan (a filter may run first), never for others.

Values: None, bool, int, float, str, bytes, Decimal, date, datetime (with time zone: in UTC).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from tailgate.lake.types import Type
from tailgate.sql import plan
from tailgate.sql.plan.rewriting import rebuild
from tailgate.sql.plan.traversal import bottom_up, with_scalars
from tests.reference_aggregates import Member, sort_key, sortable, total
from tests.reference_sets import generated, json_text
from tests.reference_values import NAN, Failure, Row, Value, fit, normal, order
from tests.reference_windows import Seen, values


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
        case plan.Scan(relation=id):
            return Result(Counter({tuple(map(normal, row)): n for row, n in tables[id].items() if n}))
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
            return Result(Counter(dict.fromkeys(below.rows, 1)), below.errors)
        case plan.SetOperation(left=left, right=right):
            return combine(relation, evaluate(left, tables), evaluate(right, tables))
        case plan.UnionAll(inputs=inputs):
            out = Result()
            for i in inputs:
                part = evaluate(i, tables)
                out.rows.update(part.rows)
                out.errors.update(part.errors)
            return out
    raise NotImplementedError(type(relation).__name__)


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

    def told(scalar: plan.Scalar) -> plan.Scalar:
        if not isinstance(scalar, plan.Call) or scalar.function.name not in CLOCKS:
            return rebuild(scalar, told)
        shown: Any = {"timestamp": naive, "timestamptz": naive.replace(tzinfo=timezone.utc)}.get(scalar.type.name, Decimal(millis))
        return plan.Literal(shown, scalar.type)

    return bottom_up(relation, lambda node: with_scalars(node, told))


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


def combine(node: plan.SetOperation, left: Result, right: Result) -> Result:
    """Evaluates INTERSECT or EXCEPT from the multiplicities on both sides."""
    out = Result(Counter(), left.errors + right.errors)
    for row, n in left.rows.items():
        m = right.rows[row]
        if node.kind == "intersect":
            n = min(n, m)
        else:
            n = max(n - m, 0) if node.all else n * (not m)
        if n:
            out.rows[row] = n if node.all else 1
    return out


def aggregate(node: plan.Reduce, input: Result) -> Result:
    out = Result(Counter(), Counter(input.errors))
    groups: dict[Row, list[tuple[Member | None, ...]]] = {} if node.keys else {(): []}
    for row, n in input.rows.items():
        try:
            key = tuple(value(k, row) for k in node.keys)
            members = tuple(member(call, row, n) for call in node.aggregates)
        except Failure as e:
            out.errors[e.sqlstate] += n
            continue
        groups.setdefault(key, []).append(members)
    for key, rows in groups.items():
        try:
            results = tuple(normal(total(call, [m for r in rows if (m := r[i])])) for i, call in enumerate(node.aggregates))
        except Failure as e:
            out.errors[e.sqlstate] += 1
            continue
        out.rows[key + results] += 1
    return out


def top(node: plan.TopK, input: Result) -> Result:
    """Evaluates LIMIT within each partition."""
    out = Result(Counter(), Counter(input.errors))
    partitions: dict[Row, list[tuple[Any, Any, Row]]] = {}
    for row, n in input.rows.items():
        try:
            split = tuple(value(k, row) for k in node.keys)
            sort_keys = [sort_key(value(k.expression, row), k.descending, k.nulls_first) for k in node.order]
        except Failure as e:
            out.errors[e.sqlstate] += n
            continue
        partitions.setdefault(split, []).extend([(sort_keys, [sort_key(v) for v in row], row)] * n)
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
    partitions: dict[Row, list[tuple[Any, Any, Row, list[Seen]]]] = {}
    for row, n in input.rows.items():
        try:
            split = tuple(value(p, row) for p in node.partition)
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
                partitions.setdefault(split, []).append((sort_keys, [sort_key(v) for v in row], row, inputs))
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


# ---- scalars -----------------------------------------------------------------------------------


def holds(condition: plan.Scalar, row: Row) -> bool:
    """Returns whether a condition is true. Stops at the first argument of AND that is not."""
    if isinstance(condition, plan.And):
        return all(holds(a, row) for a in condition.arguments)
    return value(condition, row) is True


def value(scalar: plan.Scalar, row: Row) -> Value:
    match scalar:
        case plan.Column(index=index):
            return row[index]
        case plan.Literal(value=literal, type=type):
            return normal(fit(literal, type) if isinstance(literal, int | Decimal) and not isinstance(literal, bool) else literal)
        case plan.Call():
            return call(scalar, tuple(value(a, row) for a in scalar.arguments))
        case plan.And(arguments=arguments):
            return conjunction([value(a, row) for a in arguments])
        case plan.Or(arguments=arguments):
            return opposite(conjunction([opposite(value(a, row)) for a in arguments]))
        case plan.Not(argument=inner):
            return opposite(value(inner, row))
        case plan.IsNull(argument=inner):
            return value(inner, row) is None
        case plan.IsDistinct(left=left, right=right):
            a, b = value(left, row), value(right, row)
            return (a is None) != (b is None) if a is None or b is None else order(a) != order(b)
        case plan.InList(argument=inner, items=items):
            a = value(inner, row)
            comparisons = [compare("=", a, value(i, row)) for i in items]
            return opposite(conjunction([opposite(f) for f in comparisons]))
        case plan.Case(branches=branches, otherwise=otherwise):
            return chosen(branches, otherwise, row)
        case plan.Coalesce(arguments=arguments):
            for a in arguments:
                if (v := value(a, row)) is not None:
                    return v
            return None
        case plan.GreatestLeast(which=which, arguments=arguments):
            values = [v for a in arguments if (v := value(a, row)) is not None]
            return (max if which == "greatest" else min)(values, key=order) if values else None
    raise NotImplementedError(type(scalar).__name__)


def chosen(branches: Sequence[tuple[plan.Scalar, plan.Scalar]], otherwise: plan.Scalar, row: Row) -> Value:
    for when, then in branches:
        if value(when, row) is True:
            return value(then, row)
    return value(otherwise, row)


def conjunction(values: Sequence[bool | None]) -> bool | None:
    if any(v is False for v in values):
        return False
    return None if any(v is None for v in values) else True


def opposite(v: bool | None) -> bool | None:
    return None if v is None else not v


def compare(sign: str, a: Value, b: Value) -> bool | None:
    if a is None or b is None:
        return None
    x, y = sortable(a), sortable(b)
    return {"=": x == y, "<>": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[sign]


def call(node: plan.Call, arguments: Row) -> Value:
    """Applies a function, operator or cast to values."""
    name, kind = node.function.name, node.function.kind
    if node.function.strict and any(a is None for a in arguments):
        return None
    if kind == "cast":
        return cast(arguments[0], node.arguments[0].type, node.type)
    if name == "single_row":
        if arguments[1] is not None and arguments[1] > 1:
            raise Failure("21000", "more than one row returned by a subquery used as an expression")
        return arguments[0]
    if name in ("=", "<>", "!=", "<", "<=", ">", ">="):
        return compare("<>" if name == "!=" else name, *arguments)
    if name in ("+", "-", "*", "/", "%", "mod"):
        return arithmetic("%" if name == "mod" else name, arguments, node)
    if name == "||":
        return "".join(arguments)
    if ":" in name:
        name, _, unit = name.partition(":")
        arguments = (unit, *arguments)
    if name in FUNCTIONS:
        return normal(FUNCTIONS[name](*arguments))
    raise NotImplementedError(str(node.function))


def arithmetic(sign: str, arguments: Row, node: plan.Call) -> Value:
    if len(arguments) == 1:
        return fit(-arguments[0] if sign == "-" else arguments[0], node.type)
    a, b = arguments
    if isinstance(a, float) or isinstance(b, float):
        return float_arithmetic(sign, float(a), float(b))
    if isinstance(a, datetime) and isinstance(b, tuple):
        months, days, micros = b
        assert not months
        step = timedelta(days=days, microseconds=micros)
        return a + step if sign == "+" else a - step
    if isinstance(a, tuple) and isinstance(b, datetime):
        return arithmetic(sign, (b, a), node)
    if isinstance(a, datetime) and isinstance(b, datetime):
        micros = (a - b) // timedelta(microseconds=1)  # days plus the rest below one day
        days = math.trunc(Fraction(micros, 86_400_000_000))
        return (0, days, micros - days * 86_400_000_000)
    if isinstance(a, date) or isinstance(b, date):
        raise NotImplementedError(str(node.function))
    if sign in ("/", "%") and b == 0:
        raise Failure("22012", "division by zero")
    x, y = Fraction(a), Fraction(b)
    if sign == "%":
        return fit(x - y * math.trunc(x / y), node.type)
    if sign == "/":
        whole = node.type.name != "numeric"
        return fit(Fraction(math.trunc(x / y)) if whole else x / y, node.type)
    return fit({"+": x + y, "-": x - y, "*": x * y}[sign], node.type)


def float_arithmetic(sign: str, a: float, b: float) -> float:
    if sign == "/" and b == 0 and not math.isnan(a):
        raise Failure("22012", "division by zero")
    with_nan = math.isnan(a) or math.isnan(b)
    try:
        out = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b if not with_nan else NAN}[sign]()
    except OverflowError:
        out = math.inf
    if math.isinf(out) and not math.isinf(a) and not math.isinf(b):
        raise Failure("22003", "value out of range: overflow")
    if out == 0 and sign in ("*", "/") and a != 0 and not math.isinf(b) and (sign == "/" or b != 0):
        raise Failure("22003", "value out of range: underflow")
    return normal(out)


# ---- casts and functions -----------------------------------------------------------------------


def cast(v: Value, source: Type, to: Type) -> Value:
    if to.name in ("int2", "int4", "int8"):
        if isinstance(v, str):
            if not re.fullmatch(r"\s*[+-]?[0-9]+\s*", v):
                raise Failure("22P02", f'invalid input syntax for type {to}: "{v}"')
            return fit(int(v), to)
        if isinstance(v, float):
            if not math.isfinite(v):
                raise Failure("22003", f"{to} out of range")
            return fit(round(v), to)  # half to even, like C's rint
        return fit(int(v) if isinstance(v, bool) else v, to)
    if to.name == "numeric":
        if isinstance(v, str):
            try:
                v = Decimal(v.strip())
            except InvalidOperation:
                raise Failure("22P02", f'invalid input syntax for type numeric: "{v}"') from None
        if isinstance(v, float):
            if not math.isfinite(v):
                raise Failure("22003", "not a number in a numeric")
            v = Decimal(f"{v:.15g}")
        return fit(v, to)
    if to.name in ("float8", "float4"):
        if isinstance(v, str):
            try:
                return normal(float(v))
            except ValueError:
                raise Failure("22P02", f'invalid input syntax for type {to}: "{v}"') from None
        return fit(v, to)
    if to.name == "bool":
        if isinstance(v, str):
            word = v.strip().lower()
            if word in ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"):
                return True
            if word in ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"):
                return False
            raise Failure("22P02", f'invalid input syntax for type boolean: "{v}"')
        return bool(v)
    if to.name in ("text", "varchar"):
        return text(v, source)
    if to.name == "timestamp" and isinstance(v, date) and not isinstance(v, datetime):
        return datetime(v.year, v.month, v.day)
    if to.name == "date" and isinstance(v, datetime):
        return v.date()
    if source.name == to.name:
        return v
    raise NotImplementedError(f"{source} to {to}")


def text(v: Value, type: Type) -> str:
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, Decimal):
        return f"{v:f}"
    if isinstance(v, datetime):
        out = v.strftime("%Y-%m-%d %H:%M:%S")
        return out + (f".{v.microsecond:06d}".rstrip("0") if v.microsecond else "")
    if isinstance(v, float):
        raise NotImplementedError("a float as text")
    return str(v)


def date_trunc(unit: str, v: datetime) -> datetime:
    parts = {"year": 1, "month": 2, "day": 3, "hour": 4, "minute": 5, "second": 6}
    if unit not in parts:
        raise Failure("22023", f'unit "{unit}" not recognized for type timestamp without time zone')
    fields = list(v.timetuple()[:6])
    for i in range(parts[unit], 6):
        fields[i] = 1 if i in (1, 2) else 0
    return datetime(*fields, tzinfo=v.tzinfo)


def date_bin(stride: Any, v: datetime, origin: datetime) -> datetime:
    months, days, micros = stride
    assert not months
    step = timedelta(days=days, microseconds=micros)
    return origin + (v - origin) // step * step


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "date_bin": date_bin,
    "order": lambda v: v,  # sort form of text in joins; equal exactly for equal values
    "to_jsonb": json_text,
    "concat": lambda *texts: "".join(t for t in texts if t is not None),
    "abs": abs,
    "length": len,
    "char_length": len,
    "upper": str.upper,
    "lower": str.lower,
    "date_trunc": date_trunc,
}


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
