"""The part of a relation of the schema `tailgate` that a query reads: which rows and which columns are computed for it.

    SELECT max(p95_ms) FROM tailgate.freshness_history WHERE name = $1 AND at > now() - interval '1 hour'
    ──►  name is one of …, at is not before …; columns p95_ms, name, at

Conditions on the only scan of a relation are used if they compare a column with a constant: equality and IN for texts, lower bounds for
times. The query still evaluates its conditions, so a restriction saves work and changes no result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import pyarrow as pa

from tailgate.gateway.serving.prepared import NOW, Prepared, numbers
from tailgate.gateway.serving.service import Serving
from tailgate.lake.catalog import SYSTEM_RELATIONS
from tailgate.lake.errors import TailgateError
from tailgate.lake.types import Field
from tailgate.sql import plan as p
from tailgate.sql.authorization import shared
from tailgate.sql.plan.rewriting import columns_of, columns_of_all, conjuncts, shifted, substituted, walk
from tailgate.sql.plan.traversal import inputs, scalars_of
from tailgate.sql.render.duckdb import render
from tailgate.sql.time_zones import in_zone

RESTRICTED = frozenset(SYSTEM_RELATIONS[name].id for name in ("freshness", "freshness_history", "size_history", "sources"))
MIRRORED = {"<": ">", "<=": ">=", "=": "="}  # operators, with those for exchanged sides


@dataclass(frozen=True, slots=True)
class Restriction:
    """The texts that a row may have, by column, the first moments that it may have, and the columns that are read; None for all."""

    texts: Mapping[str, Collection[str]] = field(default_factory=dict)
    since: Mapping[str, datetime] = field(default_factory=dict)
    columns: frozenset[str] | None = None

    def allows(self, **texts: str) -> bool:
        """Returns whether a row with these texts may be in the result."""
        return all(text in self.texts.get(column, (text,)) for column, text in texts.items())

    def reads(self, *columns: str) -> bool:
        """Returns whether the query reads one of these columns."""
        return self.columns is None or not self.columns.isdisjoint(columns)


NONE = Restriction()


@dataclass(frozen=True, slots=True)
class _Condition:
    """A column of a relation that is equal to one of some constants, or that is not less than one constant."""

    relation: int
    column: Field
    is_equality: bool
    constants: tuple[p.Scalar, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a relation that the nodes above it read: rows that meet `conditions`, and columns at `positions`."""

    relation: p.Relation
    conditions: tuple[p.Scalar, ...]
    positions: frozenset[int]


async def restrictions(serving: Serving, prepared: Prepared, values: Sequence[object], time_zone: str) -> dict[int, Restriction]:
    """Returns the restrictions of relations by id. `values`: of the parameters. `time_zone`: in which the query computes."""
    if prepared.relations.isdisjoint(RESTRICTED):
        return {}
    scans = _scans(prepared.query.plan)
    by_relation = {scan.relation: Restriction(columns=columns) for scan, _, columns in scans}
    conditions = [condition for _, conditions, _ in scans for condition in conditions]
    if not conditions:
        return by_relation
    try:
        scalars = [c for condition in conditions for c in condition.constants]
        constants = iter(await _evaluated(serving, prepared, values, scalars, time_zone))
    except TailgateError:  # the query raises it
        return {}
    for condition in conditions:
        operands = [next(constants) for _ in condition.constants]
        before, name = by_relation[condition.relation], condition.column.name
        if condition.is_equality:
            texts = {value for value in operands if isinstance(value, str) and value in before.texts.get(name, (value,))}
            by_relation[condition.relation] = replace(before, texts={**before.texts, name: texts})
        elif isinstance(operands[0], datetime):
            since = max(operands[0], before.since.get(name, operands[0]))
            by_relation[condition.relation] = replace(before, since={**before.since, name: since})
    return by_relation


async def _evaluated(
    serving: Serving, prepared: Prepared, values: Sequence[object], constants: Sequence[p.Scalar], time_zone: str
) -> list[str | datetime | None]:
    """Returns the values of constants: texts, or moments; None for NULL, and for moments that Python cannot represent."""
    fields = tuple(Field(f"constant{number}", constant.type) for number, constant in enumerate(constants))
    row = p.Project(p.Values(((),), ()), tuple(constants), fields)
    literals: list[p.Value] = []
    with in_zone(time_zone):
        sql = render(row, now=NOW, constants=literals)
    query = replace(prepared, columns=fields, sql=sql, relations=frozenset(), items=(), constants=tuple(literals), used=numbers(row))
    table = await serving.queries.run(shared(query), values)
    return [_value(column[0]) for column in table.columns]


