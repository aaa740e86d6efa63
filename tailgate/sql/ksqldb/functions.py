"""The functions of ksqlDB as data: name, types of the arguments, type of the result, expression of PostgreSQL's dialect.

An argument is a type, "number", "any" or "any*" (one or more). A result is a type, "same" (as the first argument) or "widest".
In the template, {0}, {1}, … are the arguments, {*} all of them, and {type} the type of the result.
Aggregates ignore NULL as PostgreSQL's do.

Source: ksqlDB 0.29, documentation, "Scalar functions", "Aggregation functions".
"""

from __future__ import annotations

from dataclasses import dataclass

from tailgate.lake.errors import UndefinedFunction
from tailgate.sql.ksqldb import types as t
from tailgate.sql.ksqldb.expressions import TypeName

Kind = TypeName | str


@dataclass(frozen=True, slots=True)
class Function:
    """A function with one list of arguments. `may_fail`: its evaluation may raise an error although its arguments do not."""

    name: str
    arguments: tuple[Kind, ...]
    result: Kind
    template: str
    aggregate: bool = False
    may_fail: bool = False


def _aggregate(name: str, argument: Kind, result: Kind, template: str, *, may_fail: bool = False) -> Function:
    return Function(name, (argument,), result, template, aggregate=True, may_fail=may_fail)


AGGREGATES = (
    _aggregate("count", "any", t.BIGINT, "count({0})"),
    _aggregate("count_distinct", "any", t.BIGINT, "count(DISTINCT {0})"),
    _aggregate("sum", t.INT, t.INT, "CAST(sum({0}) AS integer)", may_fail=True),
    _aggregate("sum", t.BIGINT, t.BIGINT, "CAST(sum({0}) AS bigint)", may_fail=True),
    _aggregate("sum", t.DOUBLE, t.DOUBLE, "sum({0})"),
    _aggregate("avg", "number", t.DOUBLE, "CAST(avg({0}) AS double precision)"),
    _aggregate("min", "any", "same", "min({0})"),
    _aggregate("max", "any", "same", "max({0})"),
)
# the values of a group in the order of the records, without NULL
_IN_ORDER = "(array_agg({{0}} ORDER BY {order}) FILTER (WHERE {{0}} IS NOT NULL))[1]"
_POSITION = ("rowtime", "rowpartition", "rowoffset")
BY_OFFSET = (
    _aggregate("earliest_by_offset", "any", "same", _IN_ORDER.format(order=", ".join(_POSITION))),
    _aggregate("latest_by_offset", "any", "same", _IN_ORDER.format(order=", ".join(f"{c} DESC" for c in _POSITION))),
)
TEXTS = (
    Function("ucase", (t.VARCHAR,), t.VARCHAR, "upper({0})"),
    Function("lcase", (t.VARCHAR,), t.VARCHAR, "lower({0})"),
    Function("len", (t.VARCHAR,), t.INT, "length({0})"),
    Function("trim", (t.VARCHAR,), t.VARCHAR, "btrim({0})"),
    Function("replace", (t.VARCHAR, t.VARCHAR, t.VARCHAR), t.VARCHAR, "replace({0}, {1}, {2})"),
    Function("concat", (t.VARCHAR, t.VARCHAR), t.VARCHAR, "concat({0}, {1})"),
    Function("substring", (t.VARCHAR, t.INT), t.VARCHAR, "substr({0}, {1})"),
    Function("substring", (t.VARCHAR, t.INT, t.INT), t.VARCHAR, "substr({0}, {1}, {2})", may_fail=True),
)
NUMBERS = (
    Function("abs", ("number",), "same", "abs({0})", may_fail=True),
    Function("ceil", (t.DOUBLE,), t.DOUBLE, "ceil({0})"),
    Function("floor", (t.DOUBLE,), t.DOUBLE, "floor({0})"),
    Function("sqrt", (t.DOUBLE,), t.DOUBLE, "CASE WHEN {0} >= 0 THEN sqrt({0}) END"),
    Function("sign", ("number",), t.INT, "CAST(sign({0}) AS integer)"),
)
CHOICES = (
    Function("coalesce", ("any*",), "same", "coalesce({*})"),
    Function("ifnull", ("any", "any"), "same", "coalesce({0}, {1})"),
    Function("nullif", ("any", "any"), "same", "nullif({0}, {1})"),
    Function("as_value", ("any",), "same", "{0}"),
)
ROWS = (*AGGREGATES, *BY_OFFSET, *TEXTS, *NUMBERS, *CHOICES)
AGGREGATE_NAMES = frozenset(row.name for row in (*AGGREGATES, *BY_OFFSET))


def find(name: str, arguments: tuple[TypeName, ...], position: int | None = None) -> Function:
    """Returns the function that accepts arguments of these types, preferring equal types. Raises 42883."""
    rows = [row for row in ROWS if row.name == name]
    candidates = [(cost, row) for row in rows if (cost := _cost(row, arguments)) is not None]
    if candidates:
        return min(candidates, key=lambda pair: pair[0])[1]
    listed = ", ".join(t.shown(a) for a in arguments)
    if not rows:
        raise UndefinedFunction(
            f"function {name.upper()}({listed}) does not exist", hint="docs/sql/ksqldb.md lists the functions.", position=position
        )
    raise UndefinedFunction(
        f"function {name.upper()} does not accept parameters ({listed})",
        hint=f"Valid alternatives: {'; '.join(f'{name.upper()}({_listed(row)})' for row in rows)}.",
        position=position,
    )


def _cost(row: Function, arguments: tuple[TypeName, ...]) -> int | None:
    """Returns how many arguments need an implicit cast, or None if the function does not accept them."""
    kinds = row.arguments
    if kinds and kinds[-1] == "any*":
        return 0 if arguments else None
    if len(kinds) != len(arguments):
        return None
    cost = 0
    for kind, argument in zip(kinds, arguments, strict=True):
        if kind == "any" or kind == argument or argument == t.UNKNOWN or (kind == "number" and argument.name in t.NUMBERS):
            continue
        if not isinstance(kind, TypeName) or not _widens(argument, kind):
            return None
        cost += 1 + t.NUMBERS.index(kind.name)
    return cost


def _widens(argument: TypeName, kind: TypeName) -> bool:
    """Returns whether a number is cast implicitly to a wider type."""
    names = t.NUMBERS
    return argument.name in names and kind.name in names and names.index(argument.name) < names.index(kind.name)


def _listed(row: Function) -> str:
    return ", ".join(t.shown(kind) if isinstance(kind, TypeName) else kind.upper() for kind in row.arguments)
