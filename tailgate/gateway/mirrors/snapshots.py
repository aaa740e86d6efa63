"""Snapshots: one time for several statements, as a DuckDB transaction.

DuckDB starts a transaction at its first access, so a snapshot first reads the clock; this fixes its
time. A relation that was not mirrored then, and any relation at a past time, is copied into a
temporary table of the connection, which hides a mirror of the same name.
"""

from __future__ import annotations

import contextlib
import threading
import time as clocks
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import duckdb

from tailgate.gateway.mirrors import mirror, overlay
from tailgate.gateway.mirrors.incoming import Incomings
from tailgate.gateway.resources.concurrency import Quota, Requester
from tailgate.lake import errors
from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.catalog.names import quoted
from tailgate.lake.catalog.roles import SCHEMA_ID
from tailgate.lake.catalog.schemas import is_logged, is_system
from tailgate.lake.folder import Lake
from tailgate.lake.readers import reading
from tailgate.lake.types import WEIGHT, arrow_schema
from tailgate.lake.uncommitted import is_local

FILLING = "55000"  # SQLSTATE of a view that is being filled again; its message needs no hint
OPEN_AT_MOST = 200  # open transactions: each keeps the row versions of its time in memory
OPEN_EACH = 50  # of one role that is not a superuser
OPEN_RESERVE = 20  # of all, for superusers only
AGE_AT_MOST = 600.0  # seconds; a block open for that long at 10 ticks/s of 500 rows keeps 3 million row versions


