"""The items of a projection, their names, and * expanded.

An expression without a name is KSQL_COL_0, the next one KSQL_COL_1, and so on. A field of a structure has its name, with _1, _2, …
if it is that of a column of the sources or of an earlier field.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain, count

from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import DatatypeMismatch, DuplicateColumn, InvalidColumnReference, ReservedName, UndefinedColumn
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.names import quoted as ksqldb_quoted
from tailgate.sql.ksqldb.pseudo_columns import HIDDEN_COLUMNS, PSEUDO_COLUMNS, WINDOW_BOUNDS
from tailgate.sql.ksqldb.queries.scope import Scope
from tailgate.sql.ksqldb.queries.translation import Translator
from tailgate.sql.ksqldb.typed.values import Typed

# an item of a projection, its name, and its translation
Items = list[tuple[e.SelectItem, str, Typed]]


def items_of(query: e.SelectQuery, translator: Translator) -> Items:
    """Returns the items of a projection, with * expanded. Raises 42804 for NULL without a cast."""
    items: Items = []
    generated, used = _generated_names(translator.scope), source_columns(translator.scope.sources)
    for item in query.items:
        if isinstance(item.expression, e.FieldAccess) and item.expression.name is None:
            for field in translator.fields(item.expression):
                assert field.name is not None
                items.append((e.SelectItem(field, position=item.position), field.name, translator.value(field)))
            continue
        if item.expression == e.Constant(None):
            raise DatatypeMismatch(
                "Can't infer a type of null. Please explicitly cast it to a required type, e.g. CAST(null AS VARCHAR).",
                position=item.position,
            )
        if item.expression is not None:
            value = translator.value(item.expression)
            name = name_of(item, translator.scope) or next(generated)
            if item.alias is None and isinstance(item.expression, e.FieldAccess):
                name = numbered_name(name, used)
                used.add(name)
            items.append((item, name, value))
            continue
        for column, name in _expanded(item, translator.scope):
            items.append((e.SelectItem(column, position=item.position), name, translator.value(column)))
    return items


def check_distinct(items: Items) -> None:
    """Raises 42701 for a name that occurs twice."""
    names: set[str] = set()
    for item, name, typed in items:
        if name in names:
            raise DuplicateColumn(
                f"Duplicate value columns found in schema: {types.column_in_schema(name, typed.type)}", position=item.position
            )
        names.add(name)


def _expanded(item: e.SelectItem, scope: Scope) -> list[tuple[e.ColumnReference, str]]:
    """Returns the columns of * or source.*, with their names. Those of a join are SOURCE_COLUMN. Raises 42703."""
    sources = [source for source in scope.sources if item.source is None or item.source in source.names]
    if item.source is not None and not sources:
        raise UndefinedColumn(f"SELECT column '{ksqldb_name(item.source)}.*' cannot be resolved.", position=item.position)
    hidden = WINDOW_BOUNDS if scope.joined else ()  # those of a join are in its key
    pairs = [(source, column) for source in sources for column in source.columns if column not in hidden]
    has_key = scope.key is not None and item.source is None
    synthetic = [(e.ColumnReference(scope.key_name, None, item.position), scope.key_name)] if has_key else []
    if not scope.joined:
        return [(e.ColumnReference(column, None, item.position), column) for _, column in pairs]
    return synthetic + [(e.ColumnReference(column, source.names[0], item.position), scope.name(column, source)) for source, column in pairs]


def check_names(items: Items, scope: Scope, others: tuple[str, ...] = ()) -> None:
    """Raises 42939 for an item with the name of a pseudo column, or of another one that the translation adds.

    The bounds of windows are columns of a table with windows: they keep their names.
    """
    for item, name, _ in items:
        is_column = isinstance(item.expression, e.ColumnReference) and item.expression.column == name
        if is_column and name in WINDOW_BOUNDS and any(name in source.columns for source in scope.sources):
            continue
        if name in (*HIDDEN_COLUMNS, *WINDOW_BOUNDS, *others):
            raise ReservedName(f"Reserved column name in select: `{ksqldb_name(name)}`. Please alias the column.", position=item.position)


def is_copy(item: e.SelectItem) -> bool:
    """Returns whether an item copies a column of the key into the value."""
    return isinstance(item.expression, e.FunctionCall) and item.expression.name == "as_value"


def check_once(key: str, items: Items) -> None:
    """Raises 42P10 if more than one item is a column of the key. `key`: the column as ksqlDB shows it."""
    if len(items) > 1:
        names = " and ".join(listed_names((name,)) for _, name, _ in items)
        raise InvalidColumnReference(
            f"The projection contains a key column ({key}) more than once, aliased as: {names}",
            hint="Copy it into the value by AS_VALUE.",
            position=items[1][0].position,
        )


def missing_key(target: str, what: str, position: int, note: str = "") -> InvalidColumnReference:
    """Returns 42P10 for a projection that lacks a column of the key. `target`: the item that the query makes. `what`: the column.

    `note`: the end of the message.
    """
    return InvalidColumnReference(
        f"Key missing from projection.\nThe query used to build `{ksqldb_name(target)}` must include the {what} in its projection.{note}",
        position=position,
    )


def missing_primary_key(column: str, position: int) -> InvalidColumnReference:
    """Returns 42P10 for a projection of a join by a foreign key that lacks a column of the key. `column`: as ksqlDB shows it."""
    message = "the projection must include all primary key columns from the left input table"
    return InvalidColumnReference(
        f"Primary key column missing in projection. For foreign-key table-table joins, {message} ({column}).", position=position
    )


def add_item(items: Items, expression: e.Expression, value: Typed, scope: Scope) -> None:
    """Adds an expression of PARTITION BY that SELECT * does not contain."""
    item, names = e.SelectItem(expression, position=expression.position), {name for _, name, _ in items}
    name = name_of(item, scope)
    if isinstance(expression, e.FieldAccess):
        name = numbered_name(name, names | source_columns(scope.sources))
    is_free = name and name not in {*names, *PSEUDO_COLUMNS}
    items.append((item, name if is_free else next(n for n in _generated_names(scope) if n not in names), value))


def bounds_of_windows(items: Items, translator: Translator) -> Items:
    """Returns the bounds of the windows of a table with windows that a projection lacks."""
    missing = [name for name in WINDOW_BOUNDS if name not in {n for _, n, _ in items}]
    bounds = [(name, bound_of_windows(name, translator.scope)) for name in missing if name in translator.scope.columns]
    return [(e.SelectItem(bound), name, translator.value(bound)) for name, bound in bounds]


def bound_of_windows(name: str, scope: Scope) -> e.Expression:
    """Returns a bound of the windows of a stream, or of two that are joined and may be NULL."""
    if not scope.joined:
        return e.ColumnReference(name)
    return e.FunctionCall("coalesce", tuple(e.ColumnReference(name, source.names[0]) for source in scope.sources))


def texts_of(items: Items) -> str:
    return ", ".join(f"{typed.text} AS {quoted(name)}" for _, name, typed in items)


def unused_names(names: Iterable[str], items: Items) -> tuple[str, ...]:
    """Returns names for hidden columns, with underscores before them, that no item has."""
    used = {name for _, name, _ in items}
    prefix = next(prefix for n in count(1) if used.isdisjoint((prefix := "_" * n) + name for name in names))
    return tuple(prefix + name for name in names)


def columns_of(items: Items) -> tuple[tuple[str, TypeName], ...]:
    return tuple((name, typed.type) for _, name, typed in items)


def source_columns(sources: Iterable[Scope]) -> set[str]:
    """Returns the names of the columns of sources."""
    return {column for source in sources for column in source.columns}


def numbered_name(name: str, used: Collection[str]) -> str:
    """Returns a name, or the first of name_1, name_2, … that is not used."""
    return next(n for n in chain((name,), (f"{name}_{number}" for number in count(1))) if n not in used)


def _generated_names(scope: Scope) -> Iterator[str]:
    """Yields names for items without one, other than those of the columns of the sources."""
    used = source_columns(scope.sources)
    return (name for name in (f"ksql_col_{number}" for number in count()) if name not in used)


def name_of(item: e.SelectItem, scope: Scope) -> str:
    """Returns the name of a column of a projection, which was translated: its alias, its column or field; '' if it has none.

    A column of a join whose name several sources have is SOURCE_COLUMN.
    """
    match item.expression:
        case _ if item.alias is not None:
            return item.alias
        case e.ColumnReference(column, str(source)) if sum(column in s.columns for s in scope.sources) > 1:
            return scope.name(column, next(s for s in scope.sources if source in s.names))
        case e.ColumnReference(column):
            return column
        case e.FieldAccess(_, str(name)):
            return name
    return ""


def listed_names(names: tuple[str, ...]) -> str:
    """Returns names as ksqlDB spells them."""
    return ", ".join(map(ksqldb_quoted, names))
