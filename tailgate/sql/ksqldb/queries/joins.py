"""FROM and JOIN of ksqlDB in PostgreSQL's dialect.

    SourceName, JoinClause, …  ──►  FromClause(text, scope, type, key, conditions)

    stream JOIN stream    records with near times, by any expressions of both: WITHIN
    stream JOIN table     the table's row when the record of the stream arrives: FOR SYSTEM_TIME AS OF PROCTIME()
    table JOIN table      by the primary key of both, or by any expression of the left and the primary key of the right

Joins with tables ignore rows whose left side of ON is NULL, and joins of streams those whose own side is NULL. The key of
the result is the left side of ON, or for the primary key of the right table alone the key of the left table. That of a right
join is the right side. A full join, and a join of streams by expressions that are not columns, have a synthetic key.

Source: ksqlDB 0.29, documentation, "Join event streams with ksqlDB".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from tailgate.lake.catalog import Catalog, Item, ksqldb_of
from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import (
    DuplicateAlias,
    FeatureNotSupported,
    WrongObjectType,
)
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.functions.volatile import CLOCK, has_clock
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.pseudo_columns import ARRIVAL, WINDOW_BOUNDS
from tailgate.sql.ksqldb.queries.conditions import check_sides, check_types, columns_of, left_side, of_condition, stream_sides
from tailgate.sql.ksqldb.queries.items import bound_of_windows, numbered_name, source_columns
from tailgate.sql.ksqldb.queries.scope import ROWKEY, Scope
from tailgate.sql.ksqldb.queries.scopes import (
    column_types,
    has_unnamed_key,
    is_stream,
    key_names,
    scope_of,
    source_item,
    unnamed_key_column,
)
from tailgate.sql.ksqldb.typed.casts import cast
from tailgate.sql.ksqldb.typed.values import Typed

AS_OF_ARRIVAL = "FOR SYSTEM_TIME AS OF PROCTIME()"


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of the message's key: its value, and the texts of the columns that the projection may contain for it.

    `shown`: these columns as ksqlDB shows them, of the key of a join of columns.
    """

    value: Typed
    columns: frozenset[str]
    name: str
    shown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FromClause:
    """The rows that a query reads: `text` in PostgreSQL's dialect, and `conditions` that they must satisfy.

    `type`: whether they are those of a stream or of a table. `key`: that of their messages. `unnamed_key`: whether a source has
    an unnamed key, so that the result has one, too. `co_partitioned`: the sources whose topics must have the same number of
    partitions. `by_foreign_key`: whether tables are joined by a foreign key.
    """

    text: str
    scope: Scope
    type: Literal["stream", "table"]
    key: tuple[KeyColumn, ...]
    conditions: tuple[str, ...] = ()
    unnamed_key: bool = False
    co_partitioned: tuple[Item, ...] = ()
    by_foreign_key: bool = False


def from_clause(query: e.SelectQuery, catalog: Catalog, *, is_pulled: bool = False) -> FromClause:
    """Returns FROM of a query. `is_pulled`: as of Scope. Raises 42P01, 42809, 42804, 42P10, or 0A000 for an unsupported join."""
    sources = query.sources
    items = [source_item(source, catalog) for source in sources]
    scopes = [scope_of(item, source) for item, source in zip(items, sources, strict=True)]
    scopes[0] = replace(scopes[0], key_name=numbered_name(ROWKEY, source_columns(scopes)))
    _check_names(sources, scopes)
    _check_items(sources, items)
    _check_windows(sources, items)
    scope = replace(scopes[0], joined=tuple(scopes[1:]))
    types = column_types(items[0])
    keys = tuple(_key_column(scope, scopes[0], name, types[name]) for name in key_names(items[0]))
    text = quoted(items[0].name) + (f" AS {quoted(scopes[0].names[0])}" if query.joins else "")
    type: Literal["stream", "table"] = "stream" if is_stream(items[0]) else "table"
    clause = FromClause(text, scope, type, keys, unnamed_key=any(map(has_unnamed_key, items)), co_partitioned=(items[0],))
    for number, (join, item) in enumerate(zip(query.joins, items[1:], strict=True), 1):
        clause = _joined(clause, join, item, scopes[:number], scopes[number])
    is_timed = clause.type == "table" and not is_pulled and has_clock((query.items, query.where, query.group_by, query.having))
    return _timed(clause) if is_timed else clause


