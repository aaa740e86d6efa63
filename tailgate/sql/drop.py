"""DROP: finds the items and schemas to remove."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tailgate.lake.catalog import (
    Catalog,
    Change,
    Companion,
    Index,
    Item,
    MaterializedView,
    Sequence,
    Sink,
    Table,
    UserType,
    View,
    ksqldb_of,
)
from tailgate.lake.catalog.dropping import (
    Dropped,
    described,
    described_column,
    dropping,
    sequences_of,
    without_defaults,
    without_references,
)
from tailgate.lake.catalog.item_fields import namespace_of
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.schemas import BUILT_IN, SYSTEM, Schema
from tailgate.lake.constraints import references_to
from tailgate.lake.errors import DependentObjectsStillExist, FeatureNotSupported, UndefinedObject, UndefinedTable, WrongObjectType
from tailgate.sql.new_items import with_article
from tailgate.sql.statements import AlterTable, Drop, DropColumn, DropSchema
from tailgate.sql.tables.alterations import alteration
from tailgate.sql.tables.columns import readers_of

Notice = dict[str, str | None]


def drop(statement: Drop, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change that removes the named items, and notices.

    Companions are removed with their owner, and dependent objects with CASCADE. Raises 2BP01 if
    there are dependent objects without CASCADE.
    """
    notices: list[Notice] = []
    objects: dict[int, Item | Schema] = {}
    for name in statement.names:
        if statement.if_exists and name.schema is not None and catalog.find_schema(name.schema) is None:
            notices.append(notice(f'schema "{name.schema}" does not exist, skipping'))
        elif (item := _item_to_drop(statement, name, catalog)) is None:
            kind = "type" if statement.kind == "domain" else statement.kind
            notices.append(notice(f'{kind} "{name.name}" does not exist, skipping'))
        else:
            objects[item.id] = item
    return removal(objects, catalog, notices, cascade=statement.cascade)


