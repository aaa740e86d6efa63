"""CREATE TABLE: the items of the catalog. The engine creates tables, and the gateway temporary ones."""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.catalog import Catalog, Change, Index, Sequence, Table
from tailgate.lake.catalog.custom_types import types_of
from tailgate.lake.catalog.item_fields import Storage
from tailgate.lake.catalog.schemas import Schema
from tailgate.lake.constraints import primary_key_name
from tailgate.lake.errors import DuplicateObject, FeatureNotSupported, TailgateError
from tailgate.lake.types import Field
from tailgate.sql.binder.sequence_calls import with_ids
from tailgate.sql.binder.writes.generated import check_expression
from tailgate.sql.binder.writes.targets import default_of
from tailgate.sql.new_items import check_columns, known_column, normalized, schema_for, stored_column
from tailgate.sql.statements import Check, CreateTable, Unique
from tailgate.sql.tables.constraints import check_constraint, key_columns, unique_index, with_foreign_keys
from tailgate.sql.tables.definition import definition
from tailgate.sql.tables.identity import column_sequence, next_value
from tailgate.sql.tables.likeness import copied_index, with_copies
from tailgate.sql.tables.names import free_name
from tailgate.sql.tables.storage.changes import with_collation
from tailgate.sql.tables.storage.parameters import created


def new_table(
    statement: CreateTable, text: str, catalog: Catalog, retain_history_ms: int = 0
) -> tuple[Table, tuple[Sequence | Index, ...]]:
    """Returns the items of a table: its own, and those of its sequences and unique constraints. `text`: the statement as typed."""
    columns = tuple(known_column(column, catalog) for column in statement.columns)
    statement, copies = with_copies(replace(statement, columns=columns), catalog)
    statement = replace(statement, columns=tuple(map(stored_column, statement.columns)))
    table = _table(statement, text, catalog)
    storage = replace(table.storage, columns=copies.storage)
    table = replace(table, retain_history_ms=retain_history_ms, comments=copies.comments, storage=storage)
    for position, column in enumerate(statement.columns):
        table = with_collation(table, position, column.collation)
    sequences = _column_sequences(statement, table, catalog)
    with_table = catalog.apply(Change(put=(table, *sequences)))
    indexes = list[Index]()
    for unique in statement.uniques:
        indexes.append(unique_index(unique, table, with_table, with_table.next_id))
        with_table = with_table.apply(Change(put=(indexes[-1],)))
    for index in copies.indexes:
        indexes.append(copied_index(index, table, with_table))
        with_table = with_table.apply(Change(put=(indexes[-1],)))
    if statement.foreign_keys:
        table = with_foreign_keys(table, statement.foreign_keys, with_table)
    if statement.foreign_keys or statement.uniques or statement.likes or types_of(table):
        table = replace(table, sql=definition(table))
    return table, (*sequences, *indexes)


def _table(statement: CreateTable, text: str, catalog: Catalog) -> Table:
    """Returns the item of a table, without its foreign keys."""
    schema = schema_for(statement.name, catalog)
    primary = Unique(statement.constraint, statement.key, statement.key_position or 0, primary=True)
    declared = tuple(Field(c.name, c.type, c.nullable, domain=c.domain) for c in statement.columns)
    key = key_columns(primary, declared) or None
    if not statement.columns:
        raise FeatureNotSupported("a table without columns is not supported")
    required = {*(key or ()), *(i for unique in statement.uniques if unique.primary for i in key_columns(unique, declared))}
    columns = tuple(replace(c, nullable=c.nullable and i not in required) for i, c in enumerate(declared))
    check_columns(columns)
    defaults: dict[str, str] = {}
    sequence = catalog.next_id  # the sequences of columns have the ids behind that of the table
    for field, column in zip(columns, statement.columns, strict=True):
        try:
            if column.default is not None:
                defaults[field.name] = with_ids(column.default, catalog)
            elif column.generated is not None:
                sequence += 1
                defaults[field.name] = next_value(sequence)
            default_of(field, defaults.get(field.name))
        except TailgateError as error:
            if error.position is not None and column.default_position is not None:
                error.position += column.default_position
            raise
    item = Table(
        id=catalog.next_id,
        name=statement.name.name,
        columns=columns,
        key=key,
        stored=True,
        sql=text,
        defaults=defaults,
        constraint=_key_name(statement, schema, catalog),
        identity={c.name: c.generated for c in statement.columns if c.generated is not None and c.generated != "serial"},
        schema=schema.id,
        generated={c.name: c.expression for c in statement.columns if c.expression is not None},
        storage=Storage(parameters=created(statement.options)),
    )
    for column in (c for c in statement.columns if c.expression is not None):
        check_expression(item, column.name, column.default_position)
    names = {c.name for c in statement.checks if c.name is not None}
    for check in statement.checks:
        item = _with_check(check, item, names, schema.name)
    return normalized(item, statement, catalog)


def _key_name(statement: CreateTable, schema: Schema, catalog: Catalog) -> str | None:
    """Returns the name of a primary key if the statement has one, or if the name that PostgreSQL derives from the table's is taken."""
    if statement.constraint is not None or not statement.key:
        return statement.constraint
    table = statement.name.name
    keys = {primary_key_name(other) for other in catalog.each(Table) if other.schema == schema.id and other.key}
    name = free_name(table, "", "pkey", lambda n: n in keys or catalog.at(n, schema) is not None)
    return None if name == f"{table}_pkey" else name


def _with_check(check: Check, table: Table, explicit: set[str], schema: str) -> Table:
    """Returns the table with one more check, sorted by name: the order in which PostgreSQL evaluates them.

    `explicit`: the names of checks in the statement. `schema`: that of the table.
    """
    own = {primary_key_name(table)} if table.constraint else set[str]()
    names = own | {c.name for c in table.checks} | (explicit if check.name is None else set())
    if check.name is not None and check.name in {c.name for c in table.checks}:
        raise DuplicateObject(f'check constraint "{check.name}" already exists')
    checks = sorted((*table.checks, check_constraint(check, table, names, schema)), key=lambda c: c.name.encode())
    return replace(table, checks=tuple(checks))


def _column_sequences(statement: CreateTable, table: Table, catalog: Catalog) -> tuple[Sequence, ...]:
    """Returns the sequences of a new table's serial and identity columns. Raises 22023."""
    after, sequences = catalog.apply(Change(put=(table,))), list[Sequence]()
    for column in (c for c in statement.columns if c.generated is not None):
        sequences.append(column_sequence(column, table, after))
        after = after.apply(Change(put=(sequences[-1],)))
    return tuple(sequences)
