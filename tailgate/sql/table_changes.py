"""ALTER TABLE: the table after the statement, for the gateway, which computes the rows, and for the engine.

Source: PostgreSQL 15, src/backend/commands/tablecmds.c (ATExecAddColumn, ATExecColumnDefault).
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.catalog import Catalog, MaterializedView, Table, View
from tailgate.lake.catalog.names import Name, quoted
from tailgate.lake.errors import DuplicateColumn, SyntaxError_, TailgateError, UndefinedColumn, WrongObjectType
from tailgate.lake.types import Field, Type
from tailgate.sql.binder.sequence_calls import with_ids
from tailgate.sql.binder.writes.targets import default_of
from tailgate.sql.statements import AddColumn, AlterTable, CreateTable, SetDefault, parse


def table_to_alter(statement: AlterTable, catalog: Catalog) -> Table | None:
    """Returns the table, or None if it does not exist and need not. Raises 3F000, 42P01, 42809."""
    name = statement.name
    if statement.if_exists and catalog.find(name) is None:
        return None
    catalog.check_schema(Name(name.name, name.schema))
    item = catalog.relation(Name(name.name, name.schema))  # PostgreSQL reports no position
    if isinstance(item, View | MaterializedView):
        action = "ADD COLUMN" if isinstance(statement.actions[0], AddColumn) else "ALTER COLUMN ... SET DEFAULT"
        raise WrongObjectType(
            f'ALTER action {action} cannot be performed on relation "{item.name}"',
            detail=f"This operation is not supported for {item.kind}s.",
        )
    if not isinstance(item, Table):
        raise WrongObjectType(f'"{item.name}" is not a table')
    return item


def altered_table(table: Table, statement: AlterTable, catalog: Catalog) -> tuple[Table, tuple[str, ...]]:
    """Returns the table after the statement, and the messages of notices.

    `catalog`: has the sequences of defaults. Raises 42701, 42703 and the errors of defaults.
    """
    after, notices = table, list[str]()
    for action in statement.actions:
        match action:
            case AddColumn(column=column):
                if column.name in [c.name for c in after.columns]:
                    message = f'column "{column.name}" of relation "{table.name}" already exists'
                    if not action.if_not_exists:
                        raise DuplicateColumn(message)
                    notices.append(f"{message}, skipping")
                    continue
                field = Field(column.name, column.type, column.nullable)
                defaults = dict(after.defaults) | _default(field, column.default, catalog)
                after = replace(after, columns=(*after.columns, field), defaults=defaults)
            case SetDefault(column=name, default=text):
                target = next((c for c in after.columns if c.name == name), None)
                if target is None:
                    raise UndefinedColumn(f'column "{name}" of relation "{table.name}" does not exist')
                if name in table.identity:
                    raise SyntaxError_(f'column "{name}" of relation "{table.name}" is an identity column', hint=_identity_hint(text))
                defaults = {n: d for n, d in after.defaults.items() if n != name} | _default(target, text, catalog)
                after = replace(after, defaults=defaults)
    return replace(after, sql=definition(after)) if after != table else table, tuple(notices)


def _identity_hint(default: str | None) -> str | None:
    return "Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead." if default is None else None


def _default(column: Field, text: str | None, catalog: Catalog) -> dict[str, str]:
    """Returns the default of a column by its name. Raises its errors, without a position, as PostgreSQL."""
    try:
        text = None if text is None else with_ids(text, catalog)
        default_of(column, text)
    except TailgateError as error:
        error.position = None
        raise
    return {} if text is None else {column.name: text}


def definition(table: Table) -> str:
    """Returns the CREATE TABLE statement of a table. Its name and options are those of `table.sql`."""
    creation = parse(table.sql)
    assert isinstance(creation, CreateTable)
    key = table.key or ()
    parts = []
    for i, column in enumerate(table.columns):
        identity = table.identity.get(column.name)
        default = None if identity else table.defaults.get(column.name)
        constraints = " NOT NULL" * (not column.nullable and i not in key) + (f" DEFAULT {default}" if default is not None else "")
        generated = f" GENERATED {identity.upper()} AS IDENTITY" if identity else ""
        parts.append(f"{quoted(column.name)} {type_name(column.type)}{constraints}{generated}")
    if table.key is not None:
        constraint = f"CONSTRAINT {quoted(table.constraint)} " if table.constraint else ""
        parts.append(f"{constraint}PRIMARY KEY ({', '.join(quoted(table.columns[k].name) for k in table.key)})")
    parts += [f"CONSTRAINT {quoted(check.name)} CHECK ({check.text})" for check in table.checks]
    begin, end = creation.options_at
    return f"CREATE TABLE {creation.name.sql} ({', '.join(parts)}){table.sql[begin:end]}"


def type_name(type: Type) -> str:
    """Returns the name of a type in CREATE TABLE, where `character` alone would mean one character."""
    return str(type).replace("character", "bpchar", 1) if type.name == "bpchar" and not type.modifiers else str(type)
