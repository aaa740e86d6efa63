"""ALTER … RENAME TO, ALTER … SET SCHEMA and COMMENT ON: the items as they are afterwards, and all whose texts name them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from engine.ddl.drop import Notice, found, notice
from engine.ddl.history import OPTION, milliseconds
from lake.catalog import COMPANIONS, GOING_ALONG, INDEX, Catalog, Change, Item
from lake.errors import (
    DuplicateTable,
    FeatureNotSupported,
    InvalidTableDefinition,
    ObjectNotInPrerequisiteState,
    UndefinedColumn,
    UndefinedTable,
    WrongObjectType,
)
from lake.reading import RETAIN_OPTION
from lake.schemas import SYSTEM, TEMPORARY, Schema
from sql.definitions import bind_definition, restated
from sql.statements import AlterItem, Comment

COMMENTS = "comments"  # option of an item: its comment under "", its columns' under their names


def alter(statement: AlterItem, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """What changes, and what to tell."""
    item = found(
        statement.kind, statement.name, catalog, if_exists=statement.if_exists, any_relation=statement.kind == "table", word="relation"
    )
    if item is None:
        return Change(), [notice(f'relation "{statement.name.name}" does not exist, skipping')]
    if item.kind in COMPANIONS:
        owner = catalog[item.depends[0]]
        raise InvalidTableDefinition(f'"{item.name}" belongs to {owner.kind} "{owner.name}"', hint=f"Alter {owner.name}: it follows.")
    if statement.options:
        return _set(item, statement, catalog), []
    if statement.schema:
        schema = _target(statement.schema, catalog)
        if schema.id == item.schema:
            return Change(), []
        if catalog.at(item.name, schema) is not None:
            raise DuplicateTable(f'relation "{item.name}" already exists in schema "{schema.name}"')
        return moved(item, item.name, schema, catalog), []
    return moved(item, statement.rename, catalog.schema_of(item), catalog), []


def _set(item: Item, statement: AlterItem, catalog: Catalog) -> Change:
    """SET and RESET of the history."""
    if not item.stored:
        raise WrongObjectType(f'"{item.name}" is not stored, so it has no history')
    if item.id in catalog.replacements():
        raise ObjectNotInPrerequisiteState(f'{item.kind} "{item.name}" is still being replaced', hint="Try again when it is ready.")
    options = {name: value for name, value in item.options.items() if name != RETAIN_OPTION}
    for name, value in statement.options:
        if name != OPTION:
            raise FeatureNotSupported(f'option "{name}" of a {item.kind} is not supported')
        if value is not None:
            options[RETAIN_OPTION] = milliseconds(value)
    return Change(put=(replace(item, options=options),))


def _target(name: str, catalog: Catalog) -> Schema:
    """The schema that an item is moved to."""
    if name.startswith(TEMPORARY):
        raise FeatureNotSupported("cannot move objects into or out of temporary schemas")
    schema = catalog.schema(name)
    if schema.id in SYSTEM:
        raise FeatureNotSupported(f"moving an item into the schema {name} is not supported")
    return schema


def moved(item: Item, name: str, schema: Schema, catalog: Catalog) -> Change:
    """The item under another name or in another schema, its companions likewise, and what names it."""
    if (name, schema.id) == (item.name, item.schema):
        return Change()
    put = [replace(item, name=name, schema=schema.id)]
    catalog.check_new(name, schema)
    for other in catalog.dependents(item.id):
        if other.kind in COMPANIONS:
            companion = name + other.name.removeprefix(item.name)
            catalog.check_new(companion, schema)
            put.append(replace(other, name=companion, schema=schema.id))
        elif other.kind == INDEX and schema.id != item.schema:
            catalog.check_new(other.name, schema)
            put.append(replace(other, schema=schema.id))
    return followed(Change(put=tuple(put)), (item,), catalog)


def followed(change: Change, moving: Iterable[Item], catalog: Catalog) -> Change:
    """A change that gives items other names, with the texts of these and of all that names them as they are then."""
    before, after = catalog.stored, catalog.stored.apply(change)
    affected = {i.id: i for item in moving for i in (item, *catalog.dependents(item.id))}
    coming = catalog.replacements()
    put: dict[int, Item] = {i.id: i for i in change.put}
    for id, item in affected.items():
        if id in coming or item.replaces or not item.ready:
            raise ObjectNotInPrerequisiteState(f'{item.kind} "{item.name}" is still being filled', hint="Try again when it is ready.")
        if item.kind not in GOING_ALONG:
            put[id] = restated(after[id], before, after)
    done = after.apply(Change(put=tuple(put.values())))
    for id, item in affected.items():
        if item.query and item.kind != "function":
            _check(done[id], done)
        elif item.kind in COMPANIONS:
            put[id] = replace(done[id], sql=done[item.depends[0]].sql)
    return replace(change, put=tuple(put.values()))


def _check(item: Item, catalog: Catalog) -> None:
    """The text still says what it said: there are places where no alias can keep the old name."""
    try:
        bind_definition(item, catalog)
    except UndefinedTable as error:
        raise FeatureNotSupported(
            f'a new name for what {item.kind} "{item.name}" reads is not supported', detail=error.message, hint="Drop that first."
        ) from error


def comment(statement: Comment, catalog: Catalog) -> Change:
    """The item, or the schema, with the comment."""
    if statement.kind == "schema":
        return Change(put_schemas=(replace(catalog.schema(statement.name.name), comment=statement.text or ""),))
    if statement.kind is None:
        item = catalog.named(statement.name)
        if statement.column not in [c.name for c in item.columns]:
            raise UndefinedColumn(f'column "{statement.column}" of relation "{item.name}" does not exist')
    else:
        there = found(statement.kind, statement.name, catalog, word="relation")
        assert there is not None
        item = there
    comments = dict(item.options.get(COMMENTS, {}))
    comments.pop(statement.column, None)
    if statement.text:
        comments[statement.column] = statement.text
    return Change(put=(replace(item, options={**item.options, COMMENTS: comments}),))
