"""How one session sees the catalog: along its search_path, with its own temporary views in front.

    mirrors' catalog ──► columns as at a block's time ──► path (search_path, $user, what may be used) ──► temporary views ──► `catalog`

A temporary view is a name for a query and lives here alone: the engine and other sessions know nothing of it, and it ends with the
session. It follows what it reads through new names; when that is dropped, or gets other columns, the view is gone too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from gateway.budgets import Charged
from gateway.serving.prepared import Seen
from lake.catalog import Catalog, Item
from lake.errors import TailgateError
from lake.names import listed
from lake.roles import Role
from lake.schemas import SYSTEM, TEMPORARY, TEMPORARY_ID, Schema
from sql.definitions import bind_definition, restated

if TYPE_CHECKING:
    from gateway.session import Session

VIEW_BYTES, TEXT_FACTOR = 2 << 10, 4  # that a temporary view takes: by itself, and for each character of its texts
ENTRY_BYTES = 100  # of a catalog of a session's own, for each item
_listed = lru_cache(1000)(listed)


class Naming:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._base: Catalog | None = None
        self._held: Catalog | None = None  # of the block's time, where that is another
        self._asked: tuple[str, str] | None = None
        self._known = Seen(Catalog(), 0)
        self.temporary: dict[int, Item] = {}
        self._before: dict[int, Item] | None = None  # at the beginning of a block that has changed them
        self._next = 1
        self._charged: Charged | None = None

    @property
    def seen(self) -> Seen:
        """As the mirrors have it now, relations of a block that reads at an earlier time with the columns that they had then; the same
        object as long as nothing changes."""
        session = self._session
        base, n = session.serving.known
        held = session.transaction.catalog
        if held is base:
            held = None
        asked = (session.settings["search_path"], session.settings["role"])
        if self.behind and self._base is not None:
            base = self._base  # until `catch_up`
        if base is not self._base or held is not self._held or asked != self._asked:
            path = self._path(base)
            self._base, self._held, self._asked = base, held, asked
            self._known = self._see(base, n, path)
        return self._known

    @property
    def behind(self) -> bool:
        """Whether the catalog has changed and the temporary views have not followed it."""
        return bool(self.temporary or self._before) and self._base is not None and self._base is not self._session.serving.catalog

    async def catch_up(self) -> None:
        """Brings the temporary views to the catalog of the moment."""
        while self.behind:
            base, before, workers = self._session.serving.catalog, self._base, self._session.serving.workers
            assert before is not None
            if self._before is not None:
                self._before = await workers.aside(followed, self._before, self.own, before, base)
            views = await workers.aside(followed, self.temporary, self.own, before, base)
            self._charge(views, base)
            self.temporary, self._base = views, base
            self._known = self._see(base, self._session.serving.catalog_n, self._path(base))

    def _path(self, base: Catalog) -> tuple[str, ...]:
        """The schemas that are there, and that the role may use; where its role is gone, whoever asks in earnest is told."""
        try:
            role: Role | None = self._session.access.role
        except TailgateError:
            role = None
        user = role.name if role is not None and base.has_roles else self._session.user
        found: list[str] = []
        for name in _listed(self._session.settings["search_path"]):
            schema = base.find_schema(user if name == "$user" else name)
            if schema is None or schema.name in found:
                continue
            if role is None or schema.id in SYSTEM or base.may(role, "USAGE", schema.id):
                found.append(schema.name)
        return tuple(found)

    def _see(self, base: Catalog, n: int, path: tuple[str, ...]) -> Seen:
        then = {} if self._held is None else _then(base, self._held)
        if then:
            base = replace(base, items={**base.items, **then})
        if self.temporary:
            return Seen(self._with(base.along((self.own.name, *path)), self.temporary), n, object())
        return Seen(base.along(path), n, object()) if then else self._session.gateway.seen(base, n, path)

    @property
    def own(self) -> Schema:
        return Schema(TEMPORARY_ID, f"{TEMPORARY}_{self._session.process}")

    def _with(self, catalog: Catalog, views: dict[int, Item]) -> Catalog:
        return _with(catalog, self.own, views)

    # ---- temporary views

    def is_temporary(self, item: Item) -> bool:
        return item.id in self.temporary

    @property
    def has_temporary(self) -> bool:
        return bool(self.temporary)

    def room(self) -> tuple[int, Catalog]:
        """The id of a temporary view to come, and the catalog with the schema for it."""
        catalog = self.seen.catalog
        if not self.temporary:
            catalog = self._with(catalog.along((self.own.name, *catalog.path)), {})
        return TEMPORARY_ID + self._next, catalog

    def put(self, *items: Item) -> None:
        """Temporary views, new ones or others under their ids."""
        self._next = max([self._next, *(i.id - TEMPORARY_ID + 1 for i in items)])
        self._change({**self.temporary, **{i.id: i for i in items}})

    def drop(self, ids: Iterable[int]) -> None:
        gone = set(ids)
        self._change({id: item for id, item in self.temporary.items() if id not in gone})

    def drop_all(self) -> None:
        self._change({})

    def _change(self, views: dict[int, Item]) -> None:
        if self._session.transaction.in_block and self._before is None:
            self._before = self.temporary
        self._set(views)

    def _charge(self, views: dict[int, Item], base: Catalog) -> None:
        """Raises 53200 if the session may not hold these views, and a catalog of its own with them."""
        if self._charged is None:
            self._charged = Charged(self._session.budget)
        size = sum(VIEW_BYTES + TEXT_FACTOR * (len(item.sql) + len(item.query)) for item in views.values())
        self._charged.set(size + ENTRY_BYTES * len(base.items) if views else 0)

    def _set(self, views: dict[int, Item]) -> None:
        self._charge(views, self._base or Catalog())
        self.temporary = views
        if self._base is not None:
            self._known = self._see(self._base, self._known.catalog_n, self._path(self._base))

    def end(self, *, undo: bool) -> None:
        """The end of a block."""
        before, self._before = self._before, None
        if undo and before is not None:
            self._set(before)


def followed(views: dict[int, Item], own: Schema, base: Catalog, later: Catalog) -> dict[int, Item]:
    """Temporary views over a later catalog; those that have no meaning there, or another form, are gone."""
    kept: dict[int, Item] = {}
    before = _with(base, own, views)
    for id, item in sorted(views.items()):
        after = _with(later, own, {**kept, id: item})
        try:
            made = restated(item, before, after)
            if [c.type for c in bind_definition(made, after).columns] == [c.type for c in item.columns]:
                kept[id] = made
        except (TailgateError, KeyError):
            continue
    return kept


def _with(catalog: Catalog, own: Schema, views: dict[int, Item]) -> Catalog:
    return replace(catalog, items={**catalog.items, **views}, schemas={**catalog.schemas, TEMPORARY_ID: own})


def _then(base: Catalog, held: Catalog) -> dict[int, Item]:
    """Relations whose rows had other columns in an earlier catalog, as they were, and so the views that were made of them since."""

    def was(item: Item) -> Item | None:
        then = held.items.get(item.id)
        return then if then is not None and then is not item and then.columns != item.columns else None

    found = {item.id: then for item in base.items.values() if item.stored and (then := was(item)) is not None}
    views = [item for item in base.items.values() if found and item.kind == "view"]
    above = {view.id: then for view in views if (then := was(view)) is not None and not found.keys().isdisjoint(base.below(view))}
    return {**found, **above}
