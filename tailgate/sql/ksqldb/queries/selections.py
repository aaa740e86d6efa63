"""Persistent queries of ksqlDB as queries of PostgreSQL's dialect.

    SelectQuery, FromClause ──► Translation(text, columns, message_key)

    aggregation   SELECT … GROUP BY: a table
    projection    SELECT …: the rows of a stream or table
    pushed        SELECT … EMIT CHANGES: the same, with hidden columns
    derivation    SELECT … [PARTITION BY]: a stream, with the positions of the rows, or a table

The rows of a table have ROWTIME, the latest of the records and rows that they result from, if these have one. The table of an
aggregation with WINDOW has the columns windowstart and windowend, too. The first is in the key, and for
WINDOW SESSION also the second: in ksqlDB it is the time of the last record. GROUP BY ignores rows whose key is NULL,
PARTITION BY keeps them. The projection contains the key.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    GroupingError,
    InvalidColumnReference,
    WrongObjectType,
)
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expression_texts import text as expression_text
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import quoted as quoted_name
from tailgate.sql.ksqldb.pseudo_columns import ARRIVAL, HIDDEN_COLUMNS, ROW_NUMBER, WINDOW_BOUNDS, order
from tailgate.sql.ksqldb.queries.grouping import check_grouping
from tailgate.sql.ksqldb.queries.groups import Grouping
from tailgate.sql.ksqldb.queries.items import (
    Items,
    add_item,
    bounds_of_windows,
    check_distinct,
    check_names,
    check_once,
    columns_of,
    is_copy,
    items_of,
    listed_names,
    missing_key,
    missing_primary_key,
    texts_of,
    unused_names,
)
from tailgate.sql.ksqldb.queries.joins import FromClause, KeyColumn
from tailgate.sql.ksqldb.queries.references import qualified
from tailgate.sql.ksqldb.queries.scope import ROWKEY, WINDOWSTART, Scope
from tailgate.sql.ksqldb.queries.translation import Translator
from tailgate.sql.ksqldb.queries.windows import check_bounds, check_window, windowed, with_session_keys, without_bounds
from tailgate.sql.ksqldb.typed.values import Typed

LATEST = {"stream": "max", "table": "ksqldb_high_watermark"}  # a group of a table stays when its last row leaves
SYNTHETIC_KEY = (
    "\n{} was added as a synthetic key column because the join criteria did not match any source column."
    " This expression must be included in the projection and may be aliased."
)
NUMBER_DIGITS = 8  # of a number of a row, in base 16; arrays have at most 2 GB


@dataclass(frozen=True, slots=True)
class Translation:
    """A query of PostgreSQL's dialect. `message_key`: the names of the columns in the message's key. `unnamed_key`: see KsqldbItem.

    `hidden`: the names of the columns that follow `columns` and are not shown: the position of a stream's rows.
    """

    text: str
    columns: tuple[tuple[str, TypeName], ...]
    message_key: tuple[str, ...]
    unnamed_key: bool = False
    hidden: tuple[str, ...] = ()


def aggregation(query: e.SelectQuery, source: FromClause, target: str = "") -> Translation:
    """Returns the translation of SELECT … FROM … [WHERE …] GROUP BY … [HAVING …].

    `target`: the name of the table, or empty for a push query, which may lack its key. The bounds of its windows are hidden columns.
    Raises 0A000 for clauses that are not supported, 42803 for an expression that is neither a key nor an aggregate, 42P10 if the
    projection lacks a key, and 22023 or 42809 for an invalid window.
    """
    check_clauses(query)
    is_push = not target
    query = qualified(query, source.scope)
    if query.window is not None:
        check_bounds(query, source.scope)
    window_keys: tuple[e.Expression, ...] = ()
    inner = _of_keys(source.scope if query.window is None else without_bounds(source.scope))
    conditions = [*source.conditions, *(f"{_key(key, inner).text} IS NOT NULL" for key in query.group_by)]
    if query.where is not None:
        conditions.append(Translator(source.scope, clause="WHERE", per_record=True).where(query.where))
    rows, scope = f"{source.text} WHERE {' AND '.join(conditions)}", source.scope
    if query.window is not None:
        check_window(query.window, source)
        rows, scope = windowed(query, query.window, source, conditions)
        window_keys = tuple(map(e.ColumnReference, WINDOW_BOUNDS))
    if query.partition_by:
        raise FeatureNotSupported("PARTITION BY with GROUP BY is not supported", position=query.partition_by[0].position)
    keys = [_key(key, _of_keys(scope)) for key in query.group_by]
    no_tables = "Table functions cannot be used with aggregations."
    time = f"{LATEST[source.type]}({scope.rowtime})" if scope.rowtime else ""
    translator = Translator(scope, no_tables=no_tables, grouping=_grouping(query, source, scope, keys, time))
    items = items_of(query, translator)
    if not is_push:
        check_names(items, source.scope)
    key_names = _key_names(query, items)
    for key in () if is_push else key_names:
        check_once(expression_text(key), [item for item in items if item[0].expression == key])
    check_distinct(items)
    check_grouping(query, items, (*query.group_by, *window_keys))
    missing = [key for key in query.group_by if key not in key_names]
    if missing and not is_push:
        expressions = f"grouping expression{'s'[: len(missing) - 1]} {' and '.join(map(expression_text, missing))}"
        raise missing_key(target, expressions, missing[0].position)
    having = ""
    if query.having is not None:
        translator.clause = "HAVING"
        having = f" HAVING {translator.where(query.having)}"
    message_key = () if missing else tuple(key_names[key] for key in query.group_by)
    hidden, columns = tuple[str, ...](), columns_of(items)
    if query.window is not None:
        names = unused_names(WINDOW_BOUNDS, items) if is_push else WINDOW_BOUNDS
        bounds = [(e.SelectItem(key), name, translator.value(key)) for key, name in zip(window_keys, names, strict=True)]
        in_key = 2 if query.window.kind == "session" else 1
        items += bounds
        hidden, columns = (names, columns) if is_push else ((), columns_of(items))
        message_key = () if missing else (*message_key, *names[:in_key])
        rows = with_session_keys(rows, [key.text for key in keys]) if query.window.kind == "session" else rows
        keys += [typed for _, _, typed in bounds[:in_key]]
    rowtime = f", {time} AS rowtime" if time and not is_push else ""
    text = f"SELECT {texts_of(items)}{rowtime} FROM {rows} GROUP BY {', '.join(k.text for k in keys)}{having}"
    return Translation(text, columns, message_key, hidden=hidden)


def _key_names(query: e.SelectQuery, items: Items) -> dict[e.Expression, str]:
    """Returns the names of the columns that show an expression of GROUP BY: of each expression the first."""
    names: dict[e.Expression, str] = {}
    for item, name, _ in items:
        assert item.expression is not None
        if item.expression in query.group_by:
            names.setdefault(item.expression, name)
    return names


def _of_keys(scope: Scope) -> Translator:
    """Returns the translator of GROUP BY."""
    return Translator(scope, clause="GROUP BY", per_record=True)


def _grouping(query: e.SelectQuery, source: FromClause, scope: Scope, keys: Sequence[Typed], rowtime: str) -> Grouping:
    """Returns the groups of a query. `keys`: their keys. `rowtime`: the text of their ROWTIME, or an empty one."""
    pairs = zip(query.group_by, keys, strict=True)
    by_key: dict[e.Expression, Typed] = {key: typed for key, typed in pairs if not isinstance(key, e.Constant)}
    bounds = () if query.window is None else (WINDOWSTART, scope.window_end or "")
    place = (*(key.text for key in keys), *bounds, "count(*)", *((rowtime,) if rowtime else ()))
    merges = query.window is not None and query.window.kind == "session"  # which moves rows to another group
    return Grouping(dict(query.limits), by_key, place, source.type == "stream" and not merges)


def pushed(query: e.SelectQuery, source: FromClause) -> Translation:
    """Returns the translation of a push query without GROUP BY. Hidden columns sort the rows of a stream.

    So is the end of the windows of a table, if it has a message key and does not result from a join.
    `message_key`: of a table whose key is in the projection.
    """
    query = qualified(query, source.scope)
    translator = _of_rows(source)
    items = items_of(query, translator)
    check_distinct(items)
    _check_partition_by(query, source)
    for key in query.partition_by:
        _key(key, Translator(source.scope, clause="PARTITION BY", per_record=True))
    keys = () if source.type == "stream" else tuple(_name_of_key(key, items) for key in source.key)
    keys = keys if all(keys) else ()
    if source.type == "stream":
        position = _position(source, translator, None)
        further = order(position)
        hidden = unused_names(order({name: name for name in position}), items)
    else:
        has_windows = bool(keys) and source.scope.columns.get(WINDOW_BOUNDS[1]) == types.BIGINT and not source.scope.joined
        further = (source.scope.text(WINDOW_BOUNDS[1], source.scope),) if has_windows else ()
        hidden = unused_names(WINDOW_BOUNDS[1:], items) if has_windows else ()
    added = "".join(f", {text} AS {quoted(name)}" for name, text in zip(hidden, further, strict=True))
    rows = _projection(query, source, items, added)
    return replace(rows, message_key=keys, hidden=hidden)


def _name_of_key(key: KeyColumn, items: Items) -> str:
    """Returns the name of the first item that is a column of the key, or an empty text."""
    return next((name for item, name, typed in items if typed.text in key.columns and not is_copy(item)), "")


def _key(key: e.Expression, translator: Translator) -> Typed:
    """Returns an expression of GROUP BY. A constant has a cast, because PostgreSQL takes a number as the place of an item."""
    typed = translator.value(key)
    return typed if typed.constant is None else replace(typed, text=f"CAST({typed.text} AS {types.postgresql(typed.type)})")


def projection(query: e.SelectQuery, source: FromClause) -> Translation:
    """Returns the translation of SELECT … FROM … [WHERE …]. Its message key has the columns that are those of the source's key.

    Raises 0A000 for clauses that are not supported, and 42803 for aggregates.
    """
    query = qualified(query, source.scope)
    items = items_of(query, _of_rows(source))
    check_distinct(items)
    of_key = {key.name for key in source.key}
    names = (name for item, name, _ in items if isinstance(item.expression, e.ColumnReference) and item.expression.column in of_key)
    return replace(_projection(query, source, items), message_key=tuple(names))


def derivation(query: e.SelectQuery, source: FromClause, target: str, *, hidden: Collection[str] | None = None) -> Translation:
    """Returns the translation of SELECT … FROM … [WHERE …] [PARTITION BY …] for a stream or table.

    A row of a stream has the position of the row of a stream that it results from, followed by the number of the row among those of
    table functions. `target`: the name of the stream or table. `hidden`: the names of the columns of this position, by default those
    that rows have. Raises 42P10 if the projection lacks the key, and 42939 for a column with the name of a pseudo column.
    """
    query = qualified(query, source.scope)
    translator = _of_rows(source)
    items = items_of(query, translator)
    check_names(items, source.scope)
    if any(key.name in WINDOW_BOUNDS for key in source.key):
        items += bounds_of_windows(items, _of_rows(source))
    is_stream = source.type == "stream"
    keys = _partition_key(query, Translator(source.scope, clause="PARTITION BY", per_record=True)) if query.partition_by else source.key
    _check_partition_by(query, source)
    has_unnamed_key = source.unnamed_key and not query.partition_by and len(keys) == 1
    key_names: tuple[str, ...] = (ROWKEY,)
    if has_unnamed_key:
        check_names(items, source.scope, key_names)
        items = [*items, (e.SelectItem(None), ROWKEY, keys[0].value)]
    else:
        key_names = _with_keys(query, source, items, keys, target)
        items = _in_order(query, source, items, key_names)
    check_distinct(items)
    of_table = {"rowtime": source.scope.rowtime} if source.scope.rowtime else {}
    position = _position(source, translator, hidden) if is_stream else of_table
    added = "".join(f", {text} AS {quoted(name)}" for name, text in position.items())
    rows = _projection(query, source, items, added)
    return Translation(rows.text, rows.columns, key_names, has_unnamed_key, tuple(position))


def _position(source: FromClause, translator: Translator, hidden: Collection[str] | None) -> Mapping[str, str]:
    """Returns the texts of the position of the rows of a stream, by their names. `hidden`: as of `derivation`."""
    counts = list(translator.row_counts)
    texts = {ROW_NUMBER: "", ARRIVAL: "", **source.scope.position}
    if counts:
        most = f"greatest({', '.join(counts)})" if len(counts) > 1 else counts[0]
        own = f"lpad(to_hex(generate_series(1, {most})), {NUMBER_DIGITS}, '0')"
        texts[ROW_NUMBER] = f"({texts[ROW_NUMBER]} || {own})" if texts[ROW_NUMBER] else own
    if hidden is None:
        hidden = [name for name, text in texts.items() if text]
    return {name: texts[name] or "CAST('' AS text)" for name in HIDDEN_COLUMNS if name in hidden}


def _with_keys(query: e.SelectQuery, source: FromClause, items: Items, keys: tuple[KeyColumn, ...], target: str) -> tuple[str, ...]:
    """Replaces the items that stand for columns of the key by these columns. Returns their names. Raises 42P10 if one is missing."""
    key_names = []
    has_all = any(item.expression is None and item.source is None for item in query.items)  # SELECT *
    for number, key in enumerate(keys):
        bound = key.name if key.name in WINDOW_BOUNDS else ""  # an item with another name copies it
        texts = [typed.text if bound in ("", name) and not is_copy(item) else "" for item, name, typed in items]
        places = [i for i, text in enumerate(texts) if text in key.columns]
        place = next(iter(places), None)
        shown = expression_text(query.partition_by[number]) if query.partition_by else listed_names((key.name,))
        check_once(shown, [items[i] for i in places if texts[i] == texts[places[0]]])
        if place is None and query.partition_by and has_all:
            add_item(items, query.partition_by[number], key.value, source.scope)
            place = len(items) - 1
        if place is None:
            raise _missing_key(query, source, number, key, target)
        item, name, _ = items[place]
        items[place] = item, name, key.value
        if name in key_names:
            raise DuplicateColumn(
                f"Duplicate key columns found in schema: {types.column_in_schema(name, key.value.type)}", position=item.position
            )
        key_names.append(name)
    return tuple(key_names)


def _missing_key(query: e.SelectQuery, source: FromClause, number: int, key: KeyColumn, target: str) -> InvalidColumnReference:
    """Returns 42P10 for a projection that lacks a column of the key, which has this number in the key."""
    name, note = quoted_name(key.name), ""
    if query.partition_by:
        what = f"partitioning expression {expression_text(query.partition_by[number])}"
    elif source.by_foreign_key:
        return missing_primary_key(f"{quoted_name(source.scope.names[0])}.{name}", query.position)
    elif source.scope.joined:
        what = f"join expression{'s' * (len(key.shown) > 1)} {' or '.join(key.shown or (name,))}"
        note = SYNTHETIC_KEY.format(name) if key.value == source.scope.key else ""
    else:
        what = f"key column {name}"
    return missing_key(target, what, query.position, note)


def _in_order(query: e.SelectQuery, source: FromClause, items: Items, key_names: tuple[str, ...]) -> Items:
    """Returns the items of SELECT * with PARTITION BY in the order of ksqlDB: the new key, the columns of the value, the old key."""
    if not query.partition_by or len(query.items) != 1 or query.items[0].expression is not None:
        return items
    old = {column for key in source.key for column in key.columns}
    return sorted(items, key=lambda item: (item[1] not in key_names, item[2].text in old))


def _partition_key(query: e.SelectQuery, translator: Translator) -> tuple[KeyColumn, ...]:
    """Returns the key of PARTITION BY; none for NULL."""
    if query.partition_by == (e.Constant(None),):
        return ()
    values = [(_key(key, translator), translator.value(key)) for key in query.partition_by]  # a constant is selected without its cast
    return tuple(KeyColumn(value, frozenset([value.text, selected.text]), "") for value, selected in values)


def _check_partition_by(query: e.SelectQuery, source: FromClause) -> None:
    """Raises 42809 for PARTITION BY of a table, and 0A000 for that of a stream whose keys have windows."""
    if query.partition_by and source.type == "table":
        raise WrongObjectType("PARTITION BY is only supported for streams", position=query.partition_by[0].position)
    if query.partition_by and any(key.name in WINDOW_BOUNDS for key in source.key):
        message = "Implicit repartitioning of windowed sources is not supported."
        raise FeatureNotSupported(message, position=query.partition_by[0].position)


def _of_rows(source: FromClause) -> Translator:
    """Returns the translator of the items of a projection."""
    no_tables = "Table source is not supported with table functions" if source.type == "table" else ""
    return Translator(source.scope, aggregates=False, no_tables=no_tables, per_record=True)


def _projection(query: e.SelectQuery, source: FromClause, items: Items, added: str = "") -> Translation:
    """Returns the translation of a query without GROUP BY. `added`: further items of the projection."""
    check_clauses(query)
    if query.having is not None:
        raise GroupingError("HAVING requires a GROUP BY clause", position=query.having.position)
    conditions = [*source.conditions]
    if query.where is not None:
        conditions.append(Translator(source.scope, clause="WHERE", per_record=True).where(query.where))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return Translation(f"SELECT {texts_of(items)}{added} FROM {source.text}{where}", columns_of(items), ())


def check_clauses(query: e.SelectQuery) -> None:
    """Raises 42809 for EMIT FINAL without windows, and 42803 for a window without GROUP BY."""
    if query.window is not None and not query.group_by:
        raise GroupingError("WINDOW clause requires a GROUP BY clause.", position=query.window.position)
    if query.emit == "final" and query.window is None:
        raise WrongObjectType("EMIT FINAL is only supported for windowed aggregations.", hint="Use EMIT CHANGES.", position=query.position)
