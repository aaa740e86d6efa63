"""ALTER TABLE … SET (…), RESET, REPLICA IDENTITY, CLUSTER ON, TRIGGER, and ALTER COLUMN … SET STATISTICS, STORAGE, COMPRESSION and (…).

The system catalog shows them. Nothing else depends on them, except for the foreign keys of a table without triggers.

Source: PostgreSQL 15, src/backend/commands/tablecmds.c (ATExecSetRelOptions, ATExecReplicaIdentity, ATExecSetStatistics, ATExecSetStorage).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from tailgate.lake import constraints
from tailgate.lake.catalog import Catalog, Index, Item, Table
from tailgate.lake.catalog.item_fields import DEFAULT_COLLATION, ColumnStorage
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, UndefinedObject, WrongObjectType
from tailgate.lake.types import Type
from tailgate.sql.statements.definitions import IndexMethod
from tailgate.sql.statements.tables import (
    SetClustered,
    SetColumnStorage,
    SetParameters,
    SetReplicaIdentity,
    StorageAction,
    Toggle,
    WithoutEffect,
)
from tailgate.sql.statements.values import Options
from tailgate.sql.tables.storage.parameters import changed

STATISTICS_MAX = 10_000
METHODS = {"pglz": "p", "lz4": "l", "default": ""}  # of compression
STORAGES = {"plain": "p", "external": "e", "extended": "x", "main": "m"}


def with_storage(
    table: Table,
    action: StorageAction,
    position: Callable[[str], int],
    catalog: Catalog,
) -> Table:
    """Returns the table after an action. `position`: of a column. Raises 22023, 42704, 42809, 0A000."""
    storage = table.storage
    match action:
        case WithoutEffect():
            return table
        case Toggle():
            return _toggled(table, action, catalog)
        case SetClustered(index):
            return replace(table, storage=replace(storage, clustered=clustered_index(table, index, catalog) if index else None))
        case SetReplicaIdentity(identity, index):
            number = _replica_index(table, index, catalog) if identity == "i" else 0
            return replace(table, storage=replace(storage, replica_identity=identity, replica_index=number))
        case SetParameters(parameters, ""):
            return replace(table, storage=replace(storage, parameters=changed(storage.parameters, parameters, "table")))
        case SetParameters(parameters, name):
            at = position(name)
            column = storage.of(at)
            return _with_column(table, at, replace(column, parameters=changed(column.parameters, parameters, "column")))
        case SetColumnStorage(column=name):
            at = position(name)
            return _with_column(table, at, _altered(storage.of(at), action, table.columns[at].type))


def with_parameters(index: Index, options: Options) -> Index:
    """Returns an index after SET (…) or RESET (…), whose options are None. Raises 22023."""
    changes = ((name, None if value is None else str(value)) for name, value in options)
    parameters = changed(index.storage.parameters, changes, cast(IndexMethod, index.method))
    return replace(index, storage=replace(index.storage, parameters=parameters))


def with_default_storage(table: Table, position: int) -> Table:
    """Returns the table whose column has the storage and the compression of its type, as after a change of the type."""
    column = table.storage.columns.get(position)
    return table if column is None else _with_column(table, position, replace(column, storage="", compression=""))


def with_collation(table: Table, position: int, collation: str) -> Table:
    """Returns the table whose column has the collation of this name, or that of its type if the name is empty or `default`."""
    column = table.storage.of(position)
    return _with_column(table, position, replace(column, collation="" if collation == DEFAULT_COLLATION else collation))


def _with_column(table: Table, position: int, column: ColumnStorage) -> Table:
    columns = {**table.storage.columns, position: column}
    return replace(table, storage=replace(table.storage, columns={i: c for i, c in sorted(columns.items()) if c != ColumnStorage()}))


def _altered(column: ColumnStorage, action: SetColumnStorage, type: Type) -> ColumnStorage:
    """Returns the storage of a column of this type after an action. Raises 22023 and 0A000."""
    varies = type.size == -1
    if action.statistics is not None:
        if action.statistics < -1:
            raise InvalidParameterValue(f"statistics target {action.statistics} is too low")
        return replace(column, statistics=min(action.statistics, STATISTICS_MAX))
    if action.storage is not None:
        storage = STORAGES.get(action.storage.lower())
        if storage is None:
            raise InvalidParameterValue(f'invalid storage type "{action.storage}"')
        if not varies and storage != "p":
            raise FeatureNotSupported(f"column data type {type} can only have storage PLAIN")
        return replace(column, storage=storage)
    method = METHODS.get((action.compression or "").lower())
    if not varies and method:
        raise FeatureNotSupported(f"column data type {type} does not support compression")
    if method is None:
        raise InvalidParameterValue(f'invalid compression method "{action.compression}"')
    return replace(column, compression=method)


def _toggled(table: Table, action: Toggle, catalog: Catalog) -> Table:
    """Returns the table after ENABLE or DISABLE. Its only triggers are those of foreign keys. Raises 42704."""
    if action.name:
        kind, of = ("rule", "relation") if action.words.endswith("RULE") else ("trigger", "table")
        raise UndefinedObject(f'{kind} "{action.name}" for {of} "{table.name}" does not exist')
    if not action.words.endswith("ALL"):
        return table
    disabled = action.words.startswith("DISABLE") and bool(table.foreign_keys or constraints.references_to(table, catalog))
    return replace(table, storage=replace(table.storage, triggers_disabled=disabled))


def clustered_index(table: Item, name: str, catalog: Catalog) -> int:
    """Returns the id of an index of a relation, 0 for that of the key of stored rows. Raises 42704, 42809."""
    if isinstance(table, Table) and table.key is not None and name == constraints.primary_key_name(table):
        return 0
    index = _index_of(table, name, catalog)
    if index.method not in ("btree", "gist"):
        raise FeatureNotSupported(f'cannot cluster on index "{name}" because access method does not support clustering')
    if index.condition is not None:
        raise FeatureNotSupported(f'cannot cluster on partial index "{name}"')
    return index.id


def _index_of(table: Item, name: str, catalog: Catalog) -> Index:
    """Returns an index of a relation by its name. Raises 42704, 42809."""
    index = catalog.at(name, catalog.schema_of(table))
    if index is None:
        raise UndefinedObject(f'index "{name}" for table "{table.name}" does not exist')
    if not isinstance(index, Index):
        raise WrongObjectType(f'"{name}" is not an index')
    if index.depends[0] != table.id:
        raise WrongObjectType(f'"{name}" is not an index for table "{table.name}"')
    return index


def _replica_index(table: Table, name: str, catalog: Catalog) -> int:
    """Returns the id of a unique index, 0 for that of the key of stored rows. Raises 42704, 42809, 0A000."""
    key = next((key for key in constraints.keys_of(table, catalog) if key.name == name), None)
    if key is None:
        _index_of(table, name, catalog)
        raise WrongObjectType(f'cannot use non-unique index "{name}" as replica identity')
    if key.deferrable:
        raise FeatureNotSupported(f'cannot use non-immediate index "{name}" as replica identity')
    if any(column >= len(table.columns) for column in key.columns):
        raise FeatureNotSupported(f'cannot use expression index "{name}" as replica identity')
    if key.condition is not None:
        raise FeatureNotSupported(f'cannot use partial index "{name}" as replica identity')
    nullable = next((table.columns[i].name for i in key.columns if table.columns[i].nullable and i not in (table.key or ())), None)
    if nullable is not None:
        raise WrongObjectType(f'index "{name}" cannot be used as replica identity because column "{nullable}" is nullable')
    return key.index
