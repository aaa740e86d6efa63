"""DROP: the items to drop, and the dependents that prevent it, reported in PostgreSQL's order.

    roots ──► their dependents, newest first, depth first ──► error 2BP01 (RESTRICT) | all items to drop (CASCADE)

Source: PostgreSQL 15, src/backend/catalog/dependency.c (findDependentObjects, reportDependentObjects).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tailgate.lake.catalog.catalog import Catalog
from tailgate.lake.catalog.items import DroppedWithOwner, Item, Sink
from tailgate.lake.catalog.schemas import Schema
from tailgate.lake.errors import DependentObjectsStillExist


@dataclass(frozen=True, slots=True)
class Dropped:
    """The items to drop. `items` includes the roots; `followers` are those that the statement did not name, for a NOTICE."""

    items: tuple[Item, ...]
    followers: tuple[Item, ...]


def dropping(catalog: Catalog, roots: Sequence[Item | Schema], *, cascade: bool) -> Dropped:
    """Returns the items to drop with these roots. Without `cascade`, raises 2BP01 if other items depend on them.

    Companions, unfinished replacements, and the view of a sink with a query are dropped with their owner
    and never prevent it.
    """
    root_ids = {root.id for root in roots}
    going: dict[int, Item | Schema] = {}  # in reverse order
    because: dict[int, Item | Schema] = {}
    own: set[int] = set()

    def visit(this: Item | Schema) -> None:
        for dependent in sorted(_dependents(catalog, this), key=lambda item: -item.id):
            if dependent.id not in because and dependent.id not in root_ids:
                because[dependent.id] = this
                visit(dependent)
        going[this.id] = this
        view = this.query_view if isinstance(this, Sink) else None
        if view is not None and view not in because and view not in root_ids:
            own.add(view)
            because[view] = this
            visit(catalog[view])

    for root in roots:
        visit(root)
    items = tuple(o for o in going.values() if isinstance(o, Item))
    followers = [i for i in reversed(items) if i.id not in root_ids and not _goes_with_owner(i) and not i.replaces and i.id not in own]
    if followers and not cascade:
        what = "desired object(s)" if len(roots) > 1 else described(catalog, roots[0])
        raise DependentObjectsStillExist(
            f"cannot drop {what} because other objects depend on {'them' if len(roots) > 1 else 'it'}",
            detail="\n".join(f"{described(catalog, i)} depends on {described(catalog, because[i.id])}" for i in followers),
            hint="Use DROP ... CASCADE to drop the dependent objects too.",
        )
    return Dropped(tuple(sorted(items, key=lambda item: item.id)), tuple(followers))


def _goes_with_owner(item: Item) -> bool:
    """Returns whether an item is dropped with another without preventing it."""
    return isinstance(item, DroppedWithOwner) or (isinstance(item, Sink) and item.of_view)


def _dependents(catalog: Catalog, of: Item | Schema) -> tuple[Item, ...]:
    if isinstance(of, Item):
        return catalog.dependents(of.id)
    return tuple(i for i in catalog.items.values() if i.schema == of.id)


def described(catalog: Catalog, this: Item | Schema) -> str:
    """Returns an object's description as in PostgreSQL's messages: `view s.v`."""
    if isinstance(this, Schema):
        return f"schema {this.name}"
    return f"{this.kind} {catalog.name_of(this).sql}{this.display_name.removeprefix(this.name)}"
