"""The binding of queries to their catalog, with a cache of the results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlglot import exp

from tailgate.gateway.catalog.catalog_query import CatalogQuery
from tailgate.gateway.resources.budgets import Budget
from tailgate.gateway.serving.prepared import (
    Prepared,
    SessionCatalog,
    Statements,
    analyzed,
    analyzed_in_worker,
    key_of,
    query_text,
)
from tailgate.gateway.serving.progress import Progress
from tailgate.gateway.workers.pool import Workers
from tailgate.lake.catalog.schemas import TAILGATE, is_system
from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.statements import QueryText, Select

LONG_CHARACTERS = 8_000  # a longer query is not bound in the event loop


class Binder:
    """Binds queries. `prepare` may be called from any thread; the other methods belong to the event loop."""

    def __init__(self, progress: Progress, workers: Workers, budget: Budget) -> None:
        self._progress, self._workers = progress, workers
        self.statements = Statements(budget)

    def prepare(
        self, query: Select | QueryText | exp.Expr, parameter_oids: Sequence[int] = (), session_catalog: SessionCatalog | None = None
    ) -> Prepared:
        """Binds a query; returns the same object for the same text until the catalog changes.

        `session_catalog` is the catalog as the session sees it; by default that of the mirrors.
        Binding may take long: use `prepared` in the event loop.
        """
        session_catalog, text = session_catalog or SessionCatalog(*self._progress.known), query_text(query)
        key = key_of(text, parameter_oids, session_catalog)
        bound = self.statements.find(key) or self.statements.keep(
            key, analyzed(text, parameter_oids, session_catalog.catalog, session_catalog.catalog_n)
        )
        return _no_catalog_query(bound)

    async def analyzed(
        self, query: Select | QueryText, parameter_oids: Sequence[int], session_catalog: SessionCatalog
    ) -> Prepared | CatalogQuery:
        """Binds a query without blocking the event loop; returns a CatalogQuery for pg_catalog."""
        text = query_text(query)
        key = key_of(text, parameter_oids, session_catalog)
        bound = self.statements.find(key)
        if bound is None:
            arguments = text, tuple(parameter_oids), session_catalog.catalog, session_catalog.catalog_n
            in_worker = partial(analyzed_in_worker, *arguments)
            query_plan = await self._workers.run_bounded(analyzed, *arguments, in_worker=in_worker, long=len(text.text) > LONG_CHARACTERS)
            bound = self.statements.keep(key, query_plan)
        return bound

    async def prepared(
        self,
        query: Select | QueryText,
        parameter_oids: Sequence[int] = (),
        session_catalog: SessionCatalog | None = None,
        *,
        system: bool = False,
    ) -> Prepared:
        """Does the same as `prepare` without blocking the event loop. `system`: also for queries of the schema tailgate."""
        session_catalog = session_catalog or SessionCatalog(*self._progress.known)
        return _no_catalog_query(await self.analyzed(query, parameter_oids, session_catalog), system=system)


def _no_catalog_query(bound: Prepared | CatalogQuery, *, system: bool = False) -> Prepared:
    if isinstance(bound, CatalogQuery):
        raise FeatureNotSupported("a query of the system catalog is not supported here")
    if not system and any(map(is_system, bound.relations)):
        raise FeatureNotSupported(f"a query of the schema {TAILGATE} is not supported here")
    if bound.calls:
        raise FeatureNotSupported(f"{bound.calls[0].name} is not supported here", hint="Call it in a separate SELECT.")
    return bound
