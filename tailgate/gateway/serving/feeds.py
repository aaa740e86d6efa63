"""Feeds: what each log entry changes in a relation, a linear query, or any other query.

    relation      the relation's section of the entry
    linear query  the query over that section: Δ(σ(π(R))) = σ(π(ΔR))
    other query   a copy of its relations, updated by the entry; the query runs again and its
                  result is compared with the previous one

Results are cached with the entry, so they are computed once for all followers of the same thing.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from typing import Protocol

import duckdb
import pyarrow as pa

from tailgate.gateway.mirrors import mirror
from tailgate.gateway.mirrors.entries import CachedEntry, Entries
from tailgate.gateway.mirrors.mirror import Shape
from tailgate.gateway.mirrors.sandbox import Sandbox
from tailgate.gateway.mirrors.tables import Table, Tables
from tailgate.gateway.resources.budgets import TASK_BUDGET, Charge
from tailgate.gateway.serving.fetching import fetched
from tailgate.gateway.serving.jobs import current
from tailgate.gateway.serving.prepared import ChangeQuery, Prepared
from tailgate.lake.catalog import Item
from tailgate.lake.errors import ProgramLimitExceeded
from tailgate.lake.folder import Lake
from tailgate.lake.readers import reading
from tailgate.lake.tables.weights import formed, total
from tailgate.lake.types import WEIGHT, arrow_schema
from tailgate.sql.render.duckdb import arguments

MAINTAINED_ROWS = 5_000_000  # in all relations of a followed query, which copies them: about 100 bytes a row
RESULT_ROWS = 1_000_000  # in the result of a followed query, which is compared as a whole after each change
FOLLOW_A_VIEW = "Create a materialized view of it and follow that."
RESULT = 0  # relation id of the mirror that holds a query's result; no catalog item has it


class Feed(Protocol):
    """A source of rows and changes. Its methods block and are thread-safe.

    Feeds with equal `key` have equal rows and changes.
    """

    lake: Lake
    key: Hashable
    items: tuple[Item, ...]

    def rows(self, n: int, time: int) -> pa.Table:
        """Returns the rows at `time`, with weights; `n` is the newest entry not later than that."""

    def touched(self, entry: CachedEntry) -> bool:
        """Tells whether an entry may change the rows."""

    def delta(self, entry: CachedEntry) -> pa.Table | None:
        """Returns the net changes of an entry for which `touched` is true."""

    def inline(self, entry: CachedEntry) -> bool:
        """Tells whether `delta` of this entry is cheap enough to run without a thread."""

    def close(self) -> None: ...


class RelationFeed:
    """The feed of a relation."""

    def __init__(self, lake: Lake, item: Item) -> None:
        self.key: Hashable = (item.id, len(item.columns))
        self.items: tuple[Item, ...] = (item,)
        self.lake, self._relation = lake, item.id
        self._schema = arrow_schema(item.columns, weight=True)

    def rows(self, n: int, time: int) -> pa.Table:
        return self._feed_columns(reading.snapshot(self.lake, self._relation, at=time))

    def touched(self, entry: CachedEntry) -> bool:
        return self._relation in entry.relations

    def delta(self, entry: CachedEntry) -> pa.Table | None:
        changes = entry.changes(self._relation)
        return entry.derive(self.key, None if changes is None else self._feed_columns(changes))

    def _feed_columns(self, rows: pa.Table) -> pa.Table:
        """Returns the rows with the columns of the feed; the relation may now have more or fewer."""
        if rows.num_columns == len(self._schema):
            return rows
        return total([rows], self._schema)

    def inline(self, entry: CachedEntry) -> bool:
        return entry.is_quick(self._relation)

    def close(self) -> None:
        pass


class QueryFeed:
    """The common part of the feeds of queries."""

    def __init__(self, lake: Lake, sandbox: Sandbox, prepared: Prepared, values: Sequence[object]) -> None:
        self.key: Hashable = ("query", prepared.sql, prepared.constants, tuple(map(repr, values)))
        self.items = prepared.items
        self.lake, self._sandbox, self._prepared = lake, sandbox, prepared
        self._arguments = arguments(values, prepared.used, prepared.constants)
        self._schema = arrow_schema(prepared.columns, weight=True)
        self._lock = threading.Lock()

    def touched(self, entry: CachedEntry) -> bool:
        return not self._prepared.relations.isdisjoint(entry.relations)

    def inline(self, entry: CachedEntry) -> bool:
        return False

    def close(self) -> None:
        pass

    def _query(self, connection: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
        job = current()
        try:
            job.running(connection)
            return fetched(connection.execute(sql, self._arguments), self._schema)
        finally:
            job.running(None)

    def _counted(self, sql: str, rest: str = "") -> str:
        """Returns SQL for the distinct rows of a query with their counts.

        `rest` is SQL that adds more rows of (columns, weight).
        """
        names = [f"c{i}" for i in range(len(self._prepared.columns))]
        rows = f"SELECT {_listed(names, f'CAST(1 AS BIGINT) AS {WEIGHT}')} FROM ({sql}) AS q({_listed(names or ['nothing'])}) {rest}"
        return summed(rows, names)


def summed(rows: str, names: Sequence[str]) -> str:
    """Returns SQL for distinct rows with the sum of their weights; `names` (maybe none) are the columns."""
    groups = f"GROUP BY {_listed(names)} " if names else ""
    weight = f"CAST(sum({WEIGHT}) AS BIGINT) AS {WEIGHT}"
    return f"SELECT {_listed(names, weight)} FROM ({rows}) {groups}HAVING sum({WEIGHT}) <> 0"


def _listed(names: Sequence[str], *more: str) -> str:
    return ", ".join([*names, *more])


class LinearFeed(QueryFeed):
    """The feed of a query of filters and projections, evaluated on the changes alone."""

    def __init__(self, lake: Lake, sandbox: Sandbox, prepared: Prepared, values: Sequence[object], over: ChangeQuery) -> None:
        super().__init__(lake, sandbox, prepared, values)
        (item,) = prepared.items
        self._shape = mirror.shape(item)
        self._read = arrow_schema(over.read, weight=True)
        names = [f"c{i}" for i in range(len(prepared.columns))]
        self._arguments = arguments(values, over.used, over.constants)
        self._sql = summed(f"SELECT * FROM ({over.sql}) AS q({_listed(names, WEIGHT)})", names)

    def rows(self, n: int, time: int) -> pa.Table:
        return self._over(reading.snapshot(self.lake, self._shape.relation, at=time))

    def delta(self, entry: CachedEntry) -> pa.Table | None:
        changes = entry.changes(self._shape.relation)
        with self._lock:
            cached, table = entry.derived(self.key)
            return table if cached or changes is None else entry.derive(self.key, self._over(changes))

    def _over(self, changes: pa.Table) -> pa.Table:
        """Evaluates the query on rows of its relation."""
        connection = self._sandbox.cursor()
        try:
            if changes.num_columns != len(self._read):  # written before or after the relation got columns
                changes = formed(changes, self._read)
            connection.register(self._shape.table, changes.rename_columns([f"c{i}" for i in range(changes.num_columns)]))
            return self._query(connection, self._sql)
        finally:
            connection.close()


class _Copies:
    """Temporary tables of a connection that ticks update: of the relations of a query, and of its result."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection, self._tables = connection, Tables(connection, exclusive=False)
        self._by_relation: dict[int, Table] = {}

    def fill(self, shape: Shape, rows: pa.Table) -> None:
        self._by_relation[shape.relation] = self._tables.fill(self.connection, shape, rows, temporary=True)

    def apply(self, shape: Shape, changes: pa.Table) -> None:
        table = self._by_relation[shape.relation]
        self._tables.apply(self.connection, table, [changes])
        self._by_relation[shape.relation] = self._tables.compact(self.connection, table)


