"""Persistent queries of ksqlDB as queries of PostgreSQL's dialect.

    SelectQuery, FromClause ──► Translation(text, columns, message_key)

    aggregation   SELECT … GROUP BY: a table
    projection    SELECT …: the rows of a stream or table
    derivation    SELECT … [PARTITION BY]: a stream, with the positions of the rows, or a table

The table of an aggregation with WINDOW has the columns windowstart and windowend, too. The first is in the key, and for
WINDOW SESSION also the second: in ksqlDB it is the time of the last record. GROUP BY ignores rows whose key is NULL,
PARTITION BY keeps them. The projection contains the key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    GroupingError,
    InvalidColumnReference,
    InvalidParameterValue,
    ReservedName,
    UndefinedColumn,
    WrongObjectType,
)
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb import functions
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.queries.joins import FromClause, KeyColumn
from tailgate.sql.ksqldb.queries.translation import (
    PSEUDO_COLUMNS,
    ROWKEY,
    WINDOW_BOUNDS,
    WINDOWSTART,
    Scope,
    Translator,
    listed_names,
    name_of,
)
from tailgate.sql.ksqldb.typed.values import Typed


@dataclass(frozen=True, slots=True)
class Translation:
    """A query of PostgreSQL's dialect. `message_key`: the names of the columns in the message's key. `unnamed_key`: see KsqldbItem."""

    text: str
    columns: tuple[tuple[str, TypeName], ...]
    message_key: tuple[str, ...]
    unnamed_key: bool = False


def aggregation(query: e.SelectQuery, source: FromClause) -> Translation:
    """Returns the translation of SELECT … FROM … [WHERE …] GROUP BY … [HAVING …].

    Raises 0A000 for clauses that are not supported, 42803 for an expression that is neither a key nor an
    aggregate, 42P10 if the projection lacks a key, and 22023 or 42809 for an invalid window.
    """
    check_clauses(query)
    scope = source.scope
    window_keys: tuple[e.Expression, ...] = ()
    if query.window is not None:
        _check_window(query.window, source)
        scope = replace(scope, window_end=_window_end(query.window))
        window_keys = tuple(map(e.ColumnReference, WINDOW_BOUNDS))
    if query.partition_by:
        raise FeatureNotSupported("PARTITION BY with GROUP BY is not supported", position=query.partition_by[0].position)
    translator = Translator(scope)
    keys = [translator.value(key) for key in query.group_by]
    items = _items(query, translator)
    _check_names(items, WINDOW_BOUNDS if window_keys else ())
    key_names: dict[e.Expression, str] = {}
    for item, name, _ in items:
        assert item.expression is not None
        if item.expression in query.group_by:
            key_names.setdefault(item.expression, name)
        elif not _is_aggregate(item.expression, (*query.group_by, *window_keys)):
            raise GroupingError(
                f"Non-aggregate SELECT expression must be part of GROUP BY: {listed_names((name,))}", position=item.expression.position
            )
    missing = [key for key in query.group_by if key not in key_names]
    if missing:
        raise InvalidColumnReference(
            "Key missing from projection. The query used to build the table must include the grouping expressions in its projection.",
            position=missing[0].position,
        )
    conditions = [*source.conditions, *(f"{key.text} IS NOT NULL" for key in keys)]
    if query.where is not None:
        conditions.append(translator.value(query.where).text)
    having = f" HAVING {translator.value(query.having).text}" if query.having is not None else ""
    message_key = tuple(key_names[key] for key in query.group_by)
    if query.window is not None:
        bounds = [(e.SelectItem(key), name, translator.value(key)) for key, name in zip(window_keys, WINDOW_BOUNDS, strict=True)]
        in_key = 2 if query.window.kind == "session" else 1
        items += bounds
        message_key += WINDOW_BOUNDS[:in_key]
        rows = _windows(query.window, source.text, conditions, [key.text for key in keys])
        keys += [typed for _, _, typed in bounds[:in_key]]
    else:
        rows = f"{source.text} WHERE {' AND '.join(conditions)}"
    text = f"SELECT {_texts(items)} FROM {rows} GROUP BY {', '.join(k.text for k in keys)}{having}"
    return Translation(text, _columns(items), message_key)


def _check_window(window: e.WindowClause, source: FromClause) -> None:
    """Raises 0A000, 22023, or 42809 for a table."""
    if source.scope.joined:
        raise FeatureNotSupported(
            "WINDOW with a join is not supported", hint="Create a stream of the join first.", position=window.position
        )
    if source.type == "table":
        raise WrongObjectType("WINDOW clause is only supported for streams", position=window.position)
    for clause, value in (("RETENTION", window.retention), ("GRACE PERIOD", window.grace)):
        if value is not None:
            raise FeatureNotSupported(
                f"{clause} of a window is not supported", hint="Late records count, and windows are kept.", position=window.position
            )
    if window.size <= 0 or (window.advance is not None and not 0 < window.advance <= window.size):
        raise InvalidParameterValue(
            "the size of a window must be positive, and its advance positive and at most the size", position=window.position
        )


def _window_end(window: e.WindowClause) -> str:
    """Returns the text of WINDOWEND. A session ends with its last row, one gap before the end of `session`."""
    if window.kind == "session":
        return f"({WINDOWSTART.replace('window_start', 'window_end')} - {window.size})"
    return f"({WINDOWSTART} + {window.size})"


def _windows(window: e.WindowClause, relation: str, conditions: list[str], keys: list[str]) -> str:
    """Returns FROM and WHERE: the rows of a stream that satisfy the conditions, with their windows.

    The sessions of a key consist of these rows only, so their conditions are inside.
    """
    size, where = f"interval '{window.size} milliseconds'", f"WHERE {' AND '.join(conditions)}"
    match window.kind:
        case "session":
            return f"session((SELECT * FROM {relation} {where}), rowtime, {size}, {', '.join(keys)})"
        case "hopping":
            return f"hop({relation}, rowtime, interval '{window.advance} milliseconds', {size}) {where}"
    return f"tumble({relation}, rowtime, {size}) {where}"


def projection(query: e.SelectQuery, source: FromClause) -> Translation:
    """Returns the translation of SELECT … FROM … [WHERE …], without a message key.

    Raises 0A000 for clauses that are not supported, and 42803 for aggregates.
    """
    translator = Translator(source.scope, aggregates=False)
    return _projection(query, source, translator, _items(query, translator))


def derivation(query: e.SelectQuery, source: FromClause) -> Translation:
    """Returns the translation of SELECT … FROM … [WHERE …] [PARTITION BY …] for a stream or table.

    A row of a stream has the position of the record of a stream that it results from. Raises 42P10 if the projection lacks the key,
    and 42939 for a column with the name of a pseudo column.
    """
    translator = Translator(source.scope, aggregates=False)
    items = _items(query, translator)
    is_stream = source.type == "stream"
    _check_names(items, tuple(PSEUDO_COLUMNS) if is_stream else ())
    keys = _partition_key(query, translator) if query.partition_by else source.key
    if query.partition_by and not is_stream:
        raise WrongObjectType("PARTITION BY is only supported for streams", position=query.partition_by[0].position)
    has_unnamed_key = source.unnamed_key and not query.partition_by and len(keys) == 1
    key_names: tuple[str, ...] = (ROWKEY,)
    if has_unnamed_key:
        _check_names(items, key_names)
        items = [*items, (e.SelectItem(None), ROWKEY, keys[0].value)]
    else:
        key_names = _with_keys(query, source, items, keys)
    position = (f"{text} AS {quoted(name)}" for name, text in zip(PSEUDO_COLUMNS, source.scope.position, strict=False))
    rows = _projection(query, source, translator, items, "".join(f", {text}" for text in position) if is_stream else "")
    return Translation(rows.text, rows.columns, key_names, has_unnamed_key)


def _with_keys(query: e.SelectQuery, source: FromClause, items: Items, keys: tuple[KeyColumn, ...]) -> tuple[str, ...]:
    """Replaces the items that stand for columns of the key by these columns. Returns their names. Raises 42P10 if one is missing."""
    key_names = []
    for key in keys:
        place = next((i for i, (_, _, typed) in enumerate(items) if typed.text in key.columns), None)
        if place is None:
            clause = "PARTITION BY expression" if query.partition_by else f"key column {listed_names((key.name,))}"
            raise InvalidColumnReference(
                f"Key missing from projection. The query used to build the {source.type} must include the {clause} in its projection.",
                position=query.position,
            )
        item, name, _ = items[place]
        items[place] = item, name, key.value
        key_names.append(name)
    return tuple(key_names)


def _partition_key(query: e.SelectQuery, translator: Translator) -> tuple[KeyColumn, ...]:
    """Returns the key of PARTITION BY; none for NULL."""
    if query.partition_by == (e.Constant(None),):
        return ()
    values = map(translator.value, query.partition_by)
    return tuple(KeyColumn(value, frozenset([value.text]), "") for value in values)


# an item of a projection, its name, and its translation
Items = list[tuple[e.SelectItem, str, Typed]]


def _items(query: e.SelectQuery, translator: Translator) -> Items:
    """Returns the items of a projection, with * expanded. Raises 42701 for a name that occurs twice, and 42803 for * with GROUP BY."""
    items: Items = []
    for number, item in enumerate(query.items):
        if isinstance(item.expression, e.FieldAccess) and item.expression.name is None:
            for field in translator.fields(item.expression):
                assert field.name is not None
                items.append((e.SelectItem(field, position=item.position), field.name, translator.value(field)))
            continue
        if item.expression is not None:
            items.append((item, name_of(item, number, translator.scope), translator.value(item.expression)))
            continue
        if query.group_by:
            raise GroupingError("SELECT * is not allowed with GROUP BY", hint="Write the columns out.", position=item.position)
        for column, name in _expanded(item, translator.scope):
            items.append((e.SelectItem(column, position=item.position), name, translator.value(column)))
    names: set[str] = set()
    for item, name, _ in items:
        if name in names:
            raise DuplicateColumn(f'column "{name}" specified more than once', position=item.position)
        names.add(name)
    return items


def _expanded(item: e.SelectItem, scope: Scope) -> list[tuple[e.ColumnReference, str]]:
    """Returns the columns of * or source.*, with their names. Those of a join are SOURCE_COLUMN. Raises 42703."""
    sources = [source for source in scope.sources if item.source is None or item.source in source.names]
    if item.source is not None and not sources:
        raise UndefinedColumn(f"Column '{ksqldb_name(item.source)}.*' cannot be resolved.", position=item.position)
    pairs = [(source, column) for source in sources for column in source.columns]
    rowkey = [(e.ColumnReference(ROWKEY, None, item.position), ROWKEY)] if scope.key is not None and item.source is None else []
    return rowkey + [
        (e.ColumnReference(column, source.names[0], item.position), scope.name(column, source) if scope.joined else column)
        for source, column in pairs
    ]


def _check_names(items: Items, reserved: tuple[str, ...]) -> None:
    """Raises 42939 for an item with the name of a column that the translation adds."""
    for item, name, _ in items:
        if name in reserved:
            raise ReservedName(f"Reserved column name in select: `{ksqldb_name(name)}`. Please alias the column.", position=item.position)


def _texts(items: Items) -> str:
    return ", ".join(f"{typed.text} AS {quoted(name)}" for _, name, typed in items)


def _columns(items: Items) -> tuple[tuple[str, TypeName], ...]:
    return tuple((name, typed.type) for _, name, typed in items)


def _projection(query: e.SelectQuery, source: FromClause, translator: Translator, items: Items, added: str = "") -> Translation:
    """Returns the translation of a query without GROUP BY. `added`: further items of the projection."""
    check_clauses(query)
    if query.having is not None:
        raise GroupingError("HAVING requires a GROUP BY clause", position=query.having.position)
    conditions = [*source.conditions, *(() if query.where is None else (translator.value(query.where).text,))]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return Translation(f"SELECT {_texts(items)}{added} FROM {source.text}{where}", _columns(items), ())


def check_clauses(query: e.SelectQuery) -> None:
    """Raises 0A000 for EMIT FINAL, which is not supported, and 42803 for a window without GROUP BY."""
    if query.window is not None and not query.group_by:
        raise GroupingError("WINDOW clause requires a GROUP BY clause", position=query.window.position)
    if query.emit == "final":
        raise FeatureNotSupported("EMIT FINAL is not supported", hint="Use EMIT CHANGES.", position=query.position)


def _is_aggregate(expression: e.Expression, keys: tuple[e.Expression, ...]) -> bool:
    """Returns whether an expression contains columns only in keys and in arguments of aggregates."""
    if expression in keys or isinstance(expression, e.Constant):
        return True
    match expression:
        case e.FunctionCall(name, arguments):
            return name in functions.AGGREGATE_NAMES or all(_is_aggregate(a, keys) for a in arguments)
        case e.Operation(_, operands):
            return all(_is_aggregate(o, keys) for o in operands)
        case e.Cast(operand) | e.FieldAccess(operand):
            return _is_aggregate(operand, keys)
        case e.Subscript(operand, index):
            return _is_aggregate(operand, keys) and _is_aggregate(index, keys)
        case e.Constructor(_, values, map_keys):
            return all(_is_aggregate(v, keys) for v in (*values, *(k for k in map_keys if not isinstance(k, str))))
        case e.InList(operand, items):
            return all(_is_aggregate(o, keys) for o in (operand, *items))
        case e.Between(operand, low, high):
            return all(_is_aggregate(o, keys) for o in (operand, low, high))
        case e.CaseExpression(operand, branches, otherwise):
            parts = [part for branch in branches for part in branch] + [o for o in (operand, otherwise) if o is not None]
            return all(_is_aggregate(part, keys) for part in parts)
    return False