class Snapshot:
    """All relations at `time`, for one statement at a time.

    `mirrored`: the relations whose mirrors have the rows of that time; None for all that the clock names. Others are copied from the lake.
    `first`: of these, so many rows suffice for the only statement, any of them.
    `close` may be called from any thread and more than once.
    """

    def __init__(
        self,
        lake: Lake,
        cursor: duckdb.DuckDBPyConnection,
        catalog: Callable[[int], Catalog],
        at: int | None = None,
        mirrored: Collection[int] | None = None,
        first: int | None = None,
    ) -> None:
        self._lake, self._cursor, self._first = lake, cursor, first
        self._incomings = Incomings(cursor)
        self._busy = threading.Lock()
        self._own: dict[int, mirror.Shape] = {}
        self._written: Mapping[int, overlay.UncommittedChanges] = {}  # by relation: net changes of the transaction
        self._laid: dict[int, overlay.UncommittedChanges] = {}  # by relation: the changes in the current overlay
        self._aborted = False
        self._closing = False
        self.closed = False
        self.opened = clocks.monotonic()
        self.past = at is not None
        cursor.begin()
        clock = cursor.execute("SELECT n, t, relations, failing, inbox FROM clock").fetchone()
        assert clock is not None
        n, time, relations, failing, inbox = clock
        self.inbox: int = inbox
        self.time: int = time if at is None else at
        self.catalog = catalog(n)
        self.shared = frozenset(r for r in relations if mirrored is None or r in mirrored) if at is None else frozenset()
        self._failing = frozenset(failing)

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @contextlib.contextmanager
    def use(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Provides the connection, to one statement at a time. Raises 72000 once closed."""
        try:
            with self._busy:
                if self.closed:
                    raise errors.SnapshotTooOld("snapshot too old", hint=f"A transaction may stay open for {AGE_AT_MOST:.0f} seconds.")
                if self._aborted:
                    self._again()
                try:
                    yield self._cursor
                except BaseException:
                    self._aborted = True
                    raise
        finally:
            if self._closing:
                self.close()

    def _again(self) -> None:
        """Starts a new DuckDB transaction after an error, so that ROLLBACK TO can continue.

        From here on all rows are read from the lake at the snapshot's time.
        """
        with contextlib.suppress(duckdb.Error):
            self._cursor.rollback()
        self._cursor.begin()
        self._incomings = Incomings(self._cursor)  # the earlier names have left with the transaction
        self.shared, self._own, self._laid, self._aborted = frozenset(), {}, {}, False

    def bring(self, items: Iterable[Item]) -> None:
        """Makes the items readable; call within `use`. Raises the error of a view that has one."""
        for item in items:
            shape = mirror.shape(item)
            if is_system(item.id):
                self._show(shape)
                continue
            if self._own.get(item.id, shape) != shape:
                self._discard(item.id)
            if is_local(item.id) or not is_logged(item.id):
                self._make(shape, "")
            elif item.id in self.shared and len(item.columns) > len(self.catalog[item.id].columns):
                self._widen(shape, len(self.catalog[item.id].columns))
            elif item.id not in self.shared:
                self._copy(shape, self._first)
                if item.errors:
                    self._copy(mirror.errors_shape(item))
            self._check(item)
            self._lay(item.id)

    def write(self, written: Mapping[int, overlay.UncommittedChanges]) -> None:
        """Sets the transaction's uncommitted changes, and the rows of relations that are not in the log; later statements see them."""
        self._written = written

    def _show(self, shape: mirror.Shape) -> None:
        """Makes the rows of a relation of the schema tailgate readable: those that the statement was given, or none."""
        rows, laid = self._written.get(shape.relation), self._laid.pop(shape.relation, None)
        if rows is None or rows is not laid:
            none = arrow_schema(shape.columns).empty_table()
            overlay.show(self._cursor, shape, none if rows is None else rows.changes)
        if rows is not None:
            self._laid[shape.relation] = rows

    def _lay(self, relation: int) -> None:
        """Updates the overlay of a relation to the transaction's writes."""
        writes, shown = self._written.get(relation), self._laid.get(relation)
        if writes is shown:
            return
        if writes is None:
            assert shown is not None
            overlay.lift(self._cursor, mirror.shape(shown.item))
            del self._laid[relation]
            return
        shape = mirror.shape(writes.item)
        if shown is not None and shown.generation == writes.generation:
            overlay.append(self._incomings.of(shape.relation), shape, writes.changes.slice(shown.changes.num_rows))
        else:
            overlay.lay(self._cursor, shape, writes.changes, copied=relation in self._own)
        self._laid[relation] = writes

    def _copy(self, shape: mirror.Shape, first: int | None = None) -> None:
        """Copies a relation, once. `first`: so many rows suffice."""
        if shape.relation in self._own:
            return
        self._own[shape.relation] = shape
        rows = reading.snapshot(self._lake, shape.relation, self.time, first)
        mirror.create(self._cursor, shape, temporary=True)
        mirror.fill(self._incomings.of(shape.relation), shape, rows)

    def _make(self, shape: mirror.Shape, rows: str) -> None:
        """Makes a table for the transaction alone, once. `rows`: a query of its rows, or ''."""
        if shape.relation in self._own:
            return
        if (laid := self._laid.pop(shape.relation, None)) is not None:
            overlay.lift(self._cursor, mirror.shape(laid.item))
        self._own[shape.relation] = shape
        mirror.create(self._cursor, shape, temporary=True)
        if rows:
            self._cursor.execute(f"INSERT INTO temp.{shape.table} {rows}")

    def _widen(self, shape: mirror.Shape, width: int) -> None:
        """Copies a mirror, which has the first columns of a table that the transaction has altered. The others are NULL."""
        nulls = [f"CAST(NULL AS {field.type.duckdb})" for field in shape.columns[width:]]
        weight = () if shape.key is not None else (WEIGHT,)
        self._make(shape, f"SELECT {', '.join((*shape.names[:width], *nulls, *weight))} FROM {overlay.BASE}{shape.table}")

    def _discard(self, relation: int) -> None:
        """Removes the transaction's table of a relation."""
        if (laid := self._laid.pop(relation, None)) is not None:
            overlay.lift(self._cursor, mirror.shape(laid.item))
        self._cursor.execute(f"DROP TABLE temp.{self._own.pop(relation).table}")

    def _check(self, item: Item) -> None:
        if item.errors and (item.id in self._failing or item.id in self._own):
            raise_error_of(self._cursor, item)

    def close(self) -> None:
        """Closes the snapshot without waiting: a running statement closes it when it ends."""
        self._closing = True
        if self._busy.acquire(blocking=False):
            try:
                if not self.closed:
                    self.closed = True
                    self._cursor.close()
            finally:
                self._busy.release()

    def interrupt(self) -> None:
        self._cursor.interrupt()


def raise_error_of(cursor: duckdb.DuckDBPyConnection, item: Item) -> None:
    """Raises the most frequent error of a view, if its errors sum above zero."""
    row = cursor.execute(
        f"SELECT c0, c1, sum({WEIGHT}) AS w FROM r{item.errors} GROUP BY ALL HAVING w > 0 ORDER BY w DESC, c1 LIMIT 1"
    ).fetchone()
    if row is not None:
        raise error_of(item, row[0], row[1])


def raise_errors_of(cursor: duckdb.DuckDBPyConnection, items: Iterable[Item], failing: Collection[int]) -> None:
    """Raises the error of the first item that has errors. `failing`: the ids of all such items."""
    if failing:
        for item in items:
            if item.id in failing:
                raise_error_of(cursor, item)


def error_of(item: Item, sqlstate: str, message: str) -> errors.TailgateError:
    statement = f"SHOW ERRORS FROM {quoted(item.name)}" if item.schema == SCHEMA_ID else "SHOW ERRORS"
    hint = f'It comes from rows of {item.kind} "{item.name}" and goes when those rows do: {statement}. '
    hint += "A view created WITH (on_error = 'skip') leaves such rows out."
    return errors.of(sqlstate, message, hint=None if sqlstate == FILLING else hint)


class Snapshots:
    """The open snapshots of a process, with limits on their number, in total and per role, and age."""

    def __init__(self) -> None:
        self._open: dict[Snapshot, Requester] = {}
        self._quota = Quota("transactions are open", OPEN_AT_MOST, OPEN_EACH, OPEN_RESERVE)

    def check(self, requester: Requester) -> None:
        """Raises 53400 if no more snapshots may be opened."""
        self.expire()
        self._quota.check(requester)

    def add(self, snapshot: Snapshot, requester: Requester) -> Snapshot:
        self._open[snapshot] = requester
        self._quota.opened(requester)
        return snapshot

    def expire(self) -> None:
        limit = clocks.monotonic() - AGE_AT_MOST
        for snapshot in [s for s in self._open if s.closed or s.opened < limit]:
            snapshot.close()
            self._quota.closed(self._open.pop(snapshot))

    def close(self) -> None:
        for snapshot in self._open:
            snapshot.close()
        self._open.clear()
