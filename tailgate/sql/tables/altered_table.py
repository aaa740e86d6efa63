"""The table that ALTER TABLE names."""

from __future__ import annotations

from tailgate.lake.catalog import Catalog, MaterializedView, Table, View
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported, UndefinedObject, WrongObjectType
from tailgate.sql.binder.writes.targets import check_writable
from tailgate.sql.statements import (
    AddColumn,
    AddConstraint,
    AddIdentity,
    AlterTable,
    DropColumn,
    DropConstraint,
    DropExpression,
    DropIdentity,
    RenameColumn,
    SetDefault,
    SetIdentity,
    SetNullable,
    SetType,
    ValidateConstraint,
)
from tailgate.sql.statements.tables import (
    SetClustered,
    SetColumnStorage,
    SetParameters,
    SetReplicaIdentity,
    TableAction,
    Toggle,
    WithoutEffect,
)

# the words of an action in the error for a relation that is not a table
WORDS: dict[type, str] = {
    AddColumn: "ADD COLUMN", DropColumn: "DROP COLUMN", SetType: "ALTER COLUMN ... SET TYPE", SetDefault: "ALTER COLUMN ... SET DEFAULT",
    SetNullable: "ALTER COLUMN ... SET NOT NULL", AddIdentity: "ALTER COLUMN ... ADD IDENTITY",
    SetIdentity: "ALTER COLUMN ... SET", DropIdentity: "ALTER COLUMN ... DROP IDENTITY",
    DropExpression: "ALTER COLUMN ... DROP EXPRESSION", AddConstraint: "ADD CONSTRAINT",
    SetReplicaIdentity: "REPLICA IDENTITY",
    DropConstraint: "DROP CONSTRAINT", ValidateConstraint: "VALIDATE CONSTRAINT",
}  # fmt: skip


def table_to_alter(statement: AlterTable, catalog: Catalog) -> Table | None:
    """Returns the table, or None if it does not exist and need not. Raises 3F000, 42P01, 42809, 0A000."""
    name = statement.name
    if statement.if_exists and catalog.find(name) is None:
        return None
    catalog.check_schema(Name(name.name, name.schema))
    item = catalog.relation(Name(name.name, name.schema))  # PostgreSQL reports no position
    action = statement.actions[0]
    if isinstance(action, RenameColumn) and not isinstance(item, Table):
        raise FeatureNotSupported(f"RENAME COLUMN of a {item.kind} is not supported")
    if isinstance(item, View | MaterializedView):
        words = _words(action)
        if words is None:
            raise UndefinedObject(f'constraint "{getattr(action, "constraint", "")}" for table "{item.name}" does not exist')
        raise WrongObjectType(
            f'ALTER action {words} cannot be performed on relation "{item.name}"',
            detail=f"This operation is not supported for {item.kind}s.",
        )
    if not isinstance(item, Table):
        raise WrongObjectType(f'"{item.name}" is not a table')
    check_writable(item)
    return item


def _words(action: TableAction) -> str | None:
    """Returns the words of an action in an error, or None for those that are about a constraint."""
    match action:
        case SetNullable(nullable=True):
            return "ALTER COLUMN ... DROP NOT NULL"
        case SetColumnStorage(statistics=int()):
            return "ALTER COLUMN ... SET STATISTICS"
        case SetColumnStorage(storage=str()):
            return "ALTER COLUMN ... SET STORAGE"
        case SetColumnStorage():
            return "ALTER COLUMN ... SET COMPRESSION"
        case SetParameters(column=column):
            return "ALTER COLUMN ... SET" if column else "SET"
        case WithoutEffect(words) | Toggle(words):
            return words
        case SetClustered(index):
            return "CLUSTER ON" if index else "SET WITHOUT CLUSTER"
    return WORDS.get(type(action))