class QueryResultFeed(QueryFeed):
    """The feed of any query. It only moves forward; `n` is the entry that it is at.

    A follower that starts before `n` needs a separate feed.
    """

    def __init__(self, lake: Lake, sandbox: Sandbox, entries: Entries, prepared: Prepared, values: Sequence[object]) -> None:
        super().__init__(lake, sandbox, prepared, values)
        self._entries = entries
        self._shapes = [mirror.shape(item) for item in prepared.items]
        self._result = Shape(RESULT, prepared.columns, None)
        self._copies: _Copies | None = None
        self._held = Charge(TASK_BUDGET.get().parent or TASK_BUDGET.get())  # charged to the role: other sessions may share the feed
        self.n = 0

    def rows(self, n: int, time: int) -> pa.Table:
        with self._lock:
            return mirror.rows(self._begin(n, time).connection, self._result)

    def delta(self, entry: CachedEntry) -> pa.Table | None:
        with self._lock:
            cached, table = entry.derived(self.key)
            return table if cached else self._reach(entry)

    def close(self) -> None:
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        """Drops all state, which may be half updated; the next use builds it again."""
        if self._copies is not None:
            self._copies.connection.close()
            self._copies = None
        self._held.set(0)

    def _begin(self, n: int, time: int) -> _Copies:
        """Returns the relations and the result at entry `n`. Raises 54000 if they are too large."""
        if self._copies is not None and self.n == n:
            return self._copies
        self._forget()
        copies, rows = _Copies(self._sandbox.cursor()), 0
        self._copies = copies
        try:
            for shape in self._shapes:
                table = reading.snapshot(self.lake, shape.relation, at=time)
                rows += table.num_rows
                if rows > MAINTAINED_ROWS:
                    raise ProgramLimitExceeded(f"a followed query may read at most {MAINTAINED_ROWS} rows", hint=FOLLOW_A_VIEW)
                self._held.add(table.nbytes)
                copies.fill(shape, table)
            result = self._bounded(self._query(copies.connection, self._counted(self._prepared.sql)))
            self._held.add(result.nbytes)
            copies.fill(self._result, result)
            self.n = n
            return copies
        except BaseException:
            self._forget()
            raise

    def _reach(self, entry: CachedEntry) -> pa.Table | None:
        """Advances to an entry and returns its net changes."""
        n = entry.header.n
        if self._copies is None or self.n >= n:
            self._begin(n - 1, self._entries.get(n - 1).header.time)
        for i in range(self.n + 1, n):
            between = self._entries.get(i)
            if self.touched(between):
                self._step(between)
            self.n = i
        return self._step(entry)

    def _step(self, entry: CachedEntry) -> pa.Table | None:
        """Applies the next entry to the relations and returns the change of the result."""
        copies = self._copies
        assert copies is not None
        try:
            for shape in self._shapes:
                if (changes := entry.changes(shape.relation)) is not None:
                    copies.apply(shape, changes)
            before = f"UNION ALL SELECT {_listed(self._result.names, f'-{WEIGHT}')} FROM {self._result.table}"
            delta = self._bounded(self._query(copies.connection, self._counted(self._prepared.sql, before)))
            copies.apply(self._result, delta)
        except BaseException:
            self._forget()
            raise
        self.n = entry.header.n
        return entry.derive(self.key, delta)

    def _bounded(self, table: pa.Table) -> pa.Table:
        if table.num_rows > RESULT_ROWS:
            raise ProgramLimitExceeded(f"a followed query may have at most {RESULT_ROWS} rows", hint=FOLLOW_A_VIEW)
        return table


def feed_of(lake: Lake, sandbox: Sandbox, entries: Entries, source: Item | Prepared, values: Sequence[object]) -> Feed:
    """Returns the simplest kind of feed for a relation or query."""
    if isinstance(source, Item):
        return RelationFeed(lake, source)
    if source.changes is not None:
        return LinearFeed(lake, sandbox, source, values, source.changes)
    return QueryResultFeed(lake, sandbox, entries, source, values)
