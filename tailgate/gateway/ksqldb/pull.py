"""Pull queries of ksqlDB: SELECT without EMIT, over rows that are stored, or over the records of a declared stream.

SelectQuery ──► checks ──► projection ──► SELECT in PostgreSQL's dialect
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from tailgate.gateway.ksqldb.targets import key_of
from tailgate.lake.catalog import Catalog, Item, Source, ksqldb_of
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, UndefinedTable
from tailgate.sql import statements as s
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.declared.switches import SCANS, STREAMS
from tailgate.sql.ksqldb.expression_texts import text as expression_text
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.pseudo_columns import WINDOW_BOUNDS
from tailgate.sql.ksqldb.queries import PushQuery, from_clause, is_stream, projection, push_query
from tailgate.sql.ksqldb.queries.scopes import column_types

COMPARISONS = ("=", "<", "<=", ">", ">=", "<>", "!=")
# a time of ISO 8601, which may end after any part
_FIRST = (1970, 1, 1, 0, 0, 0)  # the parts that a time may leave out
_TIME = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d{1,3}))?)?)?)?)?)?(Z|[+-]\d\d:?\d\d)?")


@dataclass(frozen=True, slots=True)
class Pulled:
    """The SELECT of a pull query, with the columns of its rows. `key`: those of the table's key, with the bounds of its windows."""

    select: s.Select
    columns: tuple[tuple[str, e.TypeName], ...]
    key: tuple[str, ...]


def pulled(query: e.SelectQuery, catalog: Catalog, *, scans: bool) -> Pulled:
    """Returns the SELECT of a pull query. `scans`: whether a table may be read without its key.

    Raises 42P01, 0A000 for a clause that pull queries do not have or for a relation without stored rows, and 22023 for a table scan.
    """
    name = Name(query.source.name, position=query.source.position)
    item = catalog.find(name)
    if item is None:
        raise UndefinedTable(f"{ksqldb_name(name.name)} does not exist.", position=name.position)
    item = catalog.relation(name)
    _check_clauses(query)
    _check_stored(item, query.source.position)
    if not scans and key_of(item):
        _check_key(query, item)
    clause = from_clause(query, catalog, is_pulled=True)
    scope = replace(clause.scope, is_pulled=True, of_table=tuple(n for n in clause.scope.of_table if n == "rowtime"))
    if set(WINDOW_BOUNDS) <= set(scope.columns):
        query = with_times(query)
        first = [*(k for k in key_of(item) if k not in WINDOW_BOUNDS), *WINDOW_BOUNDS]  # the order of *
        scope = replace(scope, columns={n: scope.columns[n] for n in [*first, *(n for n in scope.columns if n not in first)]})
    translation = projection(query, replace(clause, scope=scope))
    limit = "" if query.limit is None else f" LIMIT {query.limit}"
    select = s.parse(translation.text + limit, "postgresql")
    assert isinstance(select, s.Select)
    return Pulled(select, translation.columns, translation.message_key if key_of(item) else ())


def check_stream(query: e.SelectQuery, catalog: Catalog) -> None:
    """Raises 0A000 for a pull query of a stream, while these are switched off."""
    item = catalog.find(Name(query.source.name))
    if item is not None and is_stream(item):
        raise FeatureNotSupported(
            "Pull queries on streams are disabled. To create a push query on the stream, add EMIT CHANGES to the end.",
            hint=f"SET '{STREAMS}' = 'true'.",
            position=query.position,
        )


def of_topic(query: e.SelectQuery, catalog: Catalog) -> PushQuery | None:
    """Returns the query of the rows of a declared stream, or None for another relation. Raises 0A000 for a clause that it cannot have."""
    item = catalog.find(Name(query.source.name))
    if not isinstance(item, Source) or not is_stream(item):
        return None
    _check_clauses(query)
    return push_query(query, catalog)


def _check_clauses(query: e.SelectQuery) -> None:
    """Raises 0A000 for a clause that pull queries do not have."""
    clauses = {"JOIN": query.joins, "WINDOW": query.window, "GROUP BY": query.group_by, "PARTITION BY": query.partition_by}
    for clause, value in {**clauses, "HAVING": query.having}.items():
        if value:
            raise FeatureNotSupported(
                f"Pull queries don't support {clause} clauses.",
                hint="Add EMIT CHANGES if you intended to issue a push query.",
                position=query.position,
            )


def _check_stored(item: Item, position: int) -> None:
    """Raises 0A000 for a declared table, which no query materializes, unless it is a SOURCE table."""
    ksqldb = ksqldb_of(item)
    if isinstance(item, Source) and ksqldb is not None and not ksqldb.read_only:
        name = ksqldb_name(item.name)
        raise FeatureNotSupported(
            f"The `{name}` table isn't queryable. To derive a queryable table, you can do "
            f"'CREATE TABLE QUERYABLE_{name} AS SELECT * FROM {name}'.",
            hint="Add EMIT CHANGES if you intended to issue a push query.",
            position=position,
        )
    if not item.stored:
        raise FeatureNotSupported(f"a pull query of {ksqldb_name(item.name)} is not supported", position=position)


def _check_key(query: e.SelectQuery, item: Item) -> None:
    """Raises 22023 unless each operand of OR in WHERE has a value, or a list of them, for each column of the key."""
    if query.where is None:
        message = "Missing WHERE clause."
    else:
        message = next(filter(None, (_missing_key(disjunct, item) for disjunct in _disjuncts(query.where))), "")
    if message:
        raise InvalidParameterValue(f"{message} Table scans are disabled.", hint=f"SET '{SCANS}' = 'true'.", position=query.position)


