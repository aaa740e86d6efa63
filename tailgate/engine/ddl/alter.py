"""ALTER … RENAME TO, SET SCHEMA, OWNER TO, SET and RESET, and ALTER SEQUENCE: the changed items and their dependents.

Items whose text contains a changed name or option get a new text.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tailgate.engine.ddl.enums import with_tables
from tailgate.engine.ddl.history import OPTION, milliseconds
from tailgate.lake.catalog import Catalog, Change, Companion, Composite, DroppedWithOwner, Function, HistoryItem, Index, Item, Sequence
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.schemas import SYSTEM, TEMPORARY, Schema
from tailgate.lake.constraints import table_of_key
from tailgate.lake.errors import (
    DuplicateTable,
    FeatureNotSupported,
    InvalidTableDefinition,
    ObjectNotInPrerequisiteState,
    UndefinedTable,
    WrongObjectType,
)
from tailgate.sql import sequence_definitions
from tailgate.sql.definitions import bind_definition, rename_references
from tailgate.sql.drop import Notice, find_of_kind, notice
from tailgate.sql.set_option import set_option
from tailgate.sql.statements import AlterItem, AlterSequence, AlterTable, CreateSource, CreateTable, CreateView, parse
from tailgate.sql.statements.tables import RenameConstraint
from tailgate.sql.tables.alterations import alteration
from tailgate.sql.tables.definition import with_name
from tailgate.sql.tables.owners import given
from tailgate.sql.tables.storage.changes import with_parameters


def alter(statement: AlterItem, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change of the catalog, and notices."""
    if statement.kind == "index" and statement.rename and catalog.find(statement.name) is None:
        table = table_of_key(statement.name, catalog)
        if table is not None:
            rename = AlterTable(Name(table.name), (RenameConstraint(statement.name.name, statement.rename),))
            return alteration(table, rename, catalog).change, []
    item = find_of_kind(
        statement.kind, statement.name, catalog, if_exists=statement.if_exists, any_relation=statement.kind == "table", word="relation"
    )
    if item is None:
        return Change(), [notice(f'relation "{statement.name.name}" does not exist, skipping')]
    if isinstance(item, Companion):
        owner = catalog[item.depends[0]]
        raise InvalidTableDefinition(f'"{item.name}" belongs to {owner.kind} "{owner.name}"', hint=f"Alter {owner.name}: it follows.")
    if statement.options:
        return _set(item, statement, catalog), []
    if statement.owner:
        return _given(item, catalog.role(statement.owner).id, catalog), []
    if statement.schema:
        schema = _target_schema(statement.schema, catalog)
        if schema.id == item.schema:
            return Change(), []
        if catalog.at(item.name, schema, item.namespace) is not None:
            word = "relation" if item.namespace == "relation" else item.kind
            raise DuplicateTable(f'{word} "{item.name}" already exists in schema "{schema.name}"')
        return move(item, item.name, schema, catalog), []
    return move(item, statement.rename, catalog.schema_of(item), catalog), []


