"""CREATE OR REPLACE and ALTER … ADD COLUMN of declared streams and tables: they add columns at the end.

    the declaration and the item ──► both as a source ──► the old columns, then the new ones

Queries that read the item keep their columns: `SELECT *` was expanded when they were created. Rows of a table that were read earlier
have NULL in the new columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from tailgate.engine.ddl.kafka.known_columns import check_no_backfill, readers_with_width
from tailgate.engine.ddl.kafka.registry import SchemaLookup
from tailgate.engine.ddl.ksqldb.endpoints import Endpoints
from tailgate.engine.ddl.ksqldb.items import declared_source
from tailgate.engine.ddl.ksqldb.upgrades.checks import check_same_topic, check_schema, check_type
from tailgate.engine.plan.sources.envelopes import source_layout
from tailgate.lake.catalog import Catalog, Change, DeadLetters, Item, Source, ksqldb_of
from tailgate.lake.catalog.formats import KsqldbItem
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported, InvalidTableDefinition, UndefinedTable, WrongObjectType
from tailgate.sql.ksqldb.declared.texts import text_of
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.parser import parse
from tailgate.sql.ksqldb.queries.scopes import column_types, hidden_columns
from tailgate.sql.ksqldb.statements import AddColumns, ColumnElement, CreateItem

INFERENCE = ("KEY_SCHEMA_ID", "VALUE_SCHEMA_ID")  # properties that exclude declared columns


def upgraded(
    statement: CreateItem, text: str, old: Item, catalog: Catalog, registry: SchemaLookup, endpoints: Endpoints
) -> tuple[Item, ...]:
    """Returns the items that CREATE OR REPLACE or ALTER changes: the stream or table and the items that read it.

    `text`: the statement as DESCRIBE shows it. Raises 42P07, 42809, 42P16 or 0A000 for other changes.
    """
    source, ksqldb = _replaced(statement, old)
    check_no_backfill(source, catalog)
    companions = [item for item in catalog.dependents(source.id) if isinstance(item, DeadLetters)]
    without = catalog.apply(Change(drop=(source.id, *(item.id for item in companions))))
    new, _ = declared_source(statement, text, without, registry, endpoints.of(source, catalog))
    assert new.ksqldb is not None
    check_same_topic(source, ksqldb, new.ksqldb)
    added = check_schema(source, new, statement.position)
    _check_included(source, new, added)
    first = len(source.columns) if source.first_columns is None else source.first_columns
    changed = replace(
        source,
        value_format=new.value_format,
        declared=(*(source.declared or ()), *(column for column in new.declared or () if column.field.name in added)),
        include=(*source.include, *(include for include in new.include if include.name in added)),
        sql=new.sql,
        ksqldb=new.ksqldb,
        added=(*source.added, *added),
        first_columns=first if added else source.first_columns,
    )
    layout = source_layout(changed)
    changed = replace(changed, columns=layout.columns)
    readers = readers_with_width(source, catalog) if added else ()
    return (changed, *(replace(item, sql=new.sql) for item in companions), *readers)


def with_columns(statement: AddColumns, catalog: Catalog) -> tuple[Source, CreateItem, str]:
    """Returns the item of ALTER … ADD COLUMN, its declaration with the columns, and the declaration's text. Raises 42P01 or 42809."""
    name, position = ksqldb_name(statement.name), statement.position
    item = catalog.find(Name(statement.name))
    ksqldb = ksqldb_of(item)
    if item is None or ksqldb is None:
        raise UndefinedTable(f"Source {name} does not exist.", position=position)
    if ksqldb.type != statement.type:
        raise WrongObjectType(
            f"Incompatible data source type is {ksqldb.type.upper()}, but statement was ALTER {statement.type.upper()}", position=position
        )
    if not isinstance(item, Source):
        raise FeatureNotSupported("ALTER command is not supported for CREATE ... AS statements.", position=position)
    if ksqldb.read_only:
        word = ksqldb.type
        raise FeatureNotSupported(f"Cannot alter {word} '{name}': ALTER operations are not supported on source {word}s.", position=position)
    if ksqldb.unnamed_key:
        raise FeatureNotSupported(f"ALTER of a {ksqldb.type} with an unnamed key is not supported", position=position)
    first = parse(ksqldb.statement)
    assert isinstance(first, CreateItem)
    declared = {column.name: column for column in first.columns}
    role: Literal["key", "primary key"] = "key" if first.type == "stream" else "primary key"
    types_by_name, hidden = column_types(item), hidden_columns(item)
    columns = [
        replace(declared.get(name) or ColumnElement(name, type, role if name in ksqldb.message_key else ""), type=type)
        for name, type in types_by_name.items()
        if name not in hidden
    ]
    for column in statement.columns:
        if column.role:
            raise InvalidTableDefinition(f"ALTER cannot add the key or header column {ksqldb_name(column.name)}", position=column.position)
        if any(column.name == other.name for other in columns):
            raise InvalidTableDefinition(
                f"Cannot add column `{ksqldb_name(column.name)}` to schema. A column with the same name already exists.",
                position=column.position,
            )
        columns.append(column)
    properties = tuple((name, value) for name, value in first.properties if name not in INFERENCE)
    if "FORMAT" not in dict(properties):  # they may be defaults of the session that declared the item
        formats = {"VALUE_FORMAT": ksqldb.value_format} | ({"KEY_FORMAT": ksqldb.key_format} if ksqldb.key_format != "KAFKA" else {})
        properties += tuple((name, value) for name, value in formats.items() if name not in dict(properties))
    extended = replace(first, columns=tuple(columns), properties=properties, replace=False, if_not_exists=False, position=position)
    return item, extended, text_of(extended)


