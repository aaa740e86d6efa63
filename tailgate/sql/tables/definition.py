"""The CREATE TABLE statement of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tailgate.lake.catalog import Table
from tailgate.lake.catalog.indexes import parameter_texts
from tailgate.lake.catalog.items import ItemType
from tailgate.lake.catalog.names import quoted
from tailgate.lake.constraints import primary_key_name
from tailgate.lake.keywords import quoted_text
from tailgate.lake.types import Field, Type
from tailgate.sql.statements import CreateTable, parse
from tailgate.sql.tables.storage.parameters import created


def definition(table: Table, others: Sequence[str] = ()) -> str:
    """Returns CREATE TABLE with the columns, the key of stored rows, the checks, and other constraints as texts.

    Its name and options are those of `table.sql`.
    """
    creation = parse(table.sql)
    assert isinstance(creation, CreateTable)
    key = table.key or ()
    parts = []
    for i, column in enumerate(table.columns):
        if column.is_dropped:
            continue
        identity = table.identity.get(column.name)
        default = None if identity else table.defaults.get(column.name)
        constraints = " NOT NULL" * (not column.nullable and i not in key) + (f" DEFAULT {default}" if default is not None else "")
        generated = f" GENERATED {identity.upper()} AS IDENTITY" if identity else ""
        if column.name in table.generated:
            generated = f" GENERATED ALWAYS AS ({table.generated[column.name]}) STORED"
        collation = table.storage.of(i).collation
        collate = f" COLLATE {quoted(collation)}" if collation else ""
        parts.append(f"{quoted(column.name)} {column_type(column)}{collate}{constraints}{generated}")
    if table.key is not None:
        constraint = f"CONSTRAINT {quoted(table.constraint)} " if table.constraint else ""
        parts.append(f"{constraint}PRIMARY KEY ({', '.join(quoted(table.columns[k].name) for k in table.key)})")
    parts += [f"CONSTRAINT {quoted(check.name)} CHECK ({check.text})" for check in table.checks] + list(others)
    return f"CREATE TABLE {creation.name.sql} ({', '.join(parts)}){_with_clause(table, creation)}"


def with_name(item: ItemType, name: str) -> ItemType:
    """Returns the item with another name. As in PostgreSQL, the primary key of a table keeps its name."""
    if isinstance(item, Table) and item.key is not None and item.constraint is None and name != item.name:
        item = replace(item, constraint=primary_key_name(item))
        item = replace(item, sql=definition(item))
    return replace(item, name=name)


def _with_clause(table: Table, creation: CreateTable) -> str:
    """Returns WITH (…) as it was typed, or with other storage parameters if these have changed."""
    begin, end = creation.options_at
    if table.storage.parameters == created(creation.options):
        return table.sql[begin:end]
    history = [f"{name.upper()} {quoted_text(str(value))}" for name, value in creation.options if " " in name]
    options = history + parameter_texts(table.storage)
    return f" WITH ({', '.join(options)})" if options else ""


def column_definitions(columns: Sequence[Field]) -> str:
    """Returns the names and types of columns, as the attributes of a composite type."""
    return ", ".join(f"{quoted(column.name)} {column_type(column)}" for column in columns)


def column_type(column: Field) -> str:
    """Returns the name of the type or the domain of a column in CREATE TABLE."""
    return type_name(column.type) if column.domain is None else column.domain.sql


def type_name(type: Type) -> str:
    """Returns the name of a type in CREATE TABLE, where `character` and `bit` alone would have the length 1."""
    text = str(type) + "[]" * type.multidimensional
    if type.modifiers:
        return text
    return {"bpchar": text.replace("character", "bpchar", 1), "bit": text.replace("bit", '"bit"', 1)}.get(type.name, text)
