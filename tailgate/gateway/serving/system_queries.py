"""Runs queries of the system catalog, in their own DuckDB instance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow as pa

from tailgate.gateway.catalog.catalog_query import CatalogQuery, Described, described
from tailgate.gateway.catalog.functions.object_names import Session
from tailgate.gateway.catalog.system_catalog import NOTHING, Outside, SystemCatalog
from tailgate.gateway.mirrors.sandbox import Sandbox, open_sandbox
from tailgate.gateway.serving.fetching import fetched
from tailgate.gateway.serving.jobs import Jobs
from tailgate.gateway.workers.pool import Workers
from tailgate.lake.catalog import Catalog
from tailgate.sql.authorization import Authorized

Result = TypeVar("Result")


class SystemQueries:
    """Runs queries of the system catalog. `memory`: the limit of their DuckDB instance, in bytes."""

    def __init__(self, workers: Workers, memory: int, scratch: Path) -> None:
        self._workers, self._memory, self._scratch = workers, memory, scratch
        self._catalog = SystemCatalog(self._open, fetched)
        self._sandboxes: list[Sandbox] = []
        # Calls of functions alone (pg_cancel_backend) do not wait for queries.
        self._jobs = Jobs("tailgate-catalog", 4, 2, 8, 3)
        self._calls = Jobs("tailgate-call", 4, 2, 8, 3)
        self.lanes = (self._jobs, self._calls)

    def close(self) -> None:
        """Ends the threads and closes the DuckDB instance."""
        for jobs in self.lanes:
            jobs.close()
        for sandbox in self._sandboxes:
            sandbox.close()

    async def run(
        self,
        query: Authorized[CatalogQuery],
        described: Described,
        values: Sequence[object],
        session: Session,
        catalog: Catalog,
        outside: Outside = NOTHING,
    ) -> pa.Table:
        """Returns the rows of a query of the system catalog.

        `values` of parameters may be text. `catalog` is the catalog as the session sees it.
        `outside` has the engine's status report and the rows of other relations, for queries that need them.
        """
        jobs = self._jobs if query.plan.relations else self._calls
        return (await jobs.run(lambda job: self._catalog.run(query, values, session, catalog, outside, described, job)))[1]

    async def value(self, name: str, arguments: Sequence[object], session: Session, catalog: Catalog) -> object:
        """Returns the value of a function about the session."""
        return await self._calls.run(lambda job: self._catalog.value(name, arguments, session, catalog))

    async def call(self, work: Callable[[], Result]) -> Result:
        """Calls `work` on a thread for queries of the system catalog, in the role's turn."""
        return await self._jobs.run(lambda job: work())

    async def describe(self, query: Authorized[CatalogQuery], session: Session, catalog: Catalog) -> Described:
        """Returns the columns of a catalog query, by running it for zero rows."""
        jobs = self._jobs if query.plan.relations else self._calls
        description = await jobs.run(lambda job: self._catalog.description(query, session, catalog, job))
        return await self._workers.run_bounded(described, query.plan, description)

    def _open(self, prepare: Callable[[duckdb.DuckDBPyConnection], None]) -> duckdb.DuckDBPyConnection:
        sandbox = open_sandbox(prepare, memory_limit=self._memory, scratch=self._scratch)
        self._sandboxes.append(sandbox)
        return sandbox.connection