def _missing_key(disjunct: e.Expression, item: Item) -> str:
    """Returns the message about columns of the key for which an operand of OR has no value; an empty text if it has all."""
    keys = [name for name in key_of(item) if name not in WINDOW_BOUNDS]
    values = _fixed(disjunct)
    fixed = [name for name in keys if name in values]
    if not fixed:
        return f"WHERE clause missing key column for disjunct: {expression_text(disjunct)}."
    if fixed == keys:
        return ""
    of_item = column_types(item)
    specified = ", ".join(f"`{ksqldb_name(name)}`" for name in fixed)
    expected = ", ".join(types.column_in_schema(name, of_item[name]) for name in keys)
    return f"Multi-column sources must specify every key in the WHERE clause. Specified: [{specified}] Expected: [{expected}]."


def _disjuncts(condition: e.Expression) -> list[e.Expression]:
    """Returns the operands of OR, or the condition itself."""
    match condition:
        case e.Operation("or", operands):
            return [disjunct for operand in operands for disjunct in _disjuncts(operand)]
    return [condition]


def _fixed(condition: e.Expression) -> set[str]:
    """Returns the columns for which a condition has a value or a list of values."""
    match condition:
        case e.Operation("and", operands):
            return set().union(*map(_fixed, operands))
        case e.Operation("or", (first, *others)):
            return _fixed(first).intersection(*map(_fixed, others))
    equality = _equality(condition)
    return set() if equality is None else {equality[0]}


def compared(condition: e.Expression | None) -> dict[object, int]:
    """Returns the positions of literals, by value, if a condition is nothing but columns that equal them; otherwise an empty dictionary."""
    literals = _literals(condition)
    positions: dict[object, int] = {literal.value: literal.position for literal in literals}
    plain = all(isinstance(value, str | int) and not isinstance(value, bool) for value in positions)
    return positions if plain and len(positions) == len(literals) else {}


def _literals(condition: e.Expression | None) -> list[e.Constant]:
    match condition:
        case e.Operation("and", operands):
            parts = [_literals(operand) for operand in operands]
            return [literal for part in parts for literal in part] if all(parts) else []
    equality = _equality(condition)
    values = () if equality is None else equality[1]
    literals = [value for value in values if isinstance(value, e.Constant)]
    return literals if len(literals) == len(values) else []


def _equality(condition: e.Expression | None) -> tuple[str, tuple[e.Expression, ...]] | None:
    """Returns the column and the values of a condition that a column equals a value or is in a list; None for other conditions."""
    match condition:
        case e.Operation("=", (e.ColumnReference(column), value)) if _has_no_columns(value):
            return column, (value,)
        case e.Operation("=", (value, e.ColumnReference(column))) if _has_no_columns(value):
            return column, (value,)
        case e.InList(e.ColumnReference(column), items, negated=False) if _has_no_columns(items):
            return column, items
    return None


def _has_no_columns(part: e.Expression | tuple[e.Expression, ...]) -> bool:
    return not any(isinstance(below, e.ColumnReference) for below in e.walk(part))


def with_times(node: Any) -> Any:
    """Returns a query whose texts that are compared with WINDOWSTART or WINDOWEND are times in ms. Raises 22023."""
    match node:
        case e.Operation(operator, operands) if operator in COMPARISONS and any(map(_is_bound, operands)):
            return replace(node, operands=tuple(map(_milliseconds, operands)))
        case e.Between(operand, low, high) if _is_bound(operand):
            return replace(node, low=_milliseconds(low), high=_milliseconds(high))
        case e.InList(operand, items) if _is_bound(operand):
            return replace(node, items=tuple(map(_milliseconds, items)))
    if is_dataclass(node) and not isinstance(node, type):
        return replace(node, **{f.name: _inner(getattr(node, f.name)) for f in fields(node)})
    return node


def _inner(value: Any) -> Any:
    return tuple(map(with_times, value)) if isinstance(value, tuple) else with_times(value)


def _is_bound(expression: e.Expression) -> bool:
    return isinstance(expression, e.ColumnReference) and expression.column in WINDOW_BOUNDS


def _milliseconds(expression: e.Expression) -> e.Expression:
    """Returns a time as a number if it is a text such as 2020-02-23T23:45:12.000. Raises 22023."""
    if not isinstance(expression, e.Constant) or not isinstance(expression.value, str):
        return expression
    match = _TIME.fullmatch(expression.value.upper())
    try:
        if match is None:
            raise ValueError
        year, month, day, hour, minute, second = (int(part or default) for part, default in zip(match.groups(), _FIRST, strict=False))
        milliseconds = int((match[7] or "0").ljust(3, "0"))
        moment = datetime(year, month, day, hour, minute, second, milliseconds * 1000, tzinfo=_zone(match[8]))
    except ValueError:
        message = f"Failed to parse timestamp '{expression.value}': use the format yyyy-MM-dd'T'HH:mm:ss.SSS, in part or as a whole."
        raise InvalidParameterValue(message, position=expression.position) from None
    return e.Constant(round(moment.timestamp() * 1000), expression.position)


def _zone(text: str | None) -> timezone:
    """Returns the time zone of Z, +hhmm or +hh:mm; UTC without one."""
    if text is None or text == "Z":
        return timezone.utc
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-offset if text[0] == "-" else offset)