def flattened(clause: FromClause) -> tuple[list[tuple[str, str]], Scope]:
    """Returns the columns of FROM, each with the name SOURCE.COLUMN, and the scope of rows with these names."""
    scope = clause.scope
    flat = replace(scope, is_flat=True, of_join={name: name for name in scope.position})
    columns: list[tuple[str, str]] = []
    for one in scope.sources:
        hidden = () if one.unnamed_key is None else (one.unnamed_key[0],)
        times = one.hidden if one.has_position else one.of_table
        columns += [(scope.text(column, one), flat.text(column, one)) for column in dict.fromkeys((*one.columns, *times, *hidden))]
    columns += [(text, name) for name, text in scope.position.items()]
    if scope.key is not None:
        columns.append((scope.key.text, quoted(ROWKEY)))
        flat = replace(flat, key=Typed(quoted(ROWKEY), scope.key.type))
    return columns, flat


def _timed(clause: FromClause) -> FromClause:
    """Returns the rows of tables with the time at which each was processed, which it keeps until it leaves."""
    columns, flat = flattened(clause)
    names = dict(columns)
    for number, key in enumerate(clause.key):
        names.setdefault(key.value.text, quoted(f"key {number}"))
    items = ", ".join(f"{text} AS {name}" for text, name in names.items())
    where = f" WHERE {' AND '.join(clause.conditions)}" if clause.conditions else ""
    time = f"ksqldb_first_time({clause.scope.clock_of_place}) AS {CLOCK}"
    rows = f"(SELECT {items}, {time} FROM {clause.text}{where} GROUP BY {', '.join(names)}) AS timed"
    keys = tuple(
        KeyColumn(replace(k.value, text=names[k.value.text]), frozenset(names[c] for c in k.columns if c in names), k.name, k.shown)
        for k in clause.key
    )
    return replace(clause, text=rows, scope=replace(flat, clock=CLOCK), key=keys, conditions=())


def _check_names(sources: tuple[e.SourceName, ...], scopes: list[Scope]) -> None:
    """Raises 42712 for two sources with one name."""
    names: set[str] = set()
    for source, scope in zip(sources, scopes, strict=True):
        if scope.names[0] in names:
            raise DuplicateAlias(
                "Each side of the join must have a unique alias", hint="Write FROM name AS alias.", position=source.position
            )
        names.add(scope.names[0])


def _check_items(sources: tuple[e.SourceName, ...], items: list[Item]) -> None:
    """Raises 0A000 for a stream or table that is joined with itself."""
    ids: set[int] = set()
    for source, item in zip(sources, items, strict=True):
        if item.id in ids:
            shown = ksqldb_name(item.name)
            raise FeatureNotSupported(f"Cannot join '{shown}' to '{shown}': self joins are not yet supported.", position=source.position)
        ids.add(item.id)


def _check_windows(sources: tuple[e.SourceName, ...], items: list[Item]) -> None:
    """Raises 0A000 for a join of streams or tables whose keys have windows, other than those of one kind with windows of one kind."""
    bounds = [_bounds(item) for item in items]
    are_alike = all(is_stream(item) == is_stream(items[0]) and own == bounds[0] for item, own in zip(items, bounds, strict=True))
    if len(items) == 1 or are_alike or not any(bounds):
        return
    source, _ = next(pair for pair in zip(sources, bounds, strict=True) if pair[1])
    if all(bounds):
        message = f"a join of '{ksqldb_name(source.name)}' with a source that has windows of another kind is not supported"
    else:
        listed = (f"`{ksqldb_name(s.alias or s.name)}` is {'' if own else 'not '}windowed" for s, own in zip(sources, bounds, strict=True))
        message = "\n".join(("Can not join windowed source to non-windowed source.", *listed))
    raise FeatureNotSupported(message, hint="Streams, or tables, with windows of the same kind can be joined.", position=source.position)


def _bounds(item: Item) -> tuple[str, ...]:
    """Returns the bounds of windows in the key of a stream or table."""
    return tuple(name for name in key_names(item) if name in WINDOW_BOUNDS)


def _key_column(scope: Scope, source: Scope, name: str, type: e.TypeName) -> KeyColumn:
    text = scope.text(name, source)
    return KeyColumn(Typed(text, type), frozenset([text]), name)