def drop_schemas(statement: DropSchema, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change that removes schemas, and notices. Raises 2BP01 for a system schema."""
    notices: list[Notice] = []
    objects: dict[int, Item | Schema] = {}
    for name in statement.names:
        if statement.if_exists and catalog.find_schema(name.name) is None:
            notices.append(notice(f'schema "{name.name}" does not exist, skipping'))
            continue
        schema = catalog.schema(name.name)
        if schema.id in SYSTEM:
            raise DependentObjectsStillExist(f"cannot drop schema {schema.name} because it is required by the database system")
        objects[schema.id] = schema
    return removal(objects, catalog, notices, cascade=statement.cascade)


def removal(objects: Mapping[int, Item | Schema], catalog: Catalog, notices: list[Notice], *, cascade: bool) -> tuple[Change, list[Notice]]:
    """Returns the change that removes objects and those that depend on them, and notices.

    `notices` has the notices so far. Raises 2BP01 if other objects depend on these, unless `cascade`
    is true.
    """
    removed = dropping(catalog, tuple(objects.values()), cascade=cascade, readers=lambda table, place: _views_of(table, place, catalog))
    change, cascades = _without_columns(removed, catalog)
    cascades += [f"drop cascades to {described(catalog, i)}" for i in removed.followers]
    cascades += [
        f"drop cascades to default value for column {column} of {described(catalog, table)}"
        for table in removed.defaulted
        for column, sequence in sequences_of(table)
        if sequence in removed.ids
    ]
    cascades += [
        f"drop cascades to constraint {key.name} on {described(catalog, table)}"
        for table in removed.referring
        for key in table.foreign_keys
        if key.table in removed.ids
    ]
    if len(cascades) == 1:
        notices.append(notice(cascades[0]))
    elif cascades:
        notices.append({**notice(f"drop cascades to {len(cascades)} other objects"), "detail": "\n".join(cascades)})
    schemas = tuple(o.id for o in objects.values() if isinstance(o, Schema) and o.id not in BUILT_IN)
    built_in = tuple(replace(o, dropped=True) for o in objects.values() if isinstance(o, Schema) and o.id in BUILT_IN)
    put: dict[int, Item] = {item.id: item for item in change.put}
    for table in (*removed.defaulted, *removed.referring):
        changed = put.get(table.id, table)
        assert isinstance(changed, Table)
        put[table.id] = without_references(without_defaults(changed, removed.ids), removed.ids)
    drop = dict.fromkeys((*(item.id for item in removed.items), *change.drop))
    return Change(put=tuple(put.values()), drop=tuple(drop), put_schemas=built_in, drop_schemas=schemas), notices


def _views_of(table: Table, place: int, catalog: Catalog) -> list[Item]:
    """Returns the views that read a column. Other items may read it or not, and prevent that it is dropped with its type."""
    return [item for item in readers_of(table, place, catalog) if isinstance(item, View | MaterializedView)]


def _without_columns(removed: Dropped, catalog: Catalog) -> tuple[Change, list[str]]:
    """Returns the change that drops the columns whose types are dropped, and notices.

    Raises 0A000 for a column of the primary key that a table was created with.
    """
    if not removed.columns:
        return Change(), []
    cascades: list[str] = []
    types = [item.id for item in removed.items if isinstance(item, UserType)]
    before = after = catalog.apply(Change(drop=tuple(item.id for item in removed.items if item.id not in types)))
    for table, place in removed.columns:
        current = after.expect(Table, table.id)
        if current.columns[place].is_dropped:  # a generated column, dropped with one that it reads
            continue
        altered = alteration(current, AlterTable(Name(table.name), (DropColumn(table.columns[place].name, cascade=True),)), after)
        if altered.rewrites:
            raise FeatureNotSupported(
                f"dropping the primary key of {described(catalog, table)} with its type is not supported", hint="Drop the column first."
            )
        after = after.apply(altered.change)
        cascades += [f"drop cascades to {described_column(catalog, table, place)}", *(message for message, _ in altered.notices)]
    put = tuple(item for id, item in after.items.items() if before.items.get(id) is not item)
    return Change(put=put, drop=tuple(id for id in before.items if id not in after.items)), cascades


def _item_to_drop(statement: Drop, name: Name, catalog: Catalog) -> Item | None:
    """Returns the item that a DROP names. Raises 2BP01 for a companion."""
    item = find_of_kind(statement.kind, name, catalog, if_exists=statement.if_exists)
    if item is not None and (isinstance(item, Companion) or (isinstance(item, Sink) and item.of_view)):
        owner = catalog[item.depends[0]]
        raise DependentObjectsStillExist(
            f"cannot drop {item.name} because {described(catalog, owner)} requires it",
            hint=f"You can drop {described(catalog, owner)} instead.",
            position=name.position,
        )
    if isinstance(item, Index) and item.enforced:
        _check_index(item, catalog)
    return item


def _check_index(index: Index, catalog: Catalog) -> None:
    """Raises 2BP01 for the index of a constraint, and for one that a foreign key needs."""
    table = catalog.expect(Table, index.depends[0])
    if index.constraint:
        constraint = f"constraint {index.name} on {described(catalog, table)}"
        raise DependentObjectsStillExist(
            f"cannot drop index {catalog.name_of(index).sql} because {constraint} requires it", hint=f"You can drop {constraint} instead."
        )
    references = [r for r in references_to(table, catalog) if r.key.index == index.id]
    if references:
        what = f"index {catalog.name_of(index).sql}"
        raise DependentObjectsStillExist(
            f"cannot drop {what} because other objects depend on it",
            detail="\n".join(f"constraint {r.name} on {described(catalog, r.table)} depends on {what}" for r in references),
            hint="Drop these foreign keys first: ALTER TABLE … DROP CONSTRAINT.",
        )


def find_of_kind(
    kind: str, name: Name, catalog: Catalog, *, if_exists: bool = False, any_relation: bool = False, word: str = ""
) -> Item | None:
    """Returns the item of this name and kind.

    Returns None if it does not exist and `if_exists` is true. Companions match every kind, and with
    `any_relation` every relation and sequence matches. Raises 42P01 or 42704 if the item does not exist, 42809
    if it has another kind. `word`: the kind of a missing item in the error, which then has the full
    name; without it the error has the statement's kind and the unqualified name.
    """
    item = catalog.find(name, namespace_of(kind))
    if item is None:
        if if_exists:
            return None
        catalog.check_schema(name)
        other = kind in ("sink", "subscription", "secret", "connection", "endpoint", "objective", "alert", "type", "domain")
        missing = UndefinedObject if other or (kind == "index" and not word) else UndefinedTable
        shown = "type" if kind == "domain" else kind
        raise missing(f'{word} "{name}" does not exist' if word and not other else f'{shown} "{name.name}" does not exist')
    ksqldb = ksqldb_of(item)
    if ksqldb is not None and ksqldb.type == kind:
        return item
    if (
        item.kind != kind
        and not isinstance(item, Companion)
        and not (kind == "type" and isinstance(item, UserType))
        and not (any_relation and (item.is_relation or isinstance(item, Sequence)))
    ):
        hint = None if word or kind == "domain" else f"Use DROP {item.kind.upper()} to remove {with_article(item.kind)}."
        raise WrongObjectType(f'"{name.name}" is not {with_article(kind)}', hint=hint)
    return item


def notice(message: str) -> Notice:
    """Returns a notice."""
    return {"severity": "NOTICE", "sqlstate": "00000", "message": message, "hint": None}
