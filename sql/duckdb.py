"""A bound plan as one SELECT for DuckDB, over tables r<relation id> with columns c0, c1, …

Every relation of the plan is a SELECT whose columns are c0, c1, … again, so a Scalar's column is a name wherever it stands. A
relation without a key may hold a row several times: its table has the multiplicity in `__weight`, which a Scan expands.
DuckDB folds nested SELECTs of this form; nothing is gained by writing them flat.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from decimal import Decimal

from typing_extensions import assert_never

from lake.errors import FeatureNotSupported
from lake.types import WEIGHT, Type
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
    Sort,
    SortKey,
    Union_,
    Values,
)
from sql.spark import fill

JOINS = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN", "cross": "CROSS JOIN"}


def render(plan: Relation) -> str:
    """The SELECT; its columns are c0, c1, … in the plan's order."""
    match plan:
        case Scan(relation=relation, columns=columns, key=key):
            names = ", ".join(_names(len(columns))) or "1 AS c0"
            repeated = "" if key is not None else f", LATERAL (SELECT unnest(range({WEIGHT})))"
            return f"SELECT {names} FROM r{relation}{repeated}"
        case Values(rows=rows, columns=columns):
            return " UNION ALL ".join("SELECT " + (_listed(row, ()) or "1 AS c0") for row in rows) or _nothing([c.type for c in columns])
        case Filter(input=input, condition=condition):
            return f"SELECT * FROM {_inner(input)} WHERE {expression(condition, _names(len(input.columns)))}"
        case Project(input=input, expressions=expressions):
            return f"SELECT {_listed(expressions, _names(len(input.columns))) or '1 AS c0'} FROM {_inner(input)}"
        case Join():
            return _join(plan)
        case Aggregate(input=input, keys=keys, aggregates=aggregates):
            return _aggregate(input, keys, aggregates)
        case Distinct(input=input):
            return f"SELECT DISTINCT * FROM {_inner(input)}"
        case Union_(inputs=inputs):
            return " UNION ALL ".join(f"SELECT * FROM {_inner(i)}" for i in inputs)
        case Sort(input=input, keys=sort):
            return f"SELECT * FROM {_inner(input)} ORDER BY {_order(sort, len(input.columns))}"
        case Limit(input=input, count=count, offset=offset):
            order = f" ORDER BY {_order(input.keys, len(input.columns))}" if isinstance(input, Sort) else ""
            below = input.input if isinstance(input, Sort) else input
            parts = [f" {word} {expression(s, ())}" for word, s in (("LIMIT", count), ("OFFSET", offset)) if s is not None]
            return f"SELECT * FROM {_inner(below)}{order}{''.join(parts)}"
        case _:
            assert_never(plan)


def _names(width: int) -> tuple[str, ...]:
    return tuple(f"c{i}" for i in range(width))


def _inner(plan: Relation) -> str:
    return f"({render(plan)})"


def _listed(expressions: Sequence[Scalar], names: Sequence[str]) -> str:
    return ", ".join(f"{expression(e, names)} AS c{i}" for i, e in enumerate(expressions))


def _nothing(types: Sequence[Type]) -> str:
    return "SELECT " + (", ".join(f"CAST(NULL AS {t.duckdb}) AS c{i}" for i, t in enumerate(types)) or "1 AS c0") + " WHERE false"


def _join(join: Join) -> str:
    left, right = len(join.left.columns), len(join.right.columns)
    names = [*(f"l.c{i}" for i in range(left)), *(f"r.c{i}" for i in range(right))]
    on = "true" if join.condition is None else expression(join.condition, names)
    if join.kind in ("semi", "anti"):
        negation = "NOT " if join.kind == "anti" else ""
        return f"SELECT * FROM {_inner(join.left)} l WHERE {negation}EXISTS (SELECT 1 FROM {_inner(join.right)} r WHERE {on})"
    listed = ", ".join(f"{n} AS c{i}" for i, n in enumerate(names)) or "1 AS c0"
    condition = "" if join.kind == "cross" else f" ON {on}"
    return f"SELECT {listed} FROM {_inner(join.left)} l {JOINS[join.kind]} {_inner(join.right)} r{condition}"


