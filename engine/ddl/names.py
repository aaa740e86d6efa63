"""Names of new items, and the texts that are kept of them."""

from __future__ import annotations

from collections.abc import Iterable

from lake.catalog import Catalog, Change, Item
from lake.errors import DuplicateColumn, ObjectNotInPrerequisiteState, UndefinedObject, WrongObjectType
from lake.names import Name
from lake.schemas import Schema
from lake.types import Field
from sql.definitions import Creation, restated


def free(name: Name, catalog: Catalog) -> Schema:
    """The schema that a new item of this name goes to. Raises 3F000, 42501, 42P07."""
    schema = catalog.home(name)
    catalog.check_new(name.name, schema)
    return schema


def of_kind(kind: str, name: Name, catalog: Catalog) -> Item:
    """The item of a name that is of this kind. Raises 3F000, 42704, 42809."""
    item = catalog.find(name)
    if item is None:
        catalog.check_schema(name)
        raise UndefinedObject(f'{kind} "{name}" does not exist', position=name.position)
    if item.kind != kind:
        raise WrongObjectType(f'"{item.name}" is not a {kind}', position=name.position)
    return item


def stored(name: Name, catalog: Catalog, *, so: str, hint: str) -> Item:
    """The relation of a name, whose changes are kept. `so`: what follows if they are not. Raises 42P01, 55000."""
    relation = catalog.relation(name)
    if not relation.stored:
        raise ObjectNotInPrerequisiteState(f'{relation.kind} "{relation.name}" is not stored, so {so}', hint=hint, position=name.position)
    return relation


def kept(item: Item, statement: Creation, catalog: Catalog) -> Item:
    """The item with its text as it is kept: its names do not depend on the path that the statement was said along."""
    return restated(item, catalog, catalog.stored.apply(Change(put=(item,))), statement)


def check_columns(columns: Iterable[Field]) -> None:
    """42701 if two columns have one name."""
    seen: set[str] = set()
    for column in columns:
        if column.name in seen:
            raise DuplicateColumn(f'column "{column.name}" specified more than once')
        seen.add(column.name)
