"""Lookup of names in a query and in the queries around it, and the errors for undefined names.

    SELECT … FROM users u WHERE EXISTS (SELECT … FROM orders o, LATERAL (SELECT … WHERE u.id = o.user_id) l)
    Level ◄────── Closure ────────────── Level ◄──────── Closure ──────────── Level

A name that FROM does not define is looked up in the closures around the query, from the inside out.
The column found there becomes an argument of that closure. A closure around an item of FROM gives
access to the items to its left, but only for LATERAL.

Source: PostgreSQL 15, src/backend/parser/parse_relation.c, also for the hints about misspelled
names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import (
    AmbiguousColumn,
    FeatureNotSupported,
    InvalidColumnReference,
    TailgateError,
    UndefinedColumn,
    UndefinedParameter,
    UndefinedTable,
)
from tailgate.lake.types import OID
from tailgate.sql.binder.context import Closure, ExpressionBinder, Level, QueryBinder
from tailgate.sql.binder.scope import Table, placed, whole_row
from tailgate.sql.grammar.names import position
from tailgate.sql.plan import And, Case, IsNull, Literal, Scalar

DISTANCE_MAX = 3  # edits between a misspelled name and a suggested one
UNSEEN = "but it cannot be referenced from this part of the query."
_KEY = "Rows have no physical position. Identify a row by its primary key."
_VERSION = "Rows have no transaction. Use a column that each UPDATE changes as the version of a row."
SYSTEM_COLUMNS = {"ctid": _KEY, **dict.fromkeys(("xmin", "xmax", "cmin", "cmax"), _VERSION)}  # with hints; `tableoid` is supported


def lateral_queries(level: Level) -> QueryBinder:
    """Returns the binder of a LATERAL item of FROM.

    It sees the items to its left through all nested closures of the same query.
    """

    def mark(closure: Closure | None) -> Closure | None:
        if closure is None or not closure.item or closure.binder.level.tables is not level.tables:
            return closure
        own = closure.binder.level
        queries = replace(own.queries, outer=mark(own.outer))
        return replace(closure, binder=replace(closure.binder, level=replace(own, queries=queries)), lateral=True)

    return replace(level.queries, outer=mark(level.outer))


def find_column(binder: ExpressionBinder, name: str, table: str | None, position: int | None, item: int = 0) -> Scalar:
    """Returns the scalar that a name stands for: a column, or the row of a table. Raises 42703, 42702, 42P01, 42P10.

    `item` is the id of the relation if its schema is named, else 0.
    """
    scalar = _lookup(binder, name, table, position, item)
    if scalar is None and name == "tableoid":
        scalar = _table_oid(binder, table, position, item)
    elif scalar is None and name in SYSTEM_COLUMNS:
        _refuse_system_column(binder, name, table, position, item)
    if scalar is not None:
        return scalar
    if table is None and any(b.scope.table(name) for b, _ in _places(binder)):
        return whole_row(find_table(binder, name, position), position)
    if table is not None and not any(b.scope.table(table, item) for b, _ in _places(binder)):
        raise missing_table(binder, table, position)
    raise _missing_column(binder, name, table, position)


def _lookup(binder: ExpressionBinder, name: str, table: str | None, position: int | None, item: int) -> Scalar | None:
    for place, closure in _places(binder):
        of = place.scope.table(table, item, position) if table is not None else None
        if table is not None and of is None:
            continue
        column = place.scope.column(name, of, position)
        if column is not None:
            binder.level.names.demand(column.demand)
        scalar = None if column is None else placed(column.scalar, position)
        if scalar is not None and closure is not None:
            if closure.refused:
                shown = next(t.alias for t in place.scope.tables if any(c.name == name for c in t.columns) and table in (None, t.alias))
                raise InvalidColumnReference(
                    f'invalid reference to FROM-clause entry for table "{shown}"',
                    detail="The combining JOIN type must be INNER or LEFT for a LATERAL reference.",
                    position=position,
                )
            return closure.capture(scalar, position)
        if scalar is not None or of is not None:
            return scalar
    return None


def _table_oid(binder: ExpressionBinder, table: str | None, position: int | None, item: int) -> Scalar | None:
    """Returns the oid of a table in FROM, NULL in rows in which an outer join has no row of it. Raises 42702."""
    for place, closure in _places(binder):
        candidates = [t for t in place.scope.tables if table is None or (t.alias == table and item in (0, t.item))]
        tables = [t for t in candidates if t.oid]
        if len(tables) > 1:
            raise AmbiguousColumn('column reference "tableoid" is ambiguous', position=position)
        if tables:
            oid = Literal(tables[0].oid, OID, position)
            if not tables[0].optional:
                return oid
            columns = (c.scalar if closure is None else closure.capture(c.scalar, position) for c in tables[0].columns)
            return Case(((And(tuple(map(IsNull, columns))), Literal(None, OID)),), oid, OID)
        if table is not None and candidates:
            return None
    return None


def _refuse_system_column(binder: ExpressionBinder, name: str, table: str | None, position: int | None, item: int) -> None:
    """Raises 0A000 if a table in FROM has this system column in PostgreSQL."""
    tables = (t for place, _ in _places(binder) for t in place.scope.tables)
    if any(t.oid and (table is None or (t.alias == table and item in (0, t.item))) for t in tables):
        raise FeatureNotSupported(f'system column "{name}" is not supported', hint=SYSTEM_COLUMNS[name], position=position)


def find_argument(binder: ExpressionBinder, number: int, position: int | None) -> Scalar | None:
    """Returns the value of $number inside a function's body, or None outside of a function.

    Raises 42P02.
    """
    for place, closure in _places(binder):
        arguments = place.level.arguments
        if arguments is not None:
            if not 1 <= number <= len(arguments):
                raise UndefinedParameter(f"there is no parameter ${number}", position=position)
            return arguments[number - 1] if closure is None else closure.capture(arguments[number - 1], position)
    return None


def named_item(binder: ExpressionBinder, node: exp.Column) -> int:
    """Returns the id of the relation in `schema.relation.column`, or 0 without a schema.

    Raises 42P01.
    """
    if not node.args.get("db"):
        return 0
    at, name = position(node), Name(node.text("table"), node.text("db"))
    item = binder.level.names.catalog.find(name) if not node.args.get("catalog") else None
    if item is None:
        raise missing_table(binder, name.name, at)
    if at is not None:
        binder.level.names.places[at] = item.id
    return item.id


def find_table(binder: ExpressionBinder, alias: str, position: int | None, item: int = 0) -> Table:
    """Returns the table that an alias names, for its row and `alias.*`, and records that its columns are read. Raises 42P01."""
    for place, closure in _places(binder):
        if (table := place.scope.table(alias, item, position)) is not None:
            binder.level.names.demand(*(column.demand for column in table.columns if not column.hidden))
            if closure is None:
                return table
            return replace(table, columns=tuple(replace(c, scalar=closure.capture(c.scalar, position)) for c in table.columns))
    raise missing_table(binder, alias, position)


def _places(binder: ExpressionBinder) -> Iterator[tuple[ExpressionBinder, Closure | None]]:
    """Yields the places where a name may be defined, from the inside out.

    Each is a binder and the closure that leads to it. The search ends at the body of a function.
    """
    yield binder, None
    place, closure = binder, binder.level.outer
    while closure is not None and place.level.arguments is None:
        if closure.visible:
            yield closure.binder, closure
        place, closure = closure.binder, closure.further


# ---- errors ------------------------------------------------------------------------------------------------------------------


def _tables(binder: ExpressionBinder) -> Iterator[Table]:
    """Yields all tables of this query and of the queries around it, visible or not."""
    levels: list[list[Table]] = []
    closure: Closure | None = None
    while True:
        if not any(binder.level.tables is s for s in levels):
            levels.append(binder.level.tables)
        closure = binder.level.outer
        if closure is None or binder.level.arguments is not None:
            break
        binder = closure.binder
    for tables in levels:
        yield from tables


def missing_table(binder: ExpressionBinder, alias: str, position: int | None) -> TailgateError:
    """Returns the error 42P01, with a hint if the table is not visible or has another alias."""
    for table in _tables(binder):
        if alias not in (table.alias, table.relation):
            continue
        hint = f'There is an entry for table "{table.alias}", {UNSEEN}'
        if table.alias != alias:
            if not any(table.alias == t.alias for b, _ in _places(binder) for t in b.scope.tables):
                continue
            hint = f'Perhaps you meant to reference the table alias "{table.alias}".'
        return UndefinedTable(f'invalid reference to FROM-clause entry for table "{alias}"', hint=hint, position=position)
    return UndefinedTable(f'missing FROM-clause entry for table "{alias}"', position=position)


def _missing_column(binder: ExpressionBinder, name: str, table: str | None, position: int | None) -> TailgateError:
    """Returns the error 42703, with a hint that suggests up to two similar names."""
    shown = f"{table}.{name}" if table is not None else f'"{name}"'

    def error(hint: str | None) -> TailgateError:
        return UndefinedColumn(f"column {shown} does not exist", hint=hint, position=position)

    best, near = DISTANCE_MAX + 1, list[str]()
    for t in _tables(binder):
        penalty = distance(table, t.alias) if table is not None else 0
        for c in t.columns:
            edits = distance(name, c.name)
            if edits == 0 and penalty == 0:
                return error(
                    f'There is a column named "{name}" in table "{t.alias}", but it cannot be referenced from this part of the query.'
                )
            if edits > len(name) // 2 or edits + penalty > DISTANCE_MAX:
                continue
            edits += penalty
            if edits < best:
                best, near = edits, []
            if edits == best:
                near.append(f'"{t.alias}.{c.name}"')
    if len(near) in (1, 2):
        return error("Perhaps you meant to reference the column " + " or the column ".join(near) + ".")
    return error(None)


def distance(a: str, b: str) -> int:
    """Returns the Levenshtein distance.

    If it is above DISTANCE_MAX, returns any number above DISTANCE_MAX.

    >>> distance("user_id", "uesr_id")
    2
    """
    if abs(len(a) - len(b)) > DISTANCE_MAX:
        return DISTANCE_MAX + 1
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]
