"""The sequences of serial and identity columns: created with the column, added, changed and dropped.

Source: PostgreSQL 15, src/backend/commands/tablecmds.c (ATExecAddIdentity, ATExecSetIdentity, ATExecDropIdentity),
parser/parse_utilcmd.c (generateSerialExtraStmts).
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.catalog import Catalog, Change, Sequence, Table
from tailgate.lake.errors import DuplicateTable, FeatureNotSupported, InvalidParameterValue, ObjectNotInPrerequisiteState
from tailgate.lake.types import Field, Type
from tailgate.sql.sequence_definitions import altered, with_options
from tailgate.sql.statements.definitions import SequenceOptions
from tailgate.sql.statements.tables import AddIdentity, Generation, SetIdentity, TableColumn
from tailgate.sql.tables.names import free_name


def next_value(sequence: int) -> str:
    """Returns the default of a column with a sequence."""
    return f"nextval('{sequence}'::regclass)"


def column_sequence(column: TableColumn, table: Table, catalog: Catalog) -> Sequence:
    """Returns the sequence of a serial or identity column of a table in the catalog. Raises 22023."""
    assert column.generated is not None
    return _sequence(Field(column.name, column.type), column.generated, column.options or SequenceOptions(), table, catalog)


def _sequence(column: Field, generated: Generation, options: SequenceOptions, table: Table, catalog: Catalog) -> Sequence:
    if generated != "serial":
        check_identity_type(column.type)
    names = {item.name for item in catalog.items.values() if item.schema == table.schema}
    if options.name is None:
        name = free_name(table.name, column.name, "seq", names.__contains__)
    elif options.name.schema is not None and catalog.schema(options.name.schema).id != table.schema:
        raise FeatureNotSupported("the sequence of an identity column in another schema than its table is not supported")
    elif (name := options.name.name) in names:
        raise DuplicateTable(f'relation "{name}" already exists')
    sequence = with_options(name, replace(options, type=options.type or column.type), catalog)
    return replace(sequence, depends=(table.id,), column=column.name, schema=table.schema, owner=table.owner)


def add_identity(action: AddIdentity, column: Field, table: Table, catalog: Catalog) -> Change:
    """Returns the change of ADD GENERATED … AS IDENTITY. Raises 22023, 55000."""
    sequence = _sequence(column, action.generated, action.options, table, catalog)
    what = f'column "{column.name}" of relation "{table.name}"'
    if column.nullable:
        raise ObjectNotInPrerequisiteState(f"{what} must be declared NOT NULL before identity can be added")
    if column.name in table.identity:
        raise ObjectNotInPrerequisiteState(f"{what} is already an identity column")
    if column.name in table.defaults or column.name in table.generated:
        raise ObjectNotInPrerequisiteState(f"{what} already has a default value")
    defaults = {**table.defaults, column.name: next_value(sequence.id)}
    return Change(put=(replace(table, defaults=defaults, identity={**table.identity, column.name: action.generated}), sequence))


def set_identity(action: SetIdentity, column: Field, table: Table, catalog: Catalog) -> Change:
    """Returns the change of SET GENERATED and of the options of the sequence. Raises 22023, 55000."""
    _check_identity(column, table)
    put: list[Table | Sequence] = []
    if action.generated is not None:
        put.append(replace(table, identity={**table.identity, column.name: action.generated}))
    if action.options != SequenceOptions():
        put.append(altered(owned_sequence(column, table, catalog), action.options))
    return Change(put=tuple(put))


def drop_identity(column: Field, table: Table, catalog: Catalog) -> Change:
    """Returns the change of DROP IDENTITY. Raises 55000."""
    _check_identity(column, table)
    defaults = {name: text for name, text in table.defaults.items() if name != column.name}
    identity = {name: generated for name, generated in table.identity.items() if name != column.name}
    after = replace(table, defaults=defaults, identity=identity)
    return Change(put=(after,), drop=(owned_sequence(column, table, catalog).id,))


def _check_identity(column: Field, table: Table) -> None:
    if column.name not in table.identity:
        raise ObjectNotInPrerequisiteState(f'column "{column.name}" of relation "{table.name}" is not an identity column')


def check_identity_type(type: Type) -> None:
    """Raises 22023 if an identity column cannot have this type."""
    if type.is_array or type.name not in ("int2", "int4", "int8"):
        raise InvalidParameterValue("identity column type must be smallint, integer, or bigint")


def owned_sequence(column: Field, table: Table, catalog: Catalog) -> Sequence:
    """Returns the sequence of a serial or identity column."""
    return next(s for s in catalog.each(Sequence) if s.depends == (table.id,) and s.column == column.name)
