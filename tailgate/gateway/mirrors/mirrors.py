"""All mirrors of a process, which follow the log together in one DuckDB transaction.

    log ──► follower thread: new entries ──► BEGIN; update the mirrors that are read, and the clock; COMMIT ──► State ──► callbacks
    statement of DuckDB ──► `reading`: the mirrors that it reads get the changes that were deferred
    first use of a relation ──► fill thread: rows at a time, later entries ──► under the lock: the rest; readable
    table with many old rows ──► fill thread: its copy, later entries ──► under the lock: the rest; in place of the table

A reader that opens a transaction and reads the clock (`clock`) sees all mirrors at one time, without a lock.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time as clocks
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.gateway.mirrors import clock, mirror
from tailgate.gateway.mirrors.copies import Copies
from tailgate.gateway.mirrors.deferral import CLOCK, Deferral
from tailgate.gateway.mirrors.entries import CachedEntry, Entries
from tailgate.gateway.mirrors.figures import Figures
from tailgate.gateway.mirrors.mirrored import Mirrored
from tailgate.gateway.mirrors.sandbox import Sandbox, transaction
from tailgate.gateway.mirrors.state import Catalogs, State
from tailgate.gateway.mirrors.tables import Table, Tables
from tailgate.lake.catalog import Catalog, Item, ViewErrors
from tailgate.lake.errors import Gone, UndefinedTable
from tailgate.lake.folder import Lake
from tailgate.lake.readers import reading
from tailgate.lake.tables.stored_relations import begun
from tailgate.lake.types import WEIGHT
from tailgate.lake.wake import Wake

log = logging.getLogger("tailgate.serving")

ENTRIES_AT_ONCE = 64  # entries per transaction when behind; a reader lags by at most one such transaction
FILLS_AT_ONCE = 2  # relations that are filled or copied concurrently; each briefly holds its rows twice
CATCH_UP = 4  # entries that a fill may be behind when it takes the lock to apply the rest
UNUSED_AFTER = 1800.0  # seconds without a query after which a mirror is dropped; long enough for a break in the use of a dashboard
UNUSED_LOOK = 60.0  # seconds between searches for unused mirrors
RETRY = 1.0  # seconds until the next try after an error, such as a missing lake folder


class Mirrors:
    """The mirrors of a process, with the thread that follows the log."""

    def __init__(self, lake: Lake, sandbox: Sandbox, entries: Entries) -> None:
        self._lake, self._sandbox, self._entries = lake, sandbox, entries
        self._advanced: Callable[[State], None] = lambda state: None
        self._mirrored: dict[int, Mirrored] = {}
        self._errors_of: dict[int, int] = {}  # relation of errors → item
        self._totals: dict[int, int] = {}  # relation of errors → sum of weights
        self._changed: dict[int, int] = {}  # relation → time of its last change
        self._lock = threading.RLock()  # guards the four above; only its holder writes mirrors
        self._are_outdated = False  # a transaction that changes mirrors is open or has failed
        self._writer = sandbox.cursor()
        self._tables = Tables(self._writer)
        self.deferral = Deferral()
        self.figures = Figures()
        self._filling = ThreadPoolExecutor(FILLS_AT_ONCE, "tailgate-fill")
        self._copies = Copies(sandbox, self._tables, self._filling, self._lock, self.reading, self._catch_up)
        self._clock_lists: list[list[int]] | None = None  # those of the clock since the last commit, None if they are not known
        self._wake = Wake(lake)
        self._stopping = threading.Event()
        self._look_again = 0.0
        self._thread = threading.Thread(target=self._follow, name="tailgate-mirrors", daemon=True)
        self.state = State(0, 0, Catalog(), 0)
        if newest := lake.log.newest():
            entries.note(newest)
            self.state = State(newest.n, newest.time, lake.catalog_at(newest.n), newest.catalog_version, inbox=newest.inbox)
        self.figures.began, self.figures.newest = self.state.n, newest
        self._catalogs = Catalogs(self.state)
        clock.create(self._writer, self.state)

    def start(self) -> None:
        self._wake.start(self.state.n)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._wake.interrupt()
        if self._thread.is_alive():
            self._thread.join()
        self._wake.close()
        self._filling.shutdown(cancel_futures=True)

    def on_advance(self, callback: Callable[[State], None]) -> None:
        """Sets the function that the follower thread calls with each new state."""
        self._advanced = callback

    # --- reading

    def need(self, items: Iterable[Item]) -> list[Future[None]]:
        """Returns futures to wait for before the items can be read; starts missing fills."""
        waiting = []
        now = clocks.monotonic()
        for item in items:
            entry = self._mirrored.get(item.id)
            if entry is None or entry.ready.cancelled():
                entry = self._begin(item)
            entry.used = now
            if not entry.moving:
                waiting.append(entry.ready)
        return waiting

    def changed_at(self, relation: int) -> int:
        """Returns the time of a relation's last change since this process started, or 0."""
        return self._changed.get(relation, 0)

    def catalog_at(self, n: int) -> Catalog:
        """Returns the catalog at entry `n`, which the clock has shown."""
        return self._catalogs.at(n)

    def table_of(self, relation: int) -> Table | None:
        """Returns the table with the rows of a relation, or None if it is not mirrored."""
        entry = self._mirrored.get(relation)
        return None if entry is None else entry.tables.get(relation)

    def moving(self, ended: Collection[Mirrored] = ()) -> frozenset[int]:
        """Returns the mirrored relations, without those of some mirrors."""
        return frozenset(r for r, m in self._mirrored.items() if m.moving and m not in ended)

    def use(self, relations: Iterable[int]) -> bool:
        """Returns whether all relations are mirrored, which this uses."""
        entries, now = [self._mirrored.get(relation) for relation in relations], clocks.monotonic()
        for entry in entries:
            if entry is None or not entry.moving:
                return False
            entry.used = now
        return True

    @contextlib.contextmanager
    def reading(self, relations: Collection[int] | None = None) -> Iterator[None]:
        """Lets a statement of DuckDB read the mirrors of relations, by default of all, and the clock, at the newest entry or a later one.

        The transaction of DuckDB must begin within the block. It may end later, and reads no other relations.
        """
        try:
            if self.deferral.begin(relations):
                self._apply_deferred(relations)
            yield
        finally:
            self.deferral.end(relations)

    def entries_after(self, n: int) -> list[CachedEntry] | None:
        """Returns the entries after `n` that the mirrors show, or None if some of them are not in memory."""
        return self._entries.between(n, self.state.n)

    # --- filling

    def _begin(self, item: Item) -> Mirrored:
        """Starts to fill the mirror of an item, unless it exists."""
        with self._lock:
            entry = self._mirrored.get(item.id)
            if entry is None and isinstance(item, ViewErrors):  # a view's errors are mirrored with the view
                entry = self._mirrored[item.id] = self._begin(self.state.catalog[item.depends[0]])
            elif entry is None:
                entry = self._mirrored[item.id] = Mirrored(item, mirror.shape(item))
                self._filling.submit(self._fill, entry)
            return entry

    def _fill(self, entry: Mirrored) -> None:
        """Fills a mirror on a fill thread, catches up with the log, and makes it readable."""
        shapes = [entry.shape] + ([mirror.errors_shape(entry.item)] if entry.item.errors else [])
        connection, tables = self._sandbox.cursor(), list[Table]()
        try:
            n, time = (newest := self.state).n, newest.time  # the state is read once, because the follower thread replaces it
            connection.begin()
            for shape in shapes:
                tables.append(self._tables.fill(connection, shape, reading.snapshot(self._lake, shape.relation, at=time)))
            connection.commit()
            n = self._catch_up(connection, tables, n)
            with self._lock:
                n = self._apply_entries(connection, tables, n)
                if entry.item.id not in self.state.catalog.items:
                    raise UndefinedTable(f'relation "{entry.item.name}" does not exist')
                if entry.has_changed_form(self.state.catalog):  # its columns have changed meanwhile
                    self._discard(connection, tables)
                    entry.item = self.state.catalog[entry.item.id]
                    entry.shape = mirror.shape(entry.item)
                    self._filling.submit(self._fill, entry)
                    return
                if entry.item.errors:
                    ((errors,),) = connection.execute(f"SELECT coalesce(sum({WEIGHT}), 0) FROM r{entry.item.errors}").fetchall()
                    self._errors_of[entry.item.errors], self._totals[entry.item.errors] = entry.item.id, int(errors)
                self.state = replace(self.state, failing=self._failing())  # before the view becomes readable
                entry.tables = {table.shape.relation: table for table in tables}
                entry.moving = True
                self._set_clock(connection, self.state)
            entry.ready.set_result(None)
        except BaseException as error:  # noqa: BLE001  # raised to the callers that wait for `ready`
            self._discard(connection, tables)
            with self._lock:
                self._dropped([entry])
            entry.ready.set_exception(error)
        finally:
            connection.close()

    def _catch_up(self, connection: duckdb.DuckDBPyConnection, tables: Sequence[Table], n: int) -> int:
        """Applies the entries after `n` to tables that are being filled, up to one of the newest; returns the last one."""
        while self.state.n - n > CATCH_UP:
            n = self._apply_entries(connection, tables, n)
        return self._apply_entries(connection, tables, n)

    def _apply_entries(self, connection: duckdb.DuckDBPyConnection, tables: Sequence[Table], n: int) -> int:
        """Applies the entries after `n` to tables that are being filled; returns the last one."""
        target = max(n, self.state.n)  # the clock shows an entry a moment before the state
        connection.begin()
        for first in range(n + 1, target + 1, ENTRIES_AT_ONCE):
            entries = [self._entries.get(i) for i in range(first, min(first + ENTRIES_AT_ONCE, target + 1))]
            for table in tables:
                changes = (cached.changes(table.shape.relation) for cached in entries)
                self._tables.apply(connection, table, [part for part in changes if part is not None])
        connection.commit()
        return target

    def _discard(self, connection: duckdb.DuckDBPyConnection, tables: Iterable[Table]) -> None:
        with contextlib.suppress(duckdb.Error):  # if no transaction is open
            connection.rollback()
        for table in tables:
            self._tables.drop(connection, table)

    # --- following

    def _follow(self) -> None:
        """Follows the log until `stop`; the body of the follower thread."""
        while not self._stopping.is_set():
            self._wake.wait()
            try:
                while not self._stopping.is_set() and self._step():
                    pass
                self.figures.reached_end()
                if clocks.monotonic() > self._look_again:
                    self._look_again = clocks.monotonic() + UNUSED_LOOK
                    self._drop_unused()
            except Gone:
                log.warning("entries of the log are gone that were not read yet; beginning again at the newest")
                self._begin_again()
            except Exception:
                log.exception("the log cannot be followed; trying again")
                self._stopping.wait(RETRY)

    def _step(self) -> bool:
        """Applies new log entries, up to a limit; returns whether there were any."""
        began_ns = clocks.time_ns()
        batch = list(map(self._entries.add, islice(self._lake.log.after(self.state.n), ENTRIES_AT_ONCE)))
        if not batch:
            return False
        with self._lock:
            self.state = state = self._move(batch)
            changed = frozenset[int]().union(*(cached.relations for cached in batch))
            self._copies.begin(m for m in set(map(self._mirrored.get, changed)) if m is not None and m.moving)
        self.figures.shown((cached.header for cached in batch), began_ns)
        self._advanced(state)
        self._wake.seen(state.n)
        return True

    def _apply_deferred(self, relations: Collection[int] | None) -> None:
        """Applies the deferred changes of relations, and sets the clock to the state."""
        with self._lock:
            with self._transaction():
                lacking = self.deferral.lacking(relations)
                for relation in lacking.keys() - {CLOCK}:
                    self._tables.apply(self._writer, self._mirrored[relation].tables[relation], lacking[relation])
                lists = self._set_clock(self._writer, self.state)
            self._clock_lists = lists
            self.deferral.applied((*lacking, CLOCK))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """Provides a transaction that changes mirrors. After one that has failed, the next one drops all mirrors first."""
        self._drop_outdated()
        self._are_outdated = True
        with transaction(self._writer):
            yield
        self._are_outdated = False

    def _move(self, batch: list[CachedEntry]) -> State:
        """Applies entries to all mirrors in one transaction; returns the new state."""
        catalog, catalog_n = self.state.catalog, self.state.catalog_n
        header, anew = batch[-1].header, frozenset[int]()
        waiting = dict[int, list[pa.Table]]()  # by relation, its changes
        with self._transaction():
            tables = {relation: table for m in self._mirrored.values() if m.moving for relation, table in m.tables.items()}
            for cached in batch:
                if cached.header.catalog is not None:
                    catalog, catalog_n = catalog.apply(cached.header.catalog), cached.header.n
                    anew |= begun(cached.header.catalog)
                    for entry in [m for m in self._mirrored.values() if m.moving and m.has_changed_form(catalog)]:
                        tables.pop(entry.shape.relation, None)  # later changes may have other columns; dropped below
                for relation in cached.relations:
                    self._changed[relation] = cached.header.time
                    if relation in tables:
                        waiting.setdefault(relation, []).append(self._counted(relation, cached))
            due = self.deferral.due({relation: waiting[relation] for relation in waiting.keys() & tables.keys()}, self._errors_of)
            for relation in due.keys() - {CLOCK}:
                self._tables.apply(self._writer, tables[relation], due[relation])
            ended = {m for m in self._mirrored.values() if m.moving and (m.item.id in anew or m.has_changed_form(catalog))}
            self._drop_tables(ended)
            state, lists = State(header.n, header.time, catalog, catalog_n, self._failing(ended), header.inbox), self._clock_lists
            if CLOCK in due:
                lists = self._set_clock(self._writer, state, ended)
            self._catalogs.keep(state)  # before the new clock becomes visible
        self._clock_lists = lists
        self.deferral.applied(due)
        self._dropped(ended)
        for id in {id for cached in batch if cached.header.catalog is not None for id in cached.header.catalog.drop}:
            self._changed.pop(id, None)
            self.figures.dropped(id)
        return state

    def _counted(self, relation: int, cached: CachedEntry) -> pa.Table:
        """Returns the changes of a relation, which are counted."""
        changes = cached.changes(relation)
        assert changes is not None
        self.figures.applied(relation, changes.num_rows, cached.bytes_of(relation))
        if relation in self._totals:
            self._totals[relation] += pc.sum(changes.column(WEIGHT)).as_py() or 0
        return changes

    def _failing(self, ended: Collection[Mirrored] = ()) -> frozenset[int]:
        dropped = {entry.item.errors for entry in ended}
        return frozenset(self._errors_of[r] for r, total in self._totals.items() if total > 0 and r not in dropped)

    def _set_clock(self, connection: duckdb.DuckDBPyConnection, state: State, ended: Collection[Mirrored] = ()) -> list[list[int]]:
        """Sets the clock to a state, and returns its lists, which are not known before the commit if they change.

        `ended`: mirrors that the transaction drops.
        """
        lists = [sorted(self.moving(ended)), sorted(self._failing(ended))]
        if changed := lists != self._clock_lists:
            self._clock_lists = None
        clock.set_clock(connection, state, lists if changed else None)
        return lists

    # --- forgetting

    def _drop_tables(self, entries: Iterable[Mirrored]) -> None:
        for entry in entries:
            for table in entry.tables.values():
                self._tables.drop(self._writer, table)

    def _dropped(self, entries: Collection[Mirrored]) -> None:
        """Removes mirrors whose tables were dropped."""
        for entry in entries:
            if entry.item.errors:
                self._totals.pop(entry.item.errors, None)
                self._errors_of.pop(entry.item.errors, None)
            entry.moving = False
        self._mirrored = {id: entry for id, entry in self._mirrored.items() if entry not in entries}
        self.deferral.forget(relation for entry in entries for relation in entry.tables)

    def _drop_unused(self) -> None:
        """Drops mirrors that were not used for UNUSED_AFTER seconds."""
        limit = clocks.monotonic() - UNUSED_AFTER
        unused = {m for m in list(self._mirrored.values()) if m.moving and m.used < limit}
        if unused:
            with self._lock:
                self._forget(unused)

    def _begin_again(self) -> None:
        """Drops all mirrors and continues at the newest entry, after entries have been removed."""
        newest = self._lake.log.newest()
        assert newest is not None
        catalog = self._lake.catalog_at(newest.n)
        with self._lock:
            self._are_outdated = True
            self._drop_outdated()
            self._changed = dict.fromkeys(catalog.items, newest.time)
            self._entries.note(newest)
            self.state = State(newest.n, newest.time, catalog, newest.catalog_version, inbox=newest.inbox)
            self._catalogs.keep(self.state)
            self._set_clock(self._writer, self.state)
        self.figures.newest = newest
        self._advanced(self.state)

    def _drop_outdated(self) -> None:
        """Drops all mirrors if a transaction has failed, because the counts of their tables may be wrong. The next use fills them."""
        if self._are_outdated:
            self._forget({m for m in self._mirrored.values() if m.moving})
            self._are_outdated = False

    def _forget(self, entries: Collection[Mirrored]) -> None:
        """Drops mirrors. If that fails, all of them remain."""
        with transaction(self._writer):
            self._drop_tables(entries)
            lists = self._set_clock(self._writer, self.state, entries)
        self._clock_lists = lists
        self._dropped(entries)