def alter_sequence(statement: AlterSequence, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change of the options of a sequence, and notices."""
    item = find_of_kind("sequence", statement.name, catalog, if_exists=statement.if_exists, word="relation")
    if item is None:
        return Change(), [notice(f'relation "{statement.name.name}" does not exist, skipping')]
    assert isinstance(item, Sequence)
    return Change(put=(sequence_definitions.alter_sequence(statement, item, catalog),)), []


def _given(item: Item, owner: int, catalog: Catalog) -> Change:
    """Returns the change of the owner of a relation or sequence. Raises 0A000 for a sequence that a column owns."""
    if isinstance(item, Sequence) and item.depends:
        table = catalog[item.depends[0]]
        raise FeatureNotSupported(
            f'cannot change owner of sequence "{item.name}"', detail=f'Sequence "{item.name}" is linked to table "{table.name}".'
        )
    if item.id in catalog.replacements():
        raise ObjectNotInPrerequisiteState(f'{item.kind} "{item.name}" is still being replaced', hint="Try again when it is ready.")
    return given(item, owner, catalog)


def _set(item: Item, statement: AlterItem, catalog: Catalog) -> Change:
    """Returns the change of ALTER … SET or RESET: of the retained history, or of the storage parameters of an index."""
    if isinstance(item, Index):
        return Change(put=(with_parameters(item, statement.options),))
    if not item.stored or not isinstance(item, HistoryItem):
        raise WrongObjectType(f'"{item.name}" is not stored, so it has no history')
    if item.id in catalog.replacements():
        raise ObjectNotInPrerequisiteState(f'{item.kind} "{item.name}" is still being replaced', hint="Try again when it is ready.")
    history, sql = 0, item.sql
    for name, value in statement.options:
        if name != OPTION:
            raise FeatureNotSupported(f'option "{name}" of a {item.kind} is not supported')
        history = 0 if value is None else milliseconds(value)
        creation = parse(sql)
        assert isinstance(creation, CreateSource | CreateTable | CreateView)
        sql = set_option(sql, creation.options_at, OPTION, None if value is None else str(value))
    return Change(put=(replace(item, retain_history_ms=history, sql=sql),))


def _target_schema(name: str, catalog: Catalog) -> Schema:
    """Returns the schema that an item is moved to. Raises 0A000 for temporary and system schemas."""
    if name.startswith(TEMPORARY):
        raise FeatureNotSupported("cannot move objects into or out of temporary schemas")
    schema = catalog.schema(name)
    if schema.id in SYSTEM:
        raise FeatureNotSupported(f"moving an item into the schema {name} is not supported")
    return schema


def move(item: Item, name: str, schema: Schema, catalog: Catalog) -> Change:
    """Returns the change that gives an item another name or schema.

    It includes the item's companions and all items whose text contains the name. Raises 42P07, also for the item's own name.
    """
    put = [replace(with_name(item, name), schema=schema.id)]
    catalog.check_new(name, schema, item.namespace)
    if isinstance(item, Composite):
        catalog.check_new(name, schema)  # no relation may have the name, either
    for other in catalog.dependents(item.id):
        if isinstance(other, Companion):
            companion = name + other.name.removeprefix(item.name)
            catalog.check_new(companion, schema)
            put.append(replace(other, name=companion, schema=schema.id))
        elif isinstance(other, Index | Sequence) and schema.id != item.schema:
            catalog.check_new(other.name, schema)
            put.append(replace(other, schema=schema.id))
    return with_renamed_texts(Change(put=tuple(put)), (item,), catalog)


def with_renamed_texts(change: Change, items: Collection[Item], catalog: Catalog) -> Change:
    """Extends a change of names with the new texts of the items, of their dependents and of tables with columns of the types.

    Raises 55000 if an item is being backfilled or replaced, and 0A000.
    """
    before, after = catalog.stored, catalog.stored.apply(change)
    affected = {i.id: i for item in items for i in (item, *catalog.dependents(item.id))}
    replacements = catalog.replacements()
    put: dict[int, Item] = {i.id: i for i in change.put}
    for id, item in affected.items():
        if id in replacements or item.replaces or not item.ready:
            raise ObjectNotInPrerequisiteState(f'{item.kind} "{item.name}" is still being filled', hint="Try again when it is ready.")
        if not isinstance(item, DroppedWithOwner):
            put[id] = rename_references(after[id], before, after)
    renamed = after.apply(Change(put=tuple(put.values())))
    for id, item in affected.items():
        if item.query and not isinstance(item, Function):
            _check(renamed[id], renamed)
        elif isinstance(item, Companion):
            put[id] = replace(renamed[id], sql=renamed[item.depends[0]].sql)
    return with_tables(replace(change, put=tuple(put.values())), items, catalog)


def _check(item: Item, catalog: Catalog) -> None:
    """Raises 0A000 if the rewritten text of a definition does not bind any more.

    In some places no alias can preserve the old name.
    """
    try:
        bind_definition(item, catalog)
    except UndefinedTable as error:
        raise FeatureNotSupported(
            f'a new name for what {item.kind} "{item.name}" reads is not supported', detail=error.message, hint="Drop that first."
        ) from error
