"""The catalog as one session sees it: names along its search_path, and its temporary relations first.

    mirrors' catalog ──► the block's uncommitted changes ──► columns at a block's time ──► path (search_path, $user, privileges)
    ──► temporary relations ──► `catalog`

If another transaction changes a definition that the block has changed or relies on, the block keeps its catalog, and its COMMIT fails.

Temporary tables and views exist only in their session: the engine and other sessions do not know them. A rename of a relation that a
view reads does not affect it. The view is dropped when that relation is dropped or changes the view's column types.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tailgate.gateway.resources.budgets import Charge
from tailgate.gateway.serving.prepared import SessionCatalog
from tailgate.gateway.session.client import Client
from tailgate.gateway.session.gateway import Gateway
from tailgate.gateway.session.memory import SessionMemory
from tailgate.gateway.session.roles import CurrentRole
from tailgate.gateway.session.transactions import SavedState, Transaction
from tailgate.gateway.settings.settings import Settings
from tailgate.lake.catalog import Catalog, Change, Item, UserType, View
from tailgate.lake.catalog.names import Name, listed
from tailgate.lake.catalog.roles import Role
from tailgate.lake.catalog.schemas import DATABASE, SYSTEM, TEMPORARY, TEMPORARY_ID, Schema, is_temporary
from tailgate.lake.errors import InsufficientPrivilege, TailgateError, UndefinedTable
from tailgate.lake.uncommitted import Uncommitted
from tailgate.sql.definitions import bind_definition, rename_references
from tailgate.sql.ksqldb.dialect import HTTP

VIEW_BYTES, TEXT_FACTOR = 2 << 10, 4  # memory of a temporary view: fixed, and per character of its texts
ENTRY_BYTES = 100  # memory per item of a session's private catalog
_listed = lru_cache(1000)(listed)


class Naming:
    """The catalog of one session, with its temporary relations."""

    def __init__(
        self, gateway: Gateway, client: Client, settings: Settings, transaction: Transaction, current: CurrentRole, memory: SessionMemory
    ) -> None:
        self._gateway, self._serving, self._client, self._settings = gateway, gateway.serving, client, settings
        self._transaction, self._current, self._memory = transaction, current, memory
        self._base: Catalog | None = None
        self._held: Catalog | None = None  # the catalog at the block's time, if it differs
        self._block: Uncommitted | None = None  # the uncommitted changes in `_durable`
        self._refused: Catalog | None = None  # the newest catalog, if it conflicts with the block
        self._durable = Catalog()  # without temporary views, with the block's uncommitted changes
        self._key: tuple[str, str, tuple[str, str], bool] | None = None
        self._seen = SessionCatalog(Catalog(), 0)
        self.temporary: dict[int, Item] = {}
        self._before: dict[int, Item] | None = None  # the views at the beginning of a block that has changed them
        self._next = 1
        self._charged: Charge | None = None

    @property
    def seen(self) -> SessionCatalog:
        """Returns the catalog at the mirrors' time; the same object as long as nothing changes.

        Inside a block that reads at an earlier time, relations have the columns that they had at that time.
        """
        base, n = self._serving.progress.known
        held, block = self._transaction.catalog, self._transaction.definitions
        if held is base:
            held = None
        roles = self._settings["session_authorization"], self._settings["role"]
        key = (self._settings["search_path"], self._settings.style.time_zone, roles, self._settings.dialect == HTTP)
        if self._base is not None and (self.behind or self._conflicts(base)):
            base = self._base  # the previous catalog, until `catch_up`
        if base is not self._base or held is not self._held or key != self._key or block is not self._block:
            path = self._path(base)
            self._base, self._held, self._key, self._block = base, held, key, block
            self._seen = self._see(base, n, path)
            if self._settings.dialect == HTTP:
                self._seen = replace(self._seen, scope=(HTTP, self._seen.scope))
        return self._seen

    @property
    def durable(self) -> Catalog:
        """Returns the catalog without temporary views and search path, with the block's uncommitted changes."""
        assert self.seen  # brings it up to date
        return self._durable

    @property
    def behind(self) -> bool:
        """Returns whether the catalog has changed and the temporary views are not yet adapted to it."""
        return bool(self.temporary or self._before) and self._base is not None and self._base is not self._serving.progress.catalog

    @property
    def conflicting(self) -> bool:
        """Returns whether another transaction has changed a definition that the block has changed or relies on."""
        return self._conflicts(self._serving.progress.catalog)

    def _conflicts(self, base: Catalog) -> bool:
        """Returns whether a newer catalog conflicts with the block's uncommitted changes."""
        block = self._transaction.definitions
        if block is None or base is self._base:
            return False
        if base is not self._refused:
            try:
                block.check(base)
            except TailgateError:
                self._refused = base
        return base is self._refused

    async def catch_up(self) -> None:
        """Adapts the temporary views to the current catalog."""
        while self.behind and not self._conflicts(self._serving.progress.catalog):
            base, before, workers = self._serving.progress.catalog, self._base, self._serving.workers
            block = self._transaction.definitions
            assert before is not None
            if self._before is not None:
                self._before = await workers.run_bounded(followed, self._before, self.own, before, base)
            durable = base if block is None else block.applied(base)
            views = await workers.run_bounded(followed, self.temporary, self.own, self._durable, durable)
            self._charge(views, base)
            self.temporary, self._base, self._block = views, base, block
            self._seen = self._see(base, self._serving.progress.catalog_n, self._path(base))

    async def define(self, changed: Uncommitted) -> None:
        """Adds a statement's changes of the catalog to those of the block, and adapts the temporary views to them."""
        if self.temporary:
            base = self._base or self._serving.progress.catalog
            self._change(await self._serving.workers.run_bounded(followed, self.temporary, self.own, self._durable, changed.applied(base)))
        self._transaction.definitions = changed

    def _path(self, base: Catalog) -> tuple[str, ...]:
        """Returns the existing schemas of the search_path that the role may use, and pg_temp if it is in the list.

        If the role no longer exists, all existing ones: statements then fail when they are authorized.
        """
        try:
            role: Role | None = self._current.get()
        except TailgateError:
            role = None
        user = role.name if role is not None and base.has_roles else self._client.user
        block = self._transaction.definitions
        base = base if block is None else block.applied(base)
        schemas: list[str] = []
        for name in _listed(self._settings["search_path"]):
            own = self._is_own_schema(name)
            schema = self.own if own else base.find_schema(user if name == "$user" else name)
            if schema is None or schema.name in schemas or (name == "$user" and schema.id in SYSTEM):
                continue
            if own or role is None or schema.id in SYSTEM or base.may(role, "USAGE", schema.id):
                schemas.append(schema.name)
        return tuple(schemas)

    @property
    def _schemas(self) -> tuple[str, ...]:
        """Returns the path of the current catalog."""
        return self._path(self._base or self._serving.progress.catalog)

    def _see(self, base: Catalog, n: int, path: tuple[str, ...]) -> SessionCatalog:
        zone = self._settings.style.time_zone
        then = {} if self._held is None else _then(base, self._held)
        if self._block is not None:
            base = self._block.applied(base)
            then = {id: item for id, item in then.items() if id in base.items and id not in self._block.changed}
        self._durable = base
        if then:
            base = replace(base, items={**base.items, **then})
        if self.temporary:
            return SessionCatalog(self._with(base.along(self._with_own(path), zone), self.temporary), n, object())
        path = tuple(schema for schema in path if schema != self.own.name)
        private = then or self._block is not None
        if private:
            return SessionCatalog(base.along(path, zone), n, object())
        return self._gateway.seen(base, n, path, zone)

    @property
    def own(self) -> Schema:
        return Schema(TEMPORARY_ID, f"{TEMPORARY}_{self._client.process}")

    def _with_own(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """Returns the path with the schema of the temporary relations, which comes first unless the path has it."""
        return path if self.own.name in path else (self.own.name, *path)

    def _with(self, catalog: Catalog, views: dict[int, Item]) -> Catalog:
        return _with(catalog, self.own, views)

    # ---- temporary relations

    def item(self, id: int) -> Item:
        """Returns a relation: a temporary one, or one with the block's uncommitted changes. Raises 42P01 if it was dropped meanwhile."""
        item = self.temporary.get(id) if is_temporary(id) else self.durable.get(id)
        if item is None:
            raise UndefinedTable(f"relation with OID {id} does not exist", detail="It was dropped meanwhile.")
        return item

    def is_temporary(self, item: Item) -> bool:
        """Returns whether the item is one of the session's temporary relations."""
        return item.id in self.temporary

    def is_own(self, name: Name) -> bool:
        """Returns whether a new relation with this name is temporary: its schema, or the first of the search_path, is pg_temp."""
        schema = next(iter(self._schemas), None) if name.schema is None else name.schema
        return self._is_own_schema(schema)

    def _is_own_schema(self, schema: str | None) -> bool:
        return schema in (TEMPORARY, self.own.name)

    @property
    def has_temporary(self) -> bool:
        return bool(self.temporary)

    def room(self) -> tuple[int, Catalog]:
        """Returns the id for a new temporary relation, and the catalog that contains the temporary schema.

        Raises 42501 without TEMPORARY on the database.
        """
        catalog = self.seen.catalog
        if not catalog.may(self._current.get(), "TEMPORARY", DATABASE.id):
            raise InsufficientPrivilege(f'permission denied to create temporary tables in database "{self._client.database}"')
        if not self.temporary:
            catalog = self._with(catalog.along(self._with_own(self._schemas), catalog.time_zone), {})
        return TEMPORARY_ID + self._next, catalog

    def put(self, *items: Item) -> None:
        """Adds temporary relations, or replaces those with the same ids."""
        self.apply(Change(put=items))

    def apply(self, change: Change) -> None:
        """Adds, replaces and drops temporary relations."""
        self._next = max([self._next, *(i.id - TEMPORARY_ID + 1 for i in change.put)])
        relations = {**self.temporary, **{i.id: i for i in change.put}}
        self._change({id: item for id, item in relations.items() if id not in change.drop})

    def drop_all(self) -> None:
        self._change({})

    async def back(self, saved: SavedState) -> None:
        """Restores the temporary relations of a savepoint."""
        if saved.temporary == self.temporary:
            return
        views = dict(saved.temporary)
        if saved.catalog is not self.durable:
            views = await self._serving.workers.run_bounded(followed, views, self.own, saved.catalog, self.durable)
        self._change(views)

    def _change(self, views: dict[int, Item]) -> None:
        if self._transaction.pending and self._before is None:
            self._before = self.temporary
        self._set(views)

    def _charge(self, views: dict[int, Item], base: Catalog) -> None:
        """Charges the memory of these views and of the session's private catalog. Raises 53200 if the limit is exceeded."""
        if self._charged is None:
            self._charged = Charge(self._memory.budget)
        size = sum(VIEW_BYTES + TEXT_FACTOR * (len(item.sql) + len(item.query)) for item in views.values())
        self._charged.set(size + ENTRY_BYTES * len(base.items) if views else 0)

    def _set(self, views: dict[int, Item]) -> None:
        self._charge(views, self._base or Catalog())
        self.temporary = views
        if self._base is not None:
            self._seen = self._see(self._base, self._seen.catalog_n, self._path(self._base))

    def end(self, *, undo: bool) -> None:
        """Ends a block. With `undo`, restores the temporary views from its beginning."""
        before, self._before = self._before, None
        if undo and before is not None:
            self._set(before)


def followed(views: dict[int, Item], own: Schema, base: Catalog, later: Catalog) -> dict[int, Item]:
    """Adapts temporary relations to a later catalog. Drops views that can no longer be bound or have other column types."""
    bound_views: dict[int, Item] = {}
    before = _with(base, own, views)
    for id, item in sorted(views.items()):
        if not isinstance(item, View):
            bound_views[id] = item
            continue
        after = _with(later, own, {**bound_views, id: item})
        try:
            view = rename_references(item, before, after)
            if [c.type for c in bind_definition(view, after).columns] == [c.type for c in item.columns]:
                bound_views[id] = view
        except (TailgateError, KeyError):
            continue
    return bound_views


def _with(catalog: Catalog, own: Schema, views: dict[int, Item]) -> Catalog:
    both = replace(catalog, items={**catalog.items, **views}, schemas={**catalog.schemas, TEMPORARY_ID: own})
    return both.with_types() if any(isinstance(item, UserType) for item in catalog.items.values()) else both


def _then(base: Catalog, held: Catalog) -> dict[int, Item]:
    """Returns the earlier versions of items whose columns differ in the catalog `held`: stored relations, and views that read them."""

    def was(item: Item) -> Item | None:
        then = held.items.get(item.id)
        return then if then is not None and then is not item and then.columns != item.columns else None

    earlier_items = {item.id: then for item in base.items.values() if item.stored and (then := was(item)) is not None}
    views = [item for item in base.items.values() if earlier_items and isinstance(item, View)]
    above = {view.id: then for view in views if (then := was(view)) is not None and not earlier_items.keys().isdisjoint(base.below(view))}
    return {**earlier_items, **above}
