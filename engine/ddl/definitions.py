"""Whether a definition may read what it reads: asked when it is created or changed, under the lock of the catalog.

    CREATE …             its owner needs SELECT on what it names, as for a query of the owner's
    CREATE OR REPLACE …  so does the owner of every view, materialized view and function above it, of what it now reads through it

When it is read later, a plain view and a function are authorized again, by what their owners may then. A materialized view, a sink and
a subscription go on with the privileges that their owners had: to end that, drop them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.plan.replacing import readers
from lake.catalog import Catalog, Change, Item
from lake.errors import InsufficientPrivilege
from lake.roles import Role
from sql.authorization import NOBODY, SELECT, Demand, authorize, renamed
from sql.binding.routines import check_body, tree_of
from sql.definitions import bind_definition


@dataclass(frozen=True, slots=True)
class Definition:
    demands: tuple[Demand, ...]


def check_definitions(items: tuple[Item, ...], catalog: Catalog) -> None:
    """Raises 42501. `items`: what a statement puts into the catalog, the one that it names first."""
    put = tuple(replace(i, id=i.replaces, replaces=0) if i.replaces else i for i in items)
    after = catalog.stored.apply(Change(put=put))
    own = put[0]
    authorize(Definition(_demands(own, after)), _owner(own, after), after)
    if own.id not in catalog.items:
        return
    for item in readers([own.id], catalog):
        item = after[item.id]
        try:
            authorize(Definition(renamed(_demands(item, after), item.id)), _owner(item, after), after)
        except InsufficientPrivilege as error:
            error.detail = f"{item.kind} {catalog.stored.name_of(item)} is made of it, and its owner may not read that."
            raise


def _demands(item: Item, catalog: Catalog) -> tuple[Demand, ...]:
    """What the definition of an item reads, in the name of the session's role."""
    match item.kind:
        case "view" | "materialized view":
            return bind_definition(item, catalog).demands
        case "function":
            return check_body(item, tree_of(item.query), catalog).demanded()
        case "sink" | "subscription":
            return (Demand(SELECT, item.depends[0]),)
        case _:
            return ()


def _owner(item: Item, catalog: Catalog) -> Role:
    return catalog.all_roles().get(item.owner, NOBODY)
