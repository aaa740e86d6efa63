"""Checks that owners may read the inputs of their definitions and use their types, on creation and on replacement.

    CREATE …             the owner needs SELECT on all inputs, as for a query
    CREATE OR REPLACE …  so do the owners of all views and functions that read the item

The check runs under the lock of the catalog. Plain views and functions are checked again when they
are read, with the current privileges of their owners. A materialized view, a sink and a
subscription keep the access that their owners had; to end it, drop them.
"""

from __future__ import annotations

from dataclasses import replace

from typing_extensions import assert_never

from tailgate.engine.plan.views.replacements import readers
from tailgate.lake.catalog import (
    Alert,
    Catalog,
    Change,
    Composite,
    Connection,
    CustomType,
    DeadLetters,
    Domain,
    Endpoint,
    Enum,
    Function,
    Index,
    Item,
    MaterializedView,
    Objective,
    Secret,
    Sequence,
    Sink,
    Source,
    Subscription,
    Table,
    View,
    ViewErrors,
)
from tailgate.lake.catalog.custom_types import types_of_column
from tailgate.lake.catalog.roles import Role
from tailgate.lake.errors import InsufficientPrivilege
from tailgate.sql.authorization import EXECUTE, NOBODY, SELECT, Demand, Required, authorize, renamed
from tailgate.sql.binder.expressions.sql_functions import tree_of
from tailgate.sql.binder.queries.function_bodies import check_body
from tailgate.sql.definitions import bind_definition


def check_definitions(items: tuple[Item, ...], catalog: Catalog) -> None:
    """Raises 42501 if an owner may not read an input.

    `items`: the items that a statement puts into the catalog, the one that it names first.
    """
    put = tuple(replace(i, id=i.replaces, replaces=0) if i.replaces else i for i in items)
    after = catalog.stored.apply(Change(put=put))
    own = put[0]
    authorize(Required(_demands(own, after)), _owner(own, after), after)
    if own.id not in catalog.items:
        return
    for item in readers([own.id], catalog):
        item = after[item.id]
        try:
            authorize(Required(renamed(_demands(item, after), item.id)), _owner(item, after), after)
        except InsufficientPrivilege as error:
            error.detail = f"{item.kind} {catalog.stored.name_of(item)} is made of it, and its owner may not read that."
            raise


def check_types(items: tuple[Item, ...], role: Role, catalog: Catalog) -> None:
    """Raises 42501 if a role may not use the type of a new column, argument or attribute of these items."""
    for item in (item for item in items if item.is_relation or isinstance(item, Function | Domain | Composite)):
        old = catalog.items.get(item.replaces or item.id)
        old_types = () if old is None else _types(old)
        for id in (id for id in _types(item) if id not in old_types and id in catalog.items):
            if not catalog.may(role, "USAGE", id):
                raise InsufficientPrivilege(f"permission denied for type {catalog.name_of(catalog[id]).sql}")


def _types(item: Item) -> list[int]:
    return [id for column in item.columns if not column.is_dropped for id in types_of_column(column)[:1]]


def _demands(item: Item, catalog: Catalog) -> tuple[Demand, ...]:
    """Returns the privileges that the definition of an item requires."""
    match item:
        case View() | MaterializedView() | Endpoint():
            return bind_definition(item, catalog).demands
        case Function():
            return check_body(item, tree_of(item.query), catalog).demanded()
        case Sink() | Subscription() | Objective():
            measured = catalog[item.depends[0]]
            return (Demand(EXECUTE if isinstance(measured, Endpoint) else SELECT, measured.id),)
        case Alert():
            return bind_definition(item, catalog).demands if item.query else ()
        case (
            Source()
            | DeadLetters()
            | Table()
            | ViewErrors()
            | Index()
            | Sequence()
            | Secret()
            | Connection()
            | CustomType()
            | Enum()
            | Composite()
            | Domain()
        ):
            return ()
        case _:
            assert_never(item)


def _owner(item: Item, catalog: Catalog) -> Role:
    return catalog.all_roles().get(item.owner, NOBODY)