def _value(scalar: pa.Scalar) -> str | datetime | None:
    try:
        value: str | datetime | None = scalar.as_py()
    except (OverflowError, ValueError):
        return None
    return value


def _scans(plan: p.Relation) -> list[tuple[p.Scan, list[_Condition], frozenset[str]]]:
    """Returns the relations that the plan scans once, with the conditions on them and the columns that it reads.

    None if parts of the plan are shared.
    """
    visited: set[int] = set()
    scans: list[tuple[p.Scan, _Part]] = []
    waiting = [_Part(plan, (), frozenset(range(len(plan.columns))))]
    while waiting:
        part = waiting.pop()
        if id(part.relation) in visited:
            return []
        visited.add(id(part.relation))
        if isinstance(part.relation, p.Scan):
            scans.append((part.relation, part))
        waiting += _below(part)
    of = [scan.relation for scan, _ in scans]
    return [
        (
            scan,
            [condition for conjunct in part.conditions if (condition := _condition(scan, conjunct)) is not None],
            frozenset(scan.columns[position].name for position in part.positions),
        )
        for scan, part in scans
        if scan.relation in RESTRICTED and of.count(scan.relation) == 1
    ]


def _below(part: _Part) -> Iterator[_Part]:
    """Yields the inputs of a relation, each with the part that it needs of them for its own part."""
    node, above = part.relation, part.conditions
    own = columns_of_all(scalars_of(node))
    read = part.positions | own
    match node:
        case p.Filter(input=input, condition=condition):
            yield _Part(input, (*above, *conjuncts(condition)), read)
        case p.Project(input=input, expressions=expressions):
            positions = columns_of_all(expressions[position] for position in part.positions)
            yield _Part(input, tuple(substituted(condition, expressions) for condition in above), positions)
        case p.Sort(input=input):
            yield _Part(input, above, read)
        case p.Limit(input=input):
            yield _Part(input, (), read)
        case p.Reduce(input=input):
            yield _Part(input, (), own)
        case p.Window(input=input):
            yield _Part(input, (), frozenset(i for i in read if i < len(input.columns)))
        case p.Join(left=left, right=right, kind=kind, condition=condition):
            width = len(left.columns)
            both = (*above, *conjuncts(condition)) if kind in ("inner", "cross", "semi") else above
            of_left = tuple(c for c in both if all(index < width for index in columns_of(c)))
            of_right = tuple(shifted(c, -width) for c in both if all(index >= width for index in columns_of(c)))
            left_read = frozenset(i for i in read if i < width)
            yield _Part(left, of_left if kind in ("inner", "cross", "left", "semi", "anti") else (), left_read)
            right_read = frozenset(i - width for i in read if i >= width)
            yield _Part(right, of_right if kind in ("inner", "cross", "right") else (), right_read)
        case _:
            for input in inputs(node):
                yield _Part(input, (), frozenset(range(len(input.columns))))


def _condition(scan: p.Scan, conjunct: p.Scalar) -> _Condition | None:
    """Returns the condition of a conjunct on a scan, or None if it does not compare a column with constants."""
    match conjunct:
        case p.InList(argument=argument, items=items):
            column, operator, constants = argument, "=", items
        case p.Call(function=function, arguments=(left, right)) if function.kind == "operator":
            operator = function.name
            if isinstance(right, p.Column):
                left, right, operator = right, left, MIRRORED.get(operator, "")
            column, constants = left, (right,)
        case _:
            return None
    if not isinstance(column, p.Column) or any(constant.type != column.type for constant in constants):
        return None
    field = scan.columns[column.index]
    if operator == "=" and column.type.name == "text" and all(map(_is_immutable, constants)):
        return _Condition(scan.relation, field, True, constants)
    if operator in (">", ">=") and column.type.name == "timestamptz" and all(map(_does_not_decrease, constants)):
        return _Condition(scan.relation, field, False, constants)
    return None


def _is_immutable(scalar: p.Scalar) -> bool:
    """Returns whether a scalar is a constant with the same value at each evaluation."""
    return not any(
        isinstance(part, p.Column) or (isinstance(part, p.Call) and part.function.volatility != "immutable") for part in walk(scalar)
    )


def _does_not_decrease(scalar: p.Scalar) -> bool:
    """Returns whether a scalar is a constant, or the time of the statement plus or minus one: the query is evaluated later."""
    match scalar:
        case p.Call(function=function, arguments=()) if function.name == "now":
            return True
        case p.Call(function=function, arguments=(moment, interval)) if function.kind == "operator" and function.name in ("+", "-"):
            return _does_not_decrease(moment) and _is_immutable(interval)
    return _is_immutable(scalar)