def _aggregate(input: Relation, keys: Sequence[Scalar], aggregates: Sequence[AggregateCall]) -> str:
    names = _names(len(input.columns))
    listed = [expression(k, names) for k in keys] + [_call(a, names) for a in aggregates]
    columns = ", ".join(f"{text} AS c{i}" for i, text in enumerate(listed)) or "1 AS c0"
    group = f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
    return f"SELECT {columns} FROM {_inner(input)}{group}"


def _call(call: AggregateCall, names: Sequence[str]) -> str:
    """An aggregate; DISTINCT and FILTER are said by turning what is left out into NULL, so that templates of several parts agree."""
    if not call.function.duckdb:
        raise FeatureNotSupported(f"{call.function} is not supported", position=call.position)
    arguments = [expression(a, names) for a in call.arguments]
    types = [a.type for a in call.arguments]
    template = call.function.duckdb
    if call.filter is not None:
        condition = expression(call.filter, names)
        if not arguments:
            template, arguments, types = "count({0})", ["1"], []
        arguments = [f"CASE WHEN {condition} THEN {a} END" for a in arguments]
    if call.distinct:
        arguments = [f"DISTINCT {a}" for a in arguments]
    return fill(template, arguments, types, call.type, call.type.duckdb)


def _order(keys: Sequence[SortKey], width: int) -> str:
    return ", ".join(
        f"{expression(k.expression, _names(width))} {'DESC' if k.descending else 'ASC'} NULLS {'FIRST' if k.nulls_first else 'LAST'}"
        for k in keys
    )


# ---- scalars -----------------------------------------------------------------------------------------------------------------


def expression(scalar: Scalar, columns: Sequence[str]) -> str:
    """DuckDB SQL over columns of these names, complete in itself."""

    def of(s: Scalar) -> str:
        return expression(s, columns)

    match scalar:
        case Column(index=index):
            return columns[index]
        case Literal(value=value, type=type):
            return literal(value, type)
        case Parameter(number=number, type=type):
            return f"CAST(${number} AS {type.duckdb})"
        case Call(function=function):
            if not function.duckdb:
                raise FeatureNotSupported(f"{function} is not supported", position=scalar.position)
            return fill(
                function.duckdb, [of(a) for a in scalar.arguments], [a.type for a in scalar.arguments], scalar.type, scalar.type.duckdb
            )
        case And(arguments=arguments):
            return "(" + " AND ".join(map(of, arguments)) + ")"
        case Or(arguments=arguments):
            return "(" + " OR ".join(map(of, arguments)) + ")"
        case Not(argument=argument):
            return f"(NOT {of(argument)})"
        case IsNull(argument=argument):
            return f"({of(argument)} IS NULL)"
        case IsDistinct(left=left, right=right):
            return f"({of(left)} IS DISTINCT FROM {of(right)})"
        case InList(argument=argument, items=items):
            return f"({of(argument)} IN ({', '.join(map(of, items))}))"
        case Case(branches=branches, otherwise=otherwise):
            whens = " ".join(f"WHEN {of(condition)} THEN {of(then)}" for condition, then in branches)
            return f"(CASE {whens} ELSE {of(otherwise)} END)"
        case Coalesce(arguments=arguments):
            return f"coalesce({', '.join(map(of, arguments))})"
        case Extreme(which=which, arguments=arguments):
            return f"{which}({', '.join(map(of, arguments))})"
        case _:
            assert_never(scalar)


def literal(value: object, type: Type) -> str:
    """A value in stored form as DuckDB SQL of exactly its type."""
    spelled = type.duckdb
    match value:
        case None:
            return f"CAST(NULL AS {spelled})"
        case bool():
            return "true" if value else "false"
        case int() | float() | Decimal():
            return f"CAST('{value}' AS {spelled})"
        case str():
            return quoted(value)
        case bytes():
            return "from_hex('" + value.hex() + "')"
        case datetime() if value.tzinfo is not None:
            return f"CAST('{value.astimezone(timezone.utc).isoformat(sep=' ')}' AS TIMESTAMPTZ)"
        case tuple():
            months, days, micros = value
            return f"{{'months': CAST({months} AS INTEGER), 'days': CAST({days} AS INTEGER), 'micros': CAST({micros} AS BIGINT)}}"
        case _:
            return f"CAST('{value}' AS {spelled})"


def quoted(text: str) -> str:
    """A string literal.

    >>> quoted("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"
