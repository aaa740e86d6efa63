"""The queries of alerts and sinks, which a gateway evaluates for other processes with the privileges and limits of their owners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import pyarrow as pa

from tailgate.gateway.execute.monitoring.system_relations import SystemRelations
from tailgate.gateway.mirrors.overlay import UncommittedChanges
from tailgate.gateway.resources.budgets import TASK_BUDGET
from tailgate.gateway.resources.concurrency import REQUESTER, Requester
from tailgate.gateway.serving.prepared import Prepared
from tailgate.gateway.session.gateway import Gateway
from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.catalog.roles import Role
from tailgate.sql.authorization import authorize

B = TypeVar("B")  # a bound query, with other data that its user needs


class OwnedQueries(Generic[B]):
    """The bound queries of items of the newest catalog. `bind`: binds one; its arguments are the item, the catalog and its entry."""

    def __init__(self, gateway: Gateway, bind: Callable[[Item, Catalog, int], B]) -> None:
        self._gateway, self._bind = gateway, bind
        self._catalog_n = -1
        self._bound: dict[int, B] = {}

    async def bound(self, item: Item, catalog: Catalog, catalog_n: int) -> B:
        """Returns the bound query of an item. Raises the errors of one that can no longer be read."""
        self._owner(item, catalog)
        if self._catalog_n != catalog_n:
            self._bound, self._catalog_n = {}, catalog_n
        of_catalog = self._bound  # a request with a newer catalog may replace it meanwhile
        bound = of_catalog.get(item.id)
        if bound is None:
            bound = of_catalog[item.id] = await self._gateway.serving.workers.run_bounded(self._bind, item, catalog, catalog_n)
        return bound

    def system_relations(self, item: Item, catalog: Catalog) -> SystemRelations:
        """Returns the relations of the schema `tailgate` as the owner of an item sees them."""
        return SystemRelations(self._gateway, self._owner(item, catalog), catalog)

    async def rows(
        self,
        query: Prepared,
        item: Item,
        catalog: Catalog,
        timeout_s: float,
        system: dict[int, UncommittedChanges] | None = None,
    ) -> pa.Table:
        """Returns the rows that the owner of an item sees. `system`: those of relations of the schema `tailgate`, if they are known."""
        queries = self._gateway.serving.queries
        authorized = authorize(query, self._owner(item, catalog), catalog)
        if not query.unlogged:
            return await queries.run(authorized, (), timeout=timeout_s)
        if system is None:
            system = await self.system_relations(item, catalog).changes(query.relations, query)
        with await queries.open_snapshot(system, relations=query.relations) as snapshot:
            return await queries.run(authorized, (), at=snapshot, timeout=timeout_s)

    def _owner(self, item: Item, catalog: Catalog) -> Role:
        """Returns the owner of an item, whose limits apply to the current task from now on."""
        owner = catalog.all_roles()[item.owner]
        REQUESTER.set(Requester(owner.id, owner.superuser))
        TASK_BUDGET.set(self._gateway.budget_of(owner.id, owner.superuser))
        return owner
