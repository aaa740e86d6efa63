"""The columns that a query of ksqlDB sees in a relation of the catalog, with ksqlDB's types."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from tailgate.lake.catalog import Catalog, Item, Source, Table, ksqldb_of
from tailgate.lake.catalog.formats import Avro, KsqldbItem
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported, UndefinedTable
from tailgate.lake.types import Field
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.declared.properties import KEY_PROPERTY, named_column
from tailgate.sql.ksqldb.expression_parser import KsqldbCursor, type_name
from tailgate.sql.ksqldb.expressions import SourceName, TypeName
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.parser import parse
from tailgate.sql.ksqldb.pseudo_columns import HIDDEN_COLUMNS, PSEUDO_COLUMNS, WINDOW_BOUNDS
from tailgate.sql.ksqldb.queries.scope import ROWKEY, Scope
from tailgate.sql.ksqldb.statements import CreateItem


def is_stream(item: Item) -> bool:
    """Returns whether a relation is a stream of ksqlDB, declared or derived. Its rows have a position."""
    ksqldb = ksqldb_of(item)
    return ksqldb is not None and ksqldb.type == "stream"


def source_item(source: SourceName, catalog: Catalog) -> Item:
    """Returns the relation that FROM names. Raises 42P01."""
    try:
        return catalog.relation(Name(source.name, position=source.position))
    except UndefinedTable:
        raise UndefinedTable(f"{ksqldb_name(source.name)} does not exist.", position=source.position) from None


def scope_of(item: Item, source: SourceName) -> Scope:
    """Returns the columns of a relation. Fields of Avro records are those of the schema. `source`: its place in FROM.

    Raises 0A000 for a table without a key.
    """
    if isinstance(item, Table) and item.key is None:
        raise FeatureNotSupported("a table without a key is not supported here", position=source.position)
    all_columns, hidden = column_types(item), hidden_columns(item)
    columns = {name: type for name, type in all_columns.items() if name not in hidden}
    keys = key_names(item) if has_unnamed_key(item) else ()
    unnamed_key = (keys[0], all_columns[keys[0]]) if keys else None
    names = (source.alias,) if source.alias else (source.name,)
    is_table = ksqldb_of(item) is not None and not is_stream(item)
    return Scope(
        columns,
        names,
        has_position=is_stream(item),
        of_table=tuple(name for name in PSEUDO_COLUMNS if is_table and name in all_columns),
        unnamed_key=unnamed_key,
        is_declared=isinstance(item, Source),
        hidden=position_columns(item),
    )


def position_columns(item: Item) -> tuple[str, ...]:
    """Returns the names of the columns with the position of the rows of a stream; none for a table."""
    names = {column.name for column in item.columns} if is_stream(item) else set()
    return tuple(name for name in HIDDEN_COLUMNS if name in names)


def has_unnamed_key(item: Item) -> bool:
    """Returns whether queries select the key of a relation of ksqlDB as ROWKEY only."""
    ksqldb = ksqldb_of(item)
    return ksqldb is not None and ksqldb.unnamed_key


def unnamed_key_column(ksqldb: KsqldbItem) -> str:
    """Returns the column of a declared item whose text the unnamed key has; empty if the value lacks it, and for another item."""
    statement = parse(ksqldb.statement) if ksqldb.unnamed_key and ksqldb.message_key == (ROWKEY,) else None
    return named_column(str(dict(statement.properties)[KEY_PROPERTY])) if isinstance(statement, CreateItem) else ""


def hidden_columns(item: Item) -> frozenset[str]:
    """Returns the names of the columns that `*` and DESCRIBE leave out."""
    return frozenset((*HIDDEN_COLUMNS, *((ROWKEY,) if has_unnamed_key(item) else ())))


def _avro_types(item: Source) -> dict[str, TypeName]:
    """Returns the types of the fields of a source's Avro records by the names of their columns."""
    return types.column_types(json.loads(item.value_format.schema)) if isinstance(item.value_format, Avro) else {}


def key_names(item: Item) -> tuple[str, ...]:
    """Returns the names of the columns in the key of a relation's messages; for a relation of PostgreSQL's dialect, its key."""
    ksqldb = ksqldb_of(item)
    return tuple(item.columns[i].name for i in item.key or ()) if ksqldb is None else ksqldb.message_key


def column_types(item: Item) -> dict[str, TypeName]:
    """Returns the types of the columns of a relation. Those inside of a jsonb are known for relations of ksqlDB and Avro records."""
    ksqldb = ksqldb_of(item)
    nested = {} if ksqldb is None else {name: type_name(KsqldbCursor(text)) for name, text in ksqldb.types.items()}
    if isinstance(item, Source):
        nested |= {name: type for name, type in _avro_types(item).items() if type.name in types.STRUCTURES}
    return {c.name: nested.get(c.name) or types.of_catalog(c.type) for c in item.columns}


def value_positions(columns: Sequence[Field], key: Sequence[int] | None) -> list[int]:
    """Returns the positions of the columns in the message's value. `key`: those of its key."""
    is_windowed = any(columns[i].name in WINDOW_BOUNDS for i in key or ())
    hidden = set(HIDDEN_COLUMNS) | set(WINDOW_BOUNDS if is_windowed else ())
    return [i for i, column in enumerate(columns) if i not in (key or ()) and column.name not in hidden]


def nested_types(columns: Iterable[tuple[str, TypeName]]) -> dict[str, str]:
    """Returns the texts of the types that the catalog's columns do not have (`KsqldbItem.types`)."""
    return {name: types.text(type) for name, type in columns if type.name in types.STRUCTURES}