def _replaced(statement: CreateItem, old: Item) -> tuple[Source, KsqldbItem]:
    """Returns a declared item that CREATE OR REPLACE names, with its properties. Raises 42P07, 42809 or 0A000."""
    ksqldb, name, position = ksqldb_of(old), ksqldb_name(old.name), statement.position
    if ksqldb is None:
        raise WrongObjectType(f'"{old.name}" is not a {statement.type} of ksqlDB', position=position)
    check_type(statement.type, old, ksqldb, position)
    if not isinstance(old, Source):
        raise FeatureNotSupported(
            f"CREATE OR REPLACE of a {ksqldb.type} that is maintained by a query is not supported without AS",
            hint=f"Use CREATE OR REPLACE {ksqldb.type.upper()} … AS SELECT.",
            position=position,
        )
    if ksqldb.read_only or statement.source:
        word = ksqldb.type
        raise FeatureNotSupported(
            f"Cannot add {word} '{name}': CREATE OR REPLACE is not supported on source {word}s.", position=statement.position
        )
    return old, ksqldb


def _check_included(old: Source, new: Source, added: tuple[str, ...]) -> None:
    """Raises 42P16 unless both have the same columns of ROWTIME and headers. `added`: the columns that only `new` has.

    Streams of earlier versions have no column with the order of their records.
    """
    ignored = {i.name for i in new.include if i.kind == "arrival"}
    included, others = (sorted(repr(i) for i in of.include if i.name not in ignored and i.name not in added) for of in (old, new))
    if included != others:
        raise InvalidTableDefinition(
            f"Cannot upgrade data source: DataSource '`{ksqldb_name(old.name)}`' has timestamp or header columns = {_included(old)} which"
            f" is not upgradeable to {_included(new)}"
        )


def _included(source: Source) -> str:
    """Returns the columns of ROWTIME and of headers, for a message."""
    names = [i.column if i.kind == "timestamp" else i.name for i in source.include if i.kind in ("timestamp", "header", "headers")]
    return ", ".join(f"`{ksqldb_name(name)}`" for name in names if name) or "none"
