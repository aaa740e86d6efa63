"""All mirrors of a process, which follow the log together in one DuckDB transaction.

    log ──► follower thread: new entries ──► BEGIN; update every mirror and the clock; COMMIT ──► State ──► callbacks
    first use of a relation ──► fill thread: rows at a time, later entries ──► under the lock: the rest; readable
    table with many old rows ──► fill thread: its copy, later entries ──► under the lock: the rest; in place of the table

The table `clock` has one row: the log entry of the mirrors, the mirrored relations, and the items
with errors at that entry. A reader that opens a transaction and reads the clock therefore sees all
mirrors at one time, without a lock.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time as clocks
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.gateway.mirrors import mirror
from tailgate.gateway.mirrors.entries import CachedEntry, Entries
from tailgate.gateway.mirrors.figures import Figures
from tailgate.gateway.mirrors.mirrored import Mirrored
from tailgate.gateway.mirrors.sandbox import Sandbox
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
CATALOGS_KEPT = 20  # older catalogs, for blocks that began at them
RETRY = 1.0  # seconds until the next try after an error, such as a missing lake folder


@dataclass(frozen=True, slots=True)
class State:
    """The position of the mirrors in the log.

    `failing` has the items whose errors sum above zero, `catalog_n` is the entry that last changed
    the catalog, and `inbox` is the last inbox entry that the mirrors contain.
    """

    n: int
    time: int
    catalog: Catalog
    catalog_n: int
    failing: frozenset[int] = frozenset()
    inbox: int = 0


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
        self._writer = sandbox.cursor()
        self._writer.execute("CREATE TABLE clock (n BIGINT, t BIGINT, relations BIGINT[], failing BIGINT[], inbox BIGINT)")
        self._tables = Tables(self._writer)
        self.figures = Figures()
        self._filling = ThreadPoolExecutor(FILLS_AT_ONCE, "tailgate-fill")
        self._clock_lists: list[list[int]] | None = None  # those of the clock since the last commit, None if they are not known
        self._wake = Wake(lake)
        self._stopping = threading.Event()
        self._look_again = 0.0
        self._thread = threading.Thread(target=self._follow, name="tailgate-mirrors", daemon=True)
        newest = lake.log.newest()
        n, time = (newest.n, newest.time) if newest else (0, 0)
        if newest:
            entries.note(newest)
        self.figures.began, self.figures.newest = n, newest
        inbox = newest.inbox if newest else 0
        self.state = State(n, time, lake.catalog_at(n) if n else Catalog(), newest.catalog_version if newest else 0, inbox=inbox)
        self._catalogs = [(self.state.catalog_n, self.state.catalog)]  # the newest catalogs by entry
        self._writer.execute("INSERT INTO clock VALUES ($1, $2, [], [], $3)", [n, time, inbox])

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
        return next((catalog for first, catalog in reversed(self._catalogs) if first <= n), self.state.catalog)

    def _keep(self, first: int, catalog: Catalog) -> None:
        self._catalogs = [*self._catalogs[-CATALOGS_KEPT:], (first, catalog)]

    def table_of(self, relation: int) -> Table | None:
        """Returns the table with the rows of a relation, or None if it is not mirrored."""
        entry = self._mirrored.get(relation)
        return None if entry is None else entry.tables.get(relation)

    def moving(self) -> frozenset[int]:
        return frozenset(r for r, m in self._mirrored.items() if m.moving)

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

    def _remove(self, entry: Mirrored) -> None:
        for id in [id for id, other in self._mirrored.items() if other is entry]:
            del self._mirrored[id]

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
            while self.state.n - n > CATCH_UP:
                n = self._catch_up(connection, tables, n)
            with self._lock:
                n = self._catch_up(connection, tables, n)
                if entry.item.id not in self.state.catalog.items:
                    raise UndefinedTable(f'relation "{entry.item.name}" does not exist')
                if entry.has_changed_form(self.state.catalog):  # its columns have changed meanwhile
                    self._discard(connection, tables)
                    entry.item = self.state.catalog[entry.item.id]
                    entry.shape = mirror.shape(entry.item)
                    self._filling.submit(self._fill, entry)
                    return
                if entry.item.errors:
                    row = connection.execute(f"SELECT coalesce(sum({WEIGHT}), 0) FROM r{entry.item.errors}").fetchone()
                    assert row is not None
                    self._errors_of[entry.item.errors] = entry.item.id
                    self._totals[entry.item.errors] = int(row[0])
                self.state = replace(self.state, failing=self._failing())  # before the view becomes readable
                entry.tables = {table.shape.relation: table for table in tables}
                entry.moving = True
                self._set_clock(connection, self.state)
            entry.ready.set_result(None)
        except BaseException as error:  # noqa: BLE001  # raised to the callers that wait for `ready`
            self._discard(connection, tables)
            with self._lock:
                self._remove(entry)
            entry.ready.set_exception(error)
        finally:
            connection.close()

    def _catch_up(self, connection: duckdb.DuckDBPyConnection, tables: Sequence[Table], n: int) -> int:
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

    # --- copies

    def _begin_copies(self, relations: Iterable[int]) -> None:
        """Starts to copy those tables of changed relations that need it. The holder of the lock calls it."""
        for entry in [m for m in set(map(self._mirrored.get, relations)) if m is not None and m.moving]:
            for table in entry.tables.values():
                if table.is_outgrown:
                    table.is_being_copied = True
                    self._filling.submit(self._copy, entry, table)

    def _copy(self, entry: Mirrored, table: Table) -> None:
        """Replaces a table by a copy, on a fill thread. The follower thread updates the table until then."""
        connection, copied = self._sandbox.cursor(), None
        try:
            connection.begin()
            ((n,),) = connection.execute("SELECT n FROM clock").fetchall()  # the entry of the rows that the transaction reads
            copied = self._tables.copy(connection, table)
            connection.commit()
            self._tables.build_index(connection, copied)
            while self.state.n - n > CATCH_UP:
                n = self._catch_up(connection, [copied], n)
            n = self._catch_up(connection, [copied], n)
            with self._lock:
                if entry.moving and entry.tables.get(table.shape.relation) is table:
                    self._catch_up(connection, [copied], n)
                    connection.begin()
                    exchanged = self._tables.exchange(connection, table, copied)
                    connection.commit()
                    entry.tables[table.shape.relation], copied = exchanged, None
        except Exception:
            if entry.moving:  # a mirror that was dropped meanwhile needs no copy
                log.exception("the table of a mirror could not be copied; it keeps the memory of its old rows")
            table.changes, table.is_being_copied, table.copy_failed = 0, False, True
        finally:
            with contextlib.suppress(duckdb.Error):  # if no transaction is open
                connection.rollback()
            if copied is not None:
                mirror.drop(connection, copied.shape)
            connection.close()

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
            state = self._move(batch)
            self.state = state
            self._begin_copies(frozenset[int]().union(*(cached.relations for cached in batch)))
        self.figures.shown((cached.header for cached in batch), began_ns)
        self._advanced(state)
        self._wake.seen(state.n)
        return True

    def _move(self, batch: list[CachedEntry]) -> State:
        """Applies entries to all mirrors in one transaction; returns the new state."""
        catalog, catalog_n = self.state.catalog, self.state.catalog_n
        header, anew = batch[-1].header, frozenset[int]()
        tables = {relation: table for m in self._mirrored.values() if m.moving for relation, table in m.tables.items()}
        ended, waiting = list[Mirrored](), dict[int, list[pa.Table]]()  # `waiting`: by relation, its changes
        self._writer.begin()
        try:
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
            for relation in waiting.keys() & tables.keys():
                self._tables.apply(self._writer, tables[relation], waiting[relation])
            ended += [m for m in self._mirrored.values() if m.moving and (m.item.id in anew or m.has_changed_form(catalog))]
            for entry in ended:
                self._drop(entry)
            state = State(header.n, header.time, catalog, catalog_n, self._failing(), header.inbox)
            lists = self._set_clock(self._writer, state)
            if catalog_n != self._catalogs[-1][0]:  # before the new clock becomes visible
                self._keep(catalog_n, catalog)
            self._writer.commit()
            self._clock_lists = lists
        except BaseException:
            with contextlib.suppress(duckdb.Error):  # a COMMIT that fails has ended the transaction
                self._writer.rollback()
            self._forget_all(ended)
            raise
        return state

    def _counted(self, relation: int, cached: CachedEntry) -> pa.Table:
        """Returns the changes of a relation, which are counted."""
        changes = cached.changes(relation)
        assert changes is not None
        self.figures.applied(relation, changes)
        if relation in self._totals:
            self._totals[relation] += pc.sum(changes.column(WEIGHT)).as_py() or 0
        return changes

    def _failing(self) -> frozenset[int]:
        return frozenset(self._errors_of[r] for r, total in self._totals.items() if total > 0)

    def _set_clock(self, connection: duckdb.DuckDBPyConnection, state: State) -> list[list[int]]:
        """Sets the clock to a state, and returns its lists, which are not known before the commit if they change."""
        lists = [sorted(self.moving()), sorted(self._failing())]
        values: list[object] = [state.n, state.time, state.inbox]
        more = ""
        if lists != self._clock_lists:  # to set a list costs more
            self._clock_lists, values, more = None, [*values, *lists], ", relations = $4, failing = $5"
        connection.execute(f"UPDATE clock SET n = $1, t = $2, inbox = $3{more}", values)
        return lists

    # --- forgetting

    def _drop(self, entry: Mirrored) -> None:
        for table in entry.tables.values():
            self._tables.drop(self._writer, table)
        if entry.item.errors:
            self._totals.pop(entry.item.errors, None)
            self._errors_of.pop(entry.item.errors, None)
        entry.moving = False
        self._remove(entry)

    def _drop_unused(self) -> None:
        """Drops mirrors that were not used for UNUSED_AFTER seconds."""
        limit = clocks.monotonic() - UNUSED_AFTER
        unused = [m for m in list(self._mirrored.values()) if m.moving and m.used < limit]
        if unused:
            with self._lock:
                self._forget(unused)

    def _begin_again(self) -> None:
        """Drops all mirrors and continues at the newest entry, after entries have been removed."""
        newest = self._lake.log.newest()
        assert newest is not None
        catalog = self._lake.catalog_at(newest.n)
        with self._lock:
            self._forget_all()
            self._changed = dict.fromkeys(catalog.items, newest.time)
            self._entries.note(newest)
            self.state = State(newest.n, newest.time, catalog, newest.catalog_version, inbox=newest.inbox)
            self._keep(newest.catalog_version, catalog)
            self._set_clock(self._writer, self.state)
        self.figures.newest = newest
        self._advanced(self.state)

    def _forget_all(self, ended: Iterable[Mirrored] = ()) -> None:
        """Drops all mirrors after a failure; the next use fills them again. `ended`: those that the failed transaction has dropped."""
        self._forget({*(m for m in self._mirrored.values() if m.moving), *ended})

    def _forget(self, entries: Iterable[Mirrored]) -> None:
        self._writer.begin()
        for entry in entries:
            self._drop(entry)
        self._set_clock(self._writer, self.state)
        self._writer.commit()