def _joined(left: FromClause, join: e.JoinClause, item: Item, scopes: list[Scope], right: Scope) -> FromClause:
    """Returns the join of FROM so far, with these scopes, with one more stream or table."""
    _check_kind(left, join, item)
    check_sides(join, replace(scopes[0], joined=(*scopes[1:], right)))
    together = replace(left, co_partitioned=(*left.co_partitioned, item))
    if is_stream(item):
        return _joined_streams(together, join, item, scopes, right)
    bounds = _bounds(item)
    keys = [name for name in key_names(item) if name not in bounds]
    if len(keys) != 1:
        raise FeatureNotSupported("a join with a table whose key has several columns is not supported", position=join.source.position)
    ksqldb = ksqldb_of(item)
    column = "" if ksqldb is None else unnamed_key_column(ksqldb)
    other, *by_text = (Typed(left.scope.text(name, right), column_types(item)[name]) for name in (*keys, *filter(None, [column])))
    before = replace(scopes[0], joined=tuple(scopes[1:]), key=left.scope.key)
    both = replace(before, joined=(*before.joined, right))
    one, by = left_side(join, (other, *by_text), before, both, is_of_stream=left.type == "stream")
    check_types(join, one, by, both)
    if by in by_text:
        one = Typed(f"convert_to({cast(one, types.VARCHAR, join.condition.position).text}, 'UTF8')", types.BYTES)
    by_key = len(left.key) == 1 + len(bounds) and one.text in left.key[0].columns
    windows = _windows(join, item, both, by_key=by_key)
    one = left.key[0].value if by_key else one
    as_of = f" {AS_OF_ARRIVAL}" if left.type == "stream" else ""
    text = f"{left.text} {join.kind.upper()} JOIN {quoted(item.name)}{as_of} AS {quoted(right.names[0])} ON {one.text} = {other.text}"
    text += _same_windows(left, both, right)
    if by_key and left.type == "table":
        by_primary_key = _by_primary_key(replace(together, text=text), join, other, keys[0], columns_of(join, before, right))
        return replace(by_primary_key, key=(*by_primary_key.key, *windows))
    joined = replace(
        left if left.type == "table" else together,
        text=text,
        conditions=tuple(dict.fromkeys((*left.conditions, f"{one.text} IS NOT NULL"))),
    )
    if join.kind in ("right", "full"):
        raise FeatureNotSupported(
            f"Invalid join type: {join.kind}-outer join not supported for foreign-key table-table join.",
            hint="Use LEFT JOIN.",
            position=join.position,
        )
    if left.type == "table":
        return replace(joined, by_foreign_key=True)  # it has the key of the left table
    name, columns = (left.key[0].name, left.key[0].columns) if by_key else (keys[0], frozenset([one.text]))
    return replace(joined, key=(KeyColumn(one, columns | {other.text}, name, columns_of(join, before, right)),))


def _joined_streams(left: FromClause, join: e.JoinClause, item: Item, scopes: list[Scope], right: Scope) -> FromClause:
    """Returns the join of the streams of FROM so far with one more."""
    assert join.within is not None
    before = replace(scopes[0], joined=tuple(scopes[1:]), key=left.scope.key, of_join=left.scope.of_join)
    both = replace(before, joined=(*before.joined, right))
    operands = stream_sides(join, before, both, right)
    one, other = (of_condition(both).value(operand) for operand in operands)
    check_types(join, one, other, both)
    by_key = bool(left.key) and one.text in left.key[0].columns and len(left.key) == 1 + len(_bounds(item))
    one = left.key[0].value if by_key else one
    windows = _windows(join, item, both, by_key=by_key)
    number = quoted(f"join {len(scopes)}")
    position = replace(both, of_join=left.scope.of_join).position
    earlier, later = position["rowtime"], both.text("rowtime", right)
    lengths = (*join.within, *(() if join.grace is None else (join.grace,)))
    within = ", ".join([earlier, later, *(f"interval '{length} milliseconds'" for length in lengths)])
    text = f"{left.text} {join.kind.upper()} JOIN {quoted(item.name)} AS {quoted(right.names[0])} ON {one.text} = {other.text}"
    text += _same_windows(left, both, right)
    of_join = {"rowtime": f"greatest({earlier}, {later})", "rowpartition": "0", "rowoffset": f"{number}.number"}
    if ARRIVAL in position and ARRIVAL in right.hidden:
        of_join[ARRIVAL] = f"greatest({position[ARRIVAL]}, {both.text(ARRIVAL, right)})"
    joined = replace(left, text=f"{text} WITHIN ({within}) AS {number}", scope=replace(left.scope, of_join=of_join))
    columns = frozenset([one.text, other.text]) | (left.key[0].columns if by_key else frozenset())
    names = [operand.column for operand in operands if isinstance(operand, e.ColumnReference)]
    if join.kind == "full" or not names:
        value = Typed(f"coalesce({one.text}, {other.text})", one.type)
        return replace(
            joined, key=(KeyColumn(value, frozenset([value.text]), both.key_name), *windows), scope=replace(joined.scope, key=value)
        )
    name = left.key[0].name if by_key and join.kind != "right" else names[-1 if join.kind == "right" else 0]
    key = KeyColumn(other if join.kind == "right" else one, columns, name, columns_of(join, before, right))
    return replace(joined, key=(key, *windows))


