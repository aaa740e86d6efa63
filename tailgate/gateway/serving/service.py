"""The query service of a gateway process: its parts, and their start and end."""

from __future__ import annotations

import asyncio
import contextlib

from tailgate.gateway.freshness.watch import Watch
from tailgate.gateway.mirrors.entries import Entries
from tailgate.gateway.mirrors.mirrors import Mirrors
from tailgate.gateway.mirrors.sandbox import open_sandbox
from tailgate.gateway.resources.budgets import Budget
from tailgate.gateway.resources.memory import Memory
from tailgate.gateway.resources.memory import default as default_memory
from tailgate.gateway.serving.binder import Binder
from tailgate.gateway.serving.followers import Followers
from tailgate.gateway.serving.progress import Progress
from tailgate.gateway.serving.queries import Queries
from tailgate.gateway.serving.system_queries import SystemQueries
from tailgate.gateway.workers.pool import Workers
from tailgate.lake.folder import Lake
from tailgate.lake.host.scratch import GATEWAY, scratch
from tailgate.sql.render.duckdb_functions import install


class Serving:
    """The query service of a gateway process, which belongs to one event loop.

    `mirrors`, `progress`: the relations, and their position. `binder`: binds queries. `queries`: runs them. `system`: runs those of the
    system catalog.
    `followers`: follows relations and queries. `freshness`: the freshness lag of relations.
    """

    def __init__(self, lake: Lake, memory: Memory | None = None) -> None:
        self.memory = memory or default_memory()
        self.budget = Budget("the gateway", self.memory.clients)
        self.workers = Workers(self.memory.process)
        self._closing = contextlib.ExitStack()
        folder = self._closing.enter_context(scratch(lake.scratch, GATEWAY)).path
        self._sandbox = open_sandbox(install, memory_limit=self.memory.duckdb, scratch=folder)
        entries = Entries(lake, self.budget)
        self.mirrors = Mirrors(lake, self._sandbox, entries)
        self.freshness = Watch(lake, self.mirrors)
        self.progress = Progress(lake, self.mirrors)
        self.binder = Binder(self.progress, self.workers, self.budget)
        self.queries = Queries(lake, self._sandbox, self.mirrors, self.progress)
        self.system = SystemQueries(self.workers, self.memory.catalog, folder)
        self.followers = Followers(lake, self._sandbox, entries, self.progress)

    async def start(self) -> None:
        """Starts to follow the log."""
        self.progress.start()
        self.mirrors.start()
        self.freshness.start()

    async def stop(self) -> None:
        """Stops all threads and worker processes, and closes the DuckDB instances."""
        await asyncio.to_thread(self.freshness.stop)
        await asyncio.to_thread(self.mirrors.stop)
        await asyncio.to_thread(self.workers.close)
        self.queries.close()
        self.followers.close()
        self.progress.stop()
        self.system.close()
        self._sandbox.close()
        self._closing.close()

    def end_long(self, *, superusers: bool) -> int:
        """Ends long-running statements to free memory; returns their number.

        Statements of superusers are ended only if `superusers` is true.
        """
        lanes = (self.queries.jobs, *self.system.lanes, self.followers.jobs)
        return sum(jobs.end_long(superusers=superusers) for jobs in lanes)
