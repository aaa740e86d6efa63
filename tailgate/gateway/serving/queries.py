"""Runs prepared queries and writes on the mirrors, on threads or in the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

import duckdb
import pyarrow as pa

from tailgate.gateway.mirrors.incoming import Incomings
from tailgate.gateway.mirrors.mirrors import Mirrors
from tailgate.gateway.mirrors.overlay import UncommittedChanges
from tailgate.gateway.mirrors.sandbox import Sandbox
from tailgate.gateway.mirrors.snapshots import Snapshot, Snapshots, raise_errors_of
from tailgate.gateway.resources.concurrency import REQUESTER
from tailgate.gateway.serving.failures import translated
from tailgate.gateway.serving.fetching import fetched
from tailgate.gateway.serving.jobs import Job, Jobs
from tailgate.gateway.serving.prepared import Prepared
from tailgate.gateway.serving.progress import Progress
from tailgate.gateway.serving.watchdog import Watchdog
from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.catalog.schemas import TAILGATE, is_system
from tailgate.lake.errors import FeatureNotSupported, UndefinedTable
from tailgate.lake.folder import Lake
from tailgate.lake.types import Field, arrow_schema
from tailgate.sql.authorization import Authorized, Plan
from tailgate.sql.render.duckdb import arguments

Result = TypeVar("Result")

NARROW = 50  # columns; the Arrow schemas of wider results are not cached
TRIES = 10  # of a statement whose relations get other columns while it starts
NOW_S_MAX = 0.02  # seconds that polls may take in the event loop after a tick


class Queries:
    """Runs queries and writes. `run_now` may be called without an event loop."""

    def __init__(self, lake: Lake, sandbox: Sandbox, mirrors: Mirrors, progress: Progress) -> None:
        self._lake, self._sandbox, self._mirrors, self._progress = lake, sandbox, mirrors, progress
        self._snapshots = Snapshots()
        self.jobs = Jobs("tailgate-query")
        self._now = sandbox.cursor()
        self._few_rows = Incomings(sandbox.cursor())
        self._few_rows.connection.execute("PRAGMA disable_optimizer")  # a quarter of the time of a statement that reads 30 rows
        self._now_lock = threading.Lock()
        self._watchdog = Watchdog(self._interrupt_now, NOW_S_MAX)
        progress.on_advance(lambda time: self._snapshots.expire())

    def close(self) -> None:
        """Closes the snapshots and ends the threads."""
        self.jobs.close()
        self._snapshots.close()
        self._watchdog.stop()

    async def run(
        self, query: Authorized[Prepared], values: Sequence[object] = (), *, at: Snapshot | None = None, timeout: float | None = None
    ) -> pa.Table:
        """Returns the rows, read in the snapshot `at` if given.

        Cancelling the task stops the statement. A `timeout` in seconds raises QueryCanceled.
        """
        prepared = query.plan
        if at is not None:
            if not at.past:  # the block copies missing relations; later statements find them mirrored
                self._mirrors.need(self._committed(prepared.items))
            return await self.jobs.run(
                lambda job: self._work_at(prepared.items, lambda cursor: execute(cursor, prepared, values), at, job), timeout
            )
        if prepared.first is not None and not self.ready(prepared):
            self._mirrors.need(self._present(prepared.items))  # later statements find them mirrored
            return await self.jobs.run(lambda job: self._run_first(prepared, values, job), timeout)
        return await self._reading(prepared.items, lambda job: self._run(prepared, values, job), timeout)

    async def run_at_entry(self, query: Authorized[Prepared], values: Sequence[object] = ()) -> tuple[int, int, pa.Table]:
        """Returns the rows at the newest time, and the entry and the time that they belong to."""
        prepared = query.plan
        return await self.read_at_entry(query, lambda cursor: execute(cursor, prepared, values))

    async def read_at_entry(
        self, query: Authorized[Prepared], read: Callable[[duckdb.DuckDBPyConnection], Result]
    ) -> tuple[int, int, Result]:
        """Returns the newest entry, its time, and the result of `read`, called on a thread with a connection on the mirrors at that time.

        `read` reads the relations of the query.
        """
        return await self._reading(query.plan.items, lambda job: self._read_at_entry(query.plan, read, job))

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
        self._mirrors.need(self._committed(items))
        return await self.jobs.run(lambda job: self._work_at(items, work, at, job))

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

    def compute_now(self, work: Callable[[Incomings], Result]) -> Result:
        """Returns the result of `work`, called on this thread with streams of a connection for few rows, which reads no mirrors."""
        with self._now_lock:
            return work(self._few_rows)

    def bounded_now(self) -> AbstractContextManager[None]:
        """Interrupts `run_now` and `compute_now` within the block (57014) after NOW_S_MAX seconds."""
        return self._watchdog.bounded()

    def ready(self, prepared: Prepared) -> bool:
        """Tells whether all relations of the query are in memory, so that `run_now` does not wait."""
        return self._mirrors.use(prepared.relations)

    async def catch_up(self, relations: Collection[int] | None = None) -> None:
        """Applies the changes that the mirrors of relations lack, by default of all, on a thread, so that `snapshot` need not do it.

        For 200 relations it takes 0.3 s.
        """
        if self._mirrors.deferral.are_behind(relations):
            await asyncio.to_thread(self._catch_up, relations)

    async def open_snapshot(
        self,
        rows: Mapping[int, UncommittedChanges],
        at: int | None = None,
        relations: Collection[int] | None = None,
        first: int | None = None,
    ) -> Snapshot:
        """Does the same as `snapshot`, after `catch_up`. `rows`: of relations that are not in the log."""
        await self.catch_up(relations if at is None else ())
        snapshot = self.snapshot(at, relations=relations, first=first)
        snapshot.write(rows)
        return snapshot

    def snapshot(
        self,
        at: int | None = None,
        catalog: Catalog | None = None,
        relations: Collection[int] | None = None,
        first: int | None = None,
    ) -> Snapshot:
        """Opens a snapshot: one time for several statements, now or a past time `at`.

        `at` must not be older than `oldest`. `catalog`: the present one by default. `relations`: all that will be read, if they are known.
        `first`: as in `Snapshot`.
        It may wait for a tick: the event loop uses `open_snapshot`, or `catch_up` before. The caller closes the snapshot.
        Raises 53400 if too many snapshots are open, in total or for the current role.
        """
        self._snapshots.check(REQUESTER.get())
        catalog_at = self._mirrors.catalog_at if catalog is None else lambda n: catalog
        with self._mirrors.reading(relations if at is None else ()):
            snapshot = Snapshot(self._lake, self._sandbox.cursor(), catalog_at, at, relations, first)
        return self._snapshots.add(snapshot, REQUESTER.get())

    async def _reading(self, items: Sequence[Item], work: Callable[[Job], Result], timeout: float | None = None) -> Result:
        """Runs `work` once the items are mirrored.

        Retries if the mirror of an item disappears meanwhile, because the item got columns or was
        refilled.
        """
        for left in reversed(range(TRIES)):
            await self._mirrored(items)
            try:
                return await self.jobs.run(work, timeout)
            except duckdb.CatalogException:
                if not left:
                    raise
        raise AssertionError("there is a last try")

    @contextlib.contextmanager
    def _connection(self, job: Job) -> Iterator[duckdb.DuckDBPyConnection]:
        """Provides a connection on the mirrors, which is interrupted if the job is cancelled."""
        cursor = self._sandbox.cursor()
        try:
            job.running(cursor)
            yield cursor
        finally:
            job.running(None)
            cursor.close()

    def _work(self, items: Sequence[Item], work: Callable[[duckdb.DuckDBPyConnection], Result], job: Job) -> Result:
        """Calls `work` with a connection on the mirrors, after checking the items for errors."""
        with self._connection(job) as cursor, self._mirrors.reading([item.id for item in items]):
            raise_errors_of(cursor, items, self._mirrors.state.failing)
            return work(cursor)

    def _work_at(self, items: Sequence[Item], work: Callable[[duckdb.DuckDBPyConnection], Result], at: Snapshot, job: Job) -> Result:
        """Calls `work` with the connection of a snapshot."""
        with at.use() as cursor:
            try:
                job.running(cursor)
                at.bring(items)
                return work(cursor)
            finally:
                job.running(None)

    def _interrupt_now(self) -> None:
        self._now.interrupt()
        self._few_rows.connection.interrupt()

    def _catch_up(self, relations: Collection[int] | None) -> None:
        with self._mirrors.reading(relations):
            pass

    def _run(self, prepared: Prepared, values: Sequence[object], job: Job) -> pa.Table:
        with self._connection(job) as cursor:
            return self._answer(cursor, prepared, values)

    def _run_first(self, prepared: Prepared, values: Sequence[object], job: Job) -> pa.Table:
        """Runs a query on those rows of its relation that suffice, which are read from the lake."""
        with self._mirrors.reading(()):
            snapshot = Snapshot(self._lake, self._sandbox.cursor(), self._mirrors.catalog_at, mirrored=(), first=prepared.first)
        with snapshot:
            return self._work_at(prepared.items, lambda cursor: execute(cursor, prepared, values), snapshot, job)

    def _read_at_entry(self, prepared: Prepared, read: Callable[[duckdb.DuckDBPyConnection], Result], job: Job) -> tuple[int, int, Result]:
        with self._connection(job) as cursor, self._mirrors.reading(prepared.relations):
            cursor.begin()
            ((n, time, failing),) = cursor.execute("SELECT n, t, failing FROM clock").fetchall()
            raise_errors_of(cursor, prepared.items, failing)
            return n, time, read(cursor)

    def _answer(self, cursor: duckdb.DuckDBPyConnection, prepared: Prepared, values: Sequence[object]) -> pa.Table:
        """Runs the query, and checks its views for errors before and after.

        Thus it never returns rows of a time at which a view has errors.
        """
        with self._mirrors.reading(prepared.relations):
            before = self._mirrors.state
            raise_errors_of(cursor, prepared.items, before.failing)
            table = execute(cursor, prepared, values)
            after = self._mirrors.state
        if after is not before:
            raise_errors_of(cursor, prepared.items, after.failing)
        return table

    async def _mirrored(self, items: Iterable[Item]) -> None:
        waiting = self._mirrors.need(self._present(items))
        if waiting:
            await asyncio.gather(*(asyncio.shield(asyncio.wrap_future(w)) for w in waiting))

    def _committed(self, items: Iterable[Item]) -> list[Item]:
        """Returns those of the items that exist in the newest catalog, as they are there."""
        catalog = self._progress.catalog.items
        return [catalog[item.id] for item in items if item.id in catalog]

    def _present(self, items: Iterable[Item]) -> list[Item]:
        catalog = self._progress.catalog
        for item in items:
            if is_system(item.id):  # its rows belong to a snapshot
                raise FeatureNotSupported(f"reading the schema {TAILGATE} is not supported here")
            if item.id not in catalog.items:
                raise UndefinedTable(f'relation "{item.name}" does not exist')
        return list(items)


def execute(cursor: duckdb.DuckDBPyConnection, prepared: Prepared, values: Sequence[object]) -> pa.Table:
    """Returns the result in stored form, with the names of the columns."""
    parameters = arguments(values, prepared.used, prepared.constants)
    result = cursor.execute(prepared.sql, parameters) if parameters else cursor.execute(prepared.sql)
    return fetched(result, _schema(prepared.columns))


_narrow = functools.lru_cache(500)(arrow_schema)


def _schema(columns: tuple[Field, ...]) -> pa.Schema:
    return _narrow(columns) if len(columns) <= NARROW else arrow_schema(columns)