def _windows(join: e.JoinClause, item: Item, both: Scope, *, by_key: bool) -> list[KeyColumn]:
    """Returns the bounds of windows in the key of a join. Raises 0A000 for a join by other columns than the keys."""
    windows = [_window_bound(name, both) for name in _bounds(item)]
    if windows and not by_key:
        raise FeatureNotSupported("Implicit repartitioning of windowed sources is not supported.", position=join.condition.position)
    return windows


def _same_windows(left: FromClause, both: Scope, right: Scope) -> str:
    """Returns the conditions that the bounds of windows of both sides are equal."""
    bounds = [key for key in left.key if key.name in WINDOW_BOUNDS and key.name in right.columns]
    return "".join(f" AND {bound.value.text} = {both.text(bound.name, right)}" for bound in bounds)


def _window_bound(name: str, scope: Scope) -> KeyColumn:
    """Returns a bound of the windows of streams or tables as a column of the key of their join."""
    value = of_condition(scope).value(bound_of_windows(name, scope))
    return KeyColumn(value, frozenset([value.text, *(scope.text(name, side) for side in scope.sources)]), name)


def _by_primary_key(joined: FromClause, join: e.JoinClause, right: Typed, name: str, shown: tuple[str, ...]) -> FromClause:
    """Returns the join of two tables by their keys, with its key. `right`: the key of the right table, with this name."""
    left = joined.key[0]
    match join.kind:
        case "full":
            value = Typed(f"coalesce({left.value.text}, {right.text})", right.type)
            key = KeyColumn(value, frozenset([value.text]), joined.scope.key_name)
            return replace(joined, key=(key,), scope=replace(joined.scope, key=value))
        case "right":
            key = KeyColumn(right, left.columns | {right.text}, name, shown)
        case _:
            key = KeyColumn(left.value, left.columns | {right.text}, left.name, shown)
    return replace(joined, key=(key,))


def _check_kind(left: FromClause, join: e.JoinClause, item: Item) -> None:
    """Raises 42809 for a table joined to a stream, and 0A000 for joins that are not supported."""
    if join.within is not None and (left.type == "table" or not is_stream(item)):
        raise WrongObjectType(
            f"A window definition was provided for a {_kind_of(left, item)} join. These joins are not windowed."
            " Please drop the window definition (ie. the WITHIN clause) and try to execute your join again.",
            position=join.position,
        )
    if is_stream(item) and left.type == "table":
        raise WrongObjectType(
            "Invalid join order: table-stream joins are not supported; only stream-table joins.",
            hint="Write the stream on the left.",
            position=join.position,
        )
    if is_stream(item):
        if join.within is None:
            raise WrongObjectType(
                "Stream-Stream joins must have a WITHIN clause specified. None was provided.",
                hint="Write WITHIN 1 HOUR before ON.",
                position=join.position,
            )
        return
    if left.type == "stream" and join.kind in ("right", "full"):
        raise FeatureNotSupported(
            f"{join.kind.capitalize()} outer joins between streams and tables are not supported.",
            hint="Use LEFT JOIN.",
            position=join.position,
        )


def _kind_of(left: FromClause, item: Item) -> str:
    return f"{left.type.title()}-{'Stream' if is_stream(item) else 'Table'}"
