"""CREATE TABLE and ALTER TABLE: the table's catalog item."""

from __future__ import annotations

from dataclasses import replace

from tailgate.engine.ddl.history import split_retention
from tailgate.engine.ddl.kafka.known_columns import check_no_backfill, readers_with_width
from tailgate.engine.ddl.names import check_columns, normalized, schema_for
from tailgate.lake.catalog import Catalog, Change, Sequence, Table
from tailgate.lake.catalog.formats import CheckConstraint
from tailgate.lake.errors import (
    DuplicateColumn,
    DuplicateObject,
    FeatureNotSupported,
    InvalidParameterValue,
    TailgateError,
    UndefinedColumn,
    UndefinedObject,
    UndefinedTable,
)
from tailgate.lake.types import Field
from tailgate.sql.binder.sequence_calls import with_ids
from tailgate.sql.binder.writes.targets import check_of, default_of
from tailgate.sql.functions.comparison import INCOMPARABLE
from tailgate.sql.plan.rewriting import columns_of
from tailgate.sql.sequence_definitions import sequence_name, with_options
from tailgate.sql.statements import AlterTable, CreateTable
from tailgate.sql.statements.definitions import SequenceOptions
from tailgate.sql.table_changes import altered_table, table_to_alter

UNCOMPARABLE = ("jsonb", "interval")  # types with several stored forms of equal values


def create_table(statement: CreateTable, text: str, catalog: Catalog) -> Table:
    """Returns the item of a table; `text` is the statement as typed."""
    schema = schema_for(statement.name, catalog)
    names = [c.name for c in statement.columns]
    for key in statement.key:
        if key not in names:
            raise UndefinedColumn(f'column "{key}" named in key does not exist', position=statement.key_position)
        if statement.key.count(key) > 1:
            raise DuplicateColumn(f'column "{key}" appears twice in primary key constraint', position=statement.key_position)
    if not statement.columns:
        raise FeatureNotSupported("a table without columns is not supported")
    columns = tuple(Field(c.name, c.type, c.nullable and c.name not in statement.key) for c in statement.columns)
    check_columns(columns)
    for column in statement.columns:
        if column.name in statement.key and column.type.name in INCOMPARABLE:
            raise UndefinedObject(
                f'data type {column.type} has no default operator class for access method "btree"',
                hint="You must specify an operator class for the index or define a default operator class for the data type.",
                position=column.position,
            )
        if column.name in statement.key and (column.type.name in UNCOMPARABLE or column.type.is_array):
            raise FeatureNotSupported(f"a primary key of type {column.type} is not supported", position=column.position)
    defaults: dict[str, str] = {}
    sequence = catalog.next_id  # the sequences of columns have the ids behind that of the table
    for field, column in zip(columns, statement.columns, strict=True):
        try:
            if column.default is not None:
                defaults[field.name] = with_ids(column.default, catalog)
            elif column.generated is not None:
                sequence += 1
                defaults[field.name] = f"nextval('{sequence}'::regclass)"
            default_of(field, defaults.get(field.name))
        except TailgateError as error:
            if error.position is not None and column.default_position is not None:
                error.position += column.default_position
            raise
    checks = _checks(statement, columns)
    history, others = split_retention(statement.options)
    if others:
        raise FeatureNotSupported(f'option "{others[0][0]}" of a table is not supported')
    item = Table(
        id=catalog.next_id,
        name=statement.name.name,
        columns=columns,
        key=tuple(names.index(k) for k in statement.key) or None,
        stored=True,
        sql=text,
        defaults=defaults,
        constraint=statement.constraint,
        checks=checks,
        identity={c.name: c.generated for c in statement.columns if c.generated is not None and c.generated != "serial"},
        retain_history_ms=history,
        schema=schema.id,
    )
    return normalized(item, statement, catalog)


def column_sequences(statement: CreateTable, table: Table, catalog: Catalog) -> tuple[Sequence, ...]:
    """Returns the sequences of a new table's serial and identity columns. Raises 22023."""
    sequences: list[Sequence] = []
    for column in (c for c in statement.columns if c.generated is not None):
        options = column.options or SequenceOptions()
        if column.generated != "serial" and column.type.name not in ("int2", "int4", "int8"):
            raise InvalidParameterValue("identity column type must be smallint, integer, or bigint")
        names = {i.name for i in catalog.items.values() if i.schema == table.schema} | {table.name, *(s.name for s in sequences)}
        name = _free(sequence_name(table.name, column.name), names)
        sequence = with_options(name, replace(options, type=options.type or column.type), catalog)
        sequences.append(replace(sequence, id=table.id + 1 + len(sequences), depends=(table.id,), column=column.name, schema=table.schema))
    return tuple(sequences)


def alter_table(statement: AlterTable, catalog: Catalog) -> tuple[Table, Change, tuple[str, ...]]:
    """Returns the changed table, the change of the catalog, and messages of notices."""
    table = table_to_alter(statement, catalog)
    if table is None:
        raise UndefinedTable(f'relation "{statement.name}" does not exist')
    check_no_backfill(table, catalog)
    altered, notices = altered_table(table, statement, catalog)
    readers = readers_with_width(table, catalog) if altered.columns != table.columns else ()
    return altered, Change(put=(altered, *readers)), notices


def _checks(statement: CreateTable, columns: tuple[Field, ...]) -> tuple[CheckConstraint, ...]:
    """Returns the check constraints sorted by name, the order in which PostgreSQL evaluates them.

    Raises 42710 for a duplicate name, and the errors of the expressions.
    """
    table, checks = statement.name.name, dict[str, CheckConstraint]()
    names = {c.name for c in statement.checks if c.name is not None}
    for check in statement.checks:
        try:
            read = columns_of(check_of(table, columns, check.text))
        except TailgateError as error:
            if error.position is not None:
                error.position += check.position
            raise
        name = check.name or _free("_".join((table, *(columns[i].name for i in read if len(read) == 1), "check")), names)
        if name in checks:
            raise DuplicateObject(f'check constraint "{name}" already exists')
        if name == statement.constraint:
            raise DuplicateObject(f'constraint "{name}" for relation "{table}" already exists')
        names.add(name)
        checks[name] = CheckConstraint(name=name, text=check.text, columns=tuple(sorted(read)))
    return tuple(checks[name] for name in sorted(checks, key=str.encode))


def _free(name: str, names: set[str]) -> str:
    """Returns the name, with a number if it is taken."""
    return next(n for n in (name, *(f"{name}{i}" for i in range(1, len(names) + 2))) if n not in names)
