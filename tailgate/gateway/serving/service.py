"""The query service of a gateway process: prepares and runs queries on the mirrors, and follows changes."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import time as clocks
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import pyarrow as pa
from sqlglot import exp

from tailgate.gateway.catalog.catalog_query import CatalogQuery, Described, described
from tailgate.gateway.catalog.object_names import Session
from tailgate.gateway.catalog.system_catalog import SystemCatalog
from tailgate.gateway.mirrors.entries import Entries
from tailgate.gateway.mirrors.mirrors import Mirrors, State
from tailgate.gateway.mirrors.sandbox import Sandbox, open_sandbox
from tailgate.gateway.mirrors.snapshots import Snapshot, Snapshots, raise_error_of
from tailgate.gateway.resources.budgets import Budget
from tailgate.gateway.resources.concurrency import ASKING, Quota
from tailgate.gateway.resources.memory import Memory
from tailgate.gateway.resources.memory import default as default_memory
from tailgate.gateway.serving import following
from tailgate.gateway.serving.failures import translated
from tailgate.gateway.serving.feeds import Feed, Maintained, feed_of
from tailgate.gateway.serving.fetching import fetched
from tailgate.gateway.serving.following import Batch
from tailgate.gateway.serving.jobs import Job, Jobs
from tailgate.gateway.serving.prepared import Prepared, Seen, Statements, analyzed, analyzed_far, key_of, query_text, readable
from tailgate.gateway.serving.watchdog import Patience
from tailgate.gateway.workers.pool import Workers
from tailgate.lake import reading
from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.errors import FeatureNotSupported, UndefinedTable
from tailgate.lake.scratch import GATEWAY, ROOT, scratch
from tailgate.lake.types import Field, arrow_schema
from tailgate.sql.authorization import Authorized, Followed, Plan
from tailgate.sql.render.duckdb import arguments
from tailgate.sql.statements import QueryText, Select

if TYPE_CHECKING:
    from tailgate.lake import Lake


Result = TypeVar("Result")

FOLLOWING_THREADS = 4  # for decoding large changes of relations
# Followed queries in total, per role, and of the total for superusers only. Each may have its own
# tables, and is evaluated at each tick.
FOLLOWERS, FOLLOWERS_EACH, FOLLOWERS_RESERVE = 1000, 100, 100
NARROW = 50  # columns; the Arrow schemas of wider results are not cached
TRIES = 10  # of a statement whose relations get other columns while it starts
NOW_S_MAX = 0.02  # seconds that polls may take in the event loop after a tick
LONG_CHARACTERS = 8_000  # a longer query is not bound in the event loop
SINCE_KEPT = 1.0  # seconds that the result of `oldest` is cached


class Serving:
    """The query service of a gateway process.

    It belongs to one event loop. `run_now` and `prepare` may also be called without a running loop.
    """

    def __init__(self, lake: Lake, memory: Memory | None = None) -> None:
        self._lake = lake
        self.memory = memory or default_memory()
        self.budget = Budget("the gateway", self.memory.clients)
        self.workers = Workers(self.memory.process)
        self._closing = contextlib.ExitStack()
        self._scratch = self._closing.enter_context(scratch(lake.path / ROOT, GATEWAY)).path
        self._sandbox = open_sandbox(_functions, memory_limit=self.memory.duckdb, scratch=self._scratch)
        self._entries = Entries(lake, self.budget)
        self._mirrors = Mirrors(lake, self._sandbox, self._entries, self._moved)
        self._statements = Statements(self.budget)
        self._system = SystemCatalog(self._opened, fetched)
        self._opened_too: list[Sandbox] = []
        self._snapshots = Snapshots()
        self._jobs = Jobs("tailgate-query")
        # Separate queues, so that none of these waits for another: queries of the system catalog,
        # calls of functions alone (pg_cancel_backend), and followed queries.
        self._catalog_jobs = Jobs("tailgate-catalog", 4, 2, 8, 3)
        self._calls = Jobs("tailgate-call", 4, 2, 8, 3)
        self._followed = Jobs("tailgate-followed", 4, 2, 8, 3)
        self._lanes = (self._jobs, self._catalog_jobs, self._calls, self._followed)
        self._following = ThreadPoolExecutor(FOLLOWING_THREADS, "tailgate-follow")
        self._followers = Quota("followed queries", FOLLOWERS, FOLLOWERS_EACH, FOLLOWERS_RESERVE)
        self._feeds: dict[object, tuple[Feed, int]] = {}  # by key, with the number of followers
        self._feeds_lock = threading.Lock()
        self._callbacks: list[Callable[[int], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._advance: asyncio.Future[None] | None = None
        self._now = self._sandbox.cursor()
        self._now_lock = threading.Lock()
        self._patience = Patience(self._now.interrupt, NOW_S_MAX)
        self._since = (0, 0.0)

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._advance = self._loop.create_future()
        self._mirrors.start()

    async def stop(self) -> None:
        """Stops all threads and worker processes, and closes the DuckDB instances."""
        await asyncio.to_thread(self._mirrors.stop)
        for jobs in self._lanes:
            jobs.close()
        await asyncio.to_thread(self.workers.close)
        self._following.shutdown(cancel_futures=True)
        self._snapshots.close()
        for feed, _ in self._feeds.values():
            feed.close()
        self._patience.stop()
        self._loop = None
        for sandbox in (self._sandbox, *self._opened_too):
            sandbox.close()
        self._closing.close()

    # --- time

    @property
    def catalog(self) -> Catalog:
        return self._mirrors.state.catalog

    @property
    def time(self) -> int:
        """Returns the newest time of the mirrors; 0 before the first entry."""
        return self._mirrors.state.time

    @property
    def known(self) -> tuple[Catalog, int]:
        """Returns the catalog and the number of the entry that last changed it."""
        state = self._mirrors.state
        return state.catalog, state.catalog_n

    @property
    def catalog_n(self) -> int:
        """Returns the number of the entry that last changed the catalog; a cache key."""
        return self._mirrors.state.catalog_n

    async def readable_since(self, relations: Iterable[int]) -> int:
        """Returns the oldest time at which all of these relations can be read."""
        return await asyncio.to_thread(reading.readable_since, self._lake, tuple(relations))

    def oldest(self) -> int:
        """Returns the oldest time that can still be read, up to SINCE_KEPT seconds late."""
        since, at = self._since
        now = clocks.monotonic()
        if now - at > SINCE_KEPT:
            since = self._lake.since()
            self._since = (since, now)
        return since

    def on_advance(self, callback: Callable[[int], None]) -> None:
        """Registers a callback that the event loop calls with the new time after each advance."""
        self._callbacks.append(callback)

    async def wait(self, after: int, timeout: float) -> int:
        """Waits until the mirrors are later than `after`, at most `timeout` seconds.

        Returns the time of the mirrors.
        """
        deadline = clocks.monotonic() + timeout
        while self.time <= after and (left := deadline - clocks.monotonic()) > 0:
            assert self._advance is not None
            await asyncio.wait([self._advance], timeout=left)
        return self.time

    @property
    def inbox(self) -> int:
        """Returns the last inbox entry in the mirrors; writes evaluated from now on see it."""
        return self._mirrors.state.inbox

    async def wait_inbox(self, number: int) -> None:
        """Waits until an inbox entry is committed and mirrored."""
        while self.inbox < number:
            assert self._advance is not None
            await asyncio.wait([self._advance], timeout=1.0)

    def changed_since(self, prepared: Prepared, time: int) -> bool:
        """Tells whether the result may differ from that at `time`; if not, cached bytes are valid."""
        state = self._mirrors.state
        if prepared.volatile or prepared.catalog_n != state.catalog_n:
            return True
        return any(
            self._mirrors.changed_at(i.id) > time or (i.errors and self._mirrors.changed_at(i.errors) > time) for i in prepared.items
        )

    def _moved(self, state: State) -> None:
        """Passes a new state from the mirrors' thread to the event loop."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._tell, state)

    def _tell(self, state: State) -> None:
        self._snapshots.expire()
        if self._advance is not None and self._loop is not None:
            done, self._advance = self._advance, self._loop.create_future()
            done.set_result(None)
        for callback in self._callbacks:
            callback(state.time)

    # --- queries

    def prepare(self, query: Select | QueryText | exp.Expression, parameter_oids: Sequence[int] = (), seen: Seen | None = None) -> Prepared:
        """Binds a query; returns the same object for the same text until the catalog changes.

        `seen` is the catalog as the session sees it; by default that of the mirrors. Binding may
        take long: use `prepared` in the event loop.
        """
        seen, text = seen or Seen(*self.known), query_text(query)
        key = key_of(text, parameter_oids, seen)
        found = self._statements.find(key) or self._statements.keep(key, analyzed(text, parameter_oids, seen.catalog, seen.catalog_n))
        return _no_catalog_query(found)

    async def analyzed(self, query: Select | QueryText, parameter_oids: Sequence[int], seen: Seen) -> Prepared | CatalogQuery:
        """Binds a query without blocking the event loop; returns a CatalogQuery for pg_catalog."""
        text = query_text(query)
        key = key_of(text, parameter_oids, seen)
        found = self._statements.find(key)
        if found is None:
            given = text, tuple(parameter_oids), seen.catalog, seen.catalog_n
            long = len(text.text) > LONG_CHARACTERS
            made = await self.workers.aside(analyzed, *given, far=partial(analyzed_far, *given), long=long)
            found = self._statements.keep(key, made)
        return found

    async def prepared(self, query: Select | QueryText, parameter_oids: Sequence[int] = (), seen: Seen | None = None) -> Prepared:
        """Does the same as `prepare` without blocking the event loop."""
        return _no_catalog_query(await self.analyzed(query, parameter_oids, seen or Seen(*self.known)))

    async def run(
        self, query: Authorized[Prepared], values: Sequence[object] = (), *, at: Snapshot | None = None, timeout: float | None = None
    ) -> pa.Table:
        """Returns the rows, read in the snapshot `at` if given.

        Cancelling the task stops the statement. A `timeout` in seconds raises QueryCanceled.
        """
        prepared = query.plan
        if at is not None:
            if not at.past:  # the block copies missing relations; later statements find them mirrored
                self._mirrors.need([i for i in prepared.items if i.id in self.catalog.items])
            return await self._jobs.run(lambda job: self._run_at(prepared, values, at, job), timeout)
        return await self._reading(prepared.items, lambda job: self._run(prepared, values, job), timeout)

    async def write(
        self,
        write: Authorized[Plan],
        items: Sequence[Item],
        work: Callable[[duckdb.DuckDBPyConnection], Result],
        *,
        at: Snapshot | None = None,
    ) -> Result:
        """Returns the result of `work`, called on a thread with a connection that can read `items`.

        Cancelling the task stops it.
        """
        if at is None:
            return await self._reading(items, lambda job: self._work(items, work, job))
        self._mirrors.need([i for i in items if i.id in self.catalog.items])
        return await self._jobs.run(lambda job: self._work_at(items, work, at, job))

    async def _reading(self, items: Sequence[Item], work: Callable[[Job], Result], timeout: float | None = None) -> Result:
        """Runs `work` once the items are mirrored.

        Retries if the mirror of an item disappears meanwhile, because the item got columns or was
        refilled.
        """
        for left in reversed(range(TRIES)):
            await self._mirrored(items)
            try:
                return await self._jobs.run(work, timeout)
            except duckdb.CatalogException:
                if not left:
                    raise
        raise AssertionError("there is a last try")

    def _work(self, items: Sequence[Item], work: Callable[[duckdb.DuckDBPyConnection], Result], job: Job) -> Result:
        """Calls `work` with a connection on the mirrors, after checking the items for errors."""
        cursor = self._sandbox.cursor()
        try:
            job.running(cursor)
            for item in items:
                if item.id in self._mirrors.state.failing:
                    raise_error_of(cursor, item)
            return work(cursor)
        finally:
            job.running(None)
            cursor.close()

    def _work_at(self, items: Sequence[Item], work: Callable[[duckdb.DuckDBPyConnection], Result], at: Snapshot, job: Job) -> Result:
        """Calls `work` with the connection of a snapshot."""
        with at.use() as cursor:
            try:
                job.running(cursor)
                at.bring(items)
                return work(cursor)
            finally:
                job.running(None)

    def run_now(self, query: Authorized[Prepared], values: Sequence[object] = ()) -> pa.Table:
        """Returns the rows, computed on this thread. Waits until the relations are mirrored.

        For queries that are known to be short, and for callers outside an event loop.
        """
        prepared = query.plan
        for left in reversed(range(TRIES)):
            for ready in self._mirrors.need(self._present(prepared.items)):
                ready.result()
            try:
                with self._now_lock:
                    return self._answer(self._now, prepared, values)
            except duckdb.Error as error:
                if not left or not isinstance(error, duckdb.CatalogException):
                    raise translated(error) from error
        raise AssertionError("there is a last try")

    def end_long(self, *, superusers: bool) -> int:
        """Ends long-running statements to free memory; returns their number.

        Statements of superusers are ended only if `superusers` is true.
        """
        return sum(jobs.end_long(superusers=superusers) for jobs in self._lanes)

    def bounded_now(self) -> AbstractContextManager[None]:
        """Interrupts `run_now` within the block (57014) after NOW_S_MAX seconds."""
        return self._patience.bounded()

    def snapshot(self, at: int | None = None) -> Snapshot:
        """Opens a snapshot: one time for several statements, now or a past time `at`.

        `at` must not be older than `oldest`. The caller closes the snapshot. Raises 53400 if too
        many snapshots are open, in total or for the current role.
        """
        self._snapshots.check(ASKING.get())
        return self._snapshots.add(Snapshot(self._lake, self._sandbox.cursor(), self._mirrors.catalog_at, at), ASKING.get())

    def ready(self, prepared: Prepared) -> bool:
        """Tells whether all relations of the query are in memory, so that `run_now` does not wait."""
        return self._mirrors.moving() >= prepared.relations

    def _run(self, prepared: Prepared, values: Sequence[object], job: Job) -> pa.Table:
        cursor = self._sandbox.cursor()
        try:
            job.running(cursor)
            return self._answer(cursor, prepared, values)
        finally:
            job.running(None)
            cursor.close()

    def _run_at(self, prepared: Prepared, values: Sequence[object], at: Snapshot, job: Job) -> pa.Table:
        with at.use() as cursor:
            try:
                job.running(cursor)
                at.bring(prepared.items)
                return execute(cursor, prepared, values)
            finally:
                job.running(None)

    def _answer(self, cursor: duckdb.DuckDBPyConnection, prepared: Prepared, values: Sequence[object]) -> pa.Table:
        """Runs the query, and checks its views for errors before and after.

        Thus it never returns rows of a time at which a view has errors.
        """
        before = self._mirrors.state
        self._check(cursor, prepared, before)
        table = execute(cursor, prepared, values)
        after = self._mirrors.state
        if after is not before and after.failing:
            self._check(cursor, prepared, after)
        return table

    def _check(self, cursor: duckdb.DuckDBPyConnection, prepared: Prepared, state: State) -> None:
        if not state.failing.isdisjoint(prepared.relations):
            for item in prepared.items:
                if item.id in state.failing:
                    raise_error_of(cursor, item)

    async def _mirrored(self, items: Iterable[Item]) -> None:
        waiting = self._mirrors.need(self._present(items))
        if waiting:
            await asyncio.gather(*(asyncio.shield(asyncio.wrap_future(w)) for w in waiting))

    def _present(self, items: Iterable[Item]) -> list[Item]:
        catalog = self.catalog
        for item in items:
            if item.id not in catalog.items:
                raise UndefinedTable(f'relation "{item.name}" does not exist')
        return list(items)

    # --- the system catalog

    async def run_catalog(
        self,
        query: Authorized[CatalogQuery],
        told: Described,
        values: Sequence[object],
        session: Session,
        catalog: Catalog,
        status: Mapping[str, Any] | None = None,
    ) -> pa.Table:
        """Returns the rows of a query of the system catalog.

        `values` of parameters may be text. `catalog` is the catalog as the session sees it.
        `status` is the engine's status report, for queries that need it.
        """
        jobs = self._catalog_jobs if query.plan.relations else self._calls
        return (await jobs.run(lambda job: self._system.run(query, values, session, catalog, status, told, job)))[1]

    async def describe_catalog(self, query: Authorized[CatalogQuery], session: Session, catalog: Catalog) -> Described:
        """Returns the columns of a catalog query, by running it for zero rows."""
        jobs = self._catalog_jobs if query.plan.relations else self._calls
        description = await jobs.run(lambda job: self._system.description(query, session, catalog, job))
        return await self.workers.aside(described, query.plan, description)

    def _opened(self, prepare: Callable[[duckdb.DuckDBPyConnection], None]) -> duckdb.DuckDBPyConnection:
        sandbox = open_sandbox(prepare, memory_limit=self.memory.catalog, scratch=self._scratch)
        self._opened_too.append(sandbox)
        return sandbox.connection

    # --- changes

    async def changes(
        self,
        source: Authorized[Followed | Prepared],
        *,
        after: int,
        snapshot: bool,
        values: Sequence[object] = (),
        patient: bool = False,
        columns: tuple[Field, ...] | None = None,
    ) -> AsyncIterator[Batch]:
        """Yields the rows at `after` if `snapshot`, then without end the net changes of each later time.

        A batch has each row at most once. With `patient`, changes wait while a view has errors; the
        error is raised only if it remains at the newest time. `columns` fixes the columns of a
        relation that has got others since.
        """
        item: Item | Prepared
        if isinstance(source.plan, Followed):
            item = readable(self.catalog[source.plan.item.id])
            item = item if columns is None else replace(item, columns=columns)
        else:
            item = source.plan
        asking = ASKING.get()
        aside = self._decoded
        if isinstance(item, Prepared):
            aside = self._queried
            self._followers.check(asking)
        feed, shared = await aside(self._feed, item, values, after)
        if isinstance(item, Prepared):
            self._followers.opened(asking)
        try:
            async for batch in following.follow(
                feed, self._entries, after, snapshot, lambda: self._mirrors.state, self._later, aside, patient
            ):
                yield batch
        finally:
            if isinstance(item, Prepared):
                self._followers.closed(asking)
            self._release(feed, shared)

    async def _decoded(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Runs `work` on a thread of the pool that decodes changes of relations."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._following, work, *arguments)
        except Exception as error:
            raise translated(error) from error

    async def _queried(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Runs `work` interruptibly on a thread for followed queries, in the role's turn."""
        return await self._followed.run(lambda job: work(*arguments))

    async def _later(self, n: int) -> None:
        while self._mirrors.state.n <= n:
            assert self._advance is not None
            await asyncio.shield(self._advance)  # a future that many tasks wait for

    def _feed(self, source: Item | Prepared, values: Sequence[object], after: int) -> tuple[Feed, bool]:
        """Returns a feed, and whether it is shared. A query that has moved past `after` is not."""
        feed = feed_of(self._lake, self._sandbox, self._entries, source, values)
        start = self._entries.at(after)
        with self._feeds_lock:
            known, followers = self._feeds.get(feed.key, (feed, 0))
            if isinstance(known, Maintained) and known.n > start:
                return feed, False
            self._feeds[feed.key] = (known, followers + 1)
            return known, True

    def _release(self, feed: Feed, shared: bool) -> None:
        """Ends a follower's use of a feed; closes the feed after the last one."""
        with self._feeds_lock:
            if shared:
                kept, followers = self._feeds[feed.key]
                if followers > 1:
                    self._feeds[feed.key] = (kept, followers - 1)
                    return
                del self._feeds[feed.key]
        self._following.submit(feed.close)  # on a thread, because it waits for a running evaluation


def _no_catalog_query(found: Prepared | CatalogQuery) -> Prepared:
    if isinstance(found, CatalogQuery):
        raise FeatureNotSupported("a query of the system catalog is not supported here")
    return found


def execute(cursor: duckdb.DuckDBPyConnection, prepared: Prepared, values: Sequence[object]) -> pa.Table:
    """Returns the result in stored form, with the names of the columns."""
    given = arguments(values, prepared.used, prepared.constants)
    result = cursor.execute(prepared.sql, given) if given else cursor.execute(prepared.sql)
    return fetched(result, _schema(prepared.columns))


_narrow = functools.lru_cache(500)(arrow_schema)


def _schema(columns: tuple[Field, ...]) -> pa.Schema:
    return _narrow(columns) if len(columns) <= NARROW else arrow_schema(columns)


def _functions(connection: duckdb.DuckDBPyConnection) -> None:
    try:
        from tailgate.sql.render.duckdb_functions import install
    except ImportError:
        return
    install(connection)
