"""The tables of the mirrors: applies changes in the cheapest way, and bounds what DuckDB keeps of old rows.

    keyed, few rows     UPDATE replaced rows in place, DELETE removed ones, INSERT added ones: 2.3 ms for 200 changed of 1,000 rows
    otherwise           DELETE and INSERT (`mirror.apply`): 3.9 ms for the same, but faster if few rows of a large table change
    with an index       the same, without a scan (`mirror.apply_by_index`): from ROWS_INDEXED_MIN rows on

For small tables DuckDB runs statements as they are written, every row with every change: its optimizer takes longer than the rest
of a statement. The connection that applies ticks keeps them prepared, so DuckDB plans them once.

DuckDB keeps the texts of updated rows, and removed rows of groups that are partly in use, for as long
as the table exists. A table is therefore replaced by a copy after as many changes as it has rows:

    copy ──► build_index ──► apply: the changes since the copy ──► exchange

A table without an index has the name of the mirror. DuckDB renames no table with an index, so one that has an index has a name
that no other has, and a view has the name of the mirror.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import duckdb
import numpy as np
import pyarrow as pa

from tailgate.gateway.mirrors import mirror
from tailgate.gateway.mirrors.incoming import Incoming, Incomings
from tailgate.gateway.mirrors.mirror import Shape
from tailgate.lake.tables.weights import total
from tailgate.lake.types import WEIGHT, arrow_schema

ROWS_IN_PLACE_MAX = 200_000  # of a table that is updated in place, unless CHANGED_SHARE of it changes
CHANGED_SHARE = 0.01  # DuckDB updates blocks of 2,048 rows: with more changes, most of a block's work is useful
ROWS_INDEXED_MIN = 1_000_000  # from which on a table has an index of its key: an index of so many rows takes 1 s to create
PAIRS_MAX = 100_000  # of a row and a change in a statement without the optimizer, which would join them by their hashes
CHANGES_BEFORE_COPY_MIN = 100_000  # about 5 MB of old rows


@dataclass(slots=True, eq=False)
class Table:
    """A table of a mirror. `shape`: of its rows, with the name of the table. `changes`: since it was filled or copied, or a copy failed."""

    shape: Shape
    rows: int
    indexed: bool
    temporary: bool = False
    changes: int = 0
    is_being_copied: bool = False
    copy_failed: bool = False

    @property
    def finds_keys(self) -> bool:
        """Returns whether queries of one row by the key use the index. They do not have the hash of a key."""
        return self.indexed and not mirror.is_hashed(self.shape)

    @property
    def needs_index(self) -> bool:
        """Returns whether a copy of the table has an index."""
        return self.indexed or (not self.temporary and _indexed(self.shape, self.rows))

    @property
    def is_outgrown(self) -> bool:
        """Returns whether the table must be replaced by a copy, because it has many old rows or needs an index.

        After a copy has failed, the next one waits for as many changes: there may be no memory for it.
        """
        if self.is_being_copied:
            return False
        lacks_index = self.needs_index != self.indexed and not self.copy_failed
        return lacks_index or self.changes > max(self.rows, CHANGES_BEFORE_COPY_MIN)


class Tables:
    """The tables of the mirrors that a process updates. Its caller ensures that one thread at a time changes a table.

    `connection`: the one that applies most changes. It keeps the streams of their rows. `exclusive`: it does nothing else.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, exclusive: bool = True) -> None:
        self._connection, self._exclusive, self._optimized = connection, exclusive, True
        self._numbers = itertools.count(1)
        self._incomings = Incomings(connection)
        self._dropped: deque[Table] = deque()  # tables whose streams are not needed any more

    def fill(self, connection: duckdb.DuckDBPyConnection, shape: Shape, rows: pa.Table, *, temporary: bool = False) -> Table:
        """Creates the table of a relation with these rows, which have weights above zero. A large one has an index of its key."""
        indexed = not temporary and _indexed(shape, rows.num_rows)
        table = Table(self._numbered(shape) if indexed else shape, rows.num_rows, indexed, temporary)
        mirror.create(connection, table.shape, temporary=temporary, indexed=indexed)
        with Incoming(connection) as incoming:
            mirror.fill(incoming, table.shape, rows, indexed=indexed)
        self.build_index(connection, table)
        if indexed:
            mirror.show(connection, table.shape)
        return table

    def drop(self, connection: duckdb.DuckDBPyConnection, table: Table) -> None:
        """Removes a table of a mirror, and the mirror's name."""
        self._end_stream(table)
        if table.indexed:
            mirror.hide(connection, table.shape)
        mirror.drop(connection, table.shape)

    def apply(self, connection: duckdb.DuckDBPyConnection, table: Table, parts: Sequence[pa.Table]) -> None:
        """Applies the changes of successive ticks at once. In each of them a row occurs at most once, with its weight."""
        shape = table.shape
        changes = parts[0] if len(parts) == 1 else total(parts, arrow_schema(shape.columns, weight=True))
        if changes.num_rows == 0:
            return
        weights = changes.column(WEIGHT).to_numpy()
        removals = int(np.count_nonzero(weights < 0))
        more = len(weights) - 2 * removals
        with self._incoming(connection, table, optimized=table.rows * len(weights) > PAIRS_MAX) as incoming:
            if table.indexed:
                mirror.apply_by_index(incoming, shape, changes, table.rows)
            elif shape.key is None or not removals or removals == len(weights) or not _in_place(table.rows, removals):
                more = mirror.apply(incoming, shape, changes)  # of a mirror without a key, copies of a row are one line
            else:
                mirror.update(incoming, shape, changes, removals)
        table.rows += more
        table.changes += removals

    def _incoming(self, connection: duckdb.DuckDBPyConnection, table: Table, *, optimized: bool) -> AbstractContextManager[Incoming]:
        """Provides the stream for the statements that change a table.

        Statements are prepared without the optimizer: with statistics of the present rows, it may leave out what later rows need.
        """
        if connection is not self._connection:
            return Incoming(connection)
        if self._exclusive and optimized != self._optimized:
            connection.execute(f"PRAGMA {'enable' if optimized else 'disable'}_optimizer")
            self._optimized = optimized
        while self._dropped:
            self._incomings.forget(self._dropped.popleft())
        incoming = self._incomings.of(table)
        incoming.prepares = not self._optimized and not table.indexed
        return nullcontext(incoming)

    def copy(self, connection: duckdb.DuckDBPyConnection, table: Table) -> Table:
        """Returns a copy of a table as the connection's transaction reads it, under another name and without its index."""
        indexed = table.needs_index
        shape = self._numbered(table.shape)
        rows = mirror.copy(connection, table.shape, shape, temporary=table.temporary, indexed=indexed)
        return Table(shape, rows, indexed, table.temporary)

    def build_index(self, connection: duckdb.DuckDBPyConnection, table: Table) -> None:
        """Creates the index of a new table that needs one. No transaction may have changed the table."""
        if table.indexed:
            mirror.create_index(connection, table.shape)

    def exchange(self, connection: duckdb.DuckDBPyConnection, table: Table, copied: Table) -> Table:
        """Replaces a table by its copy, which then is what queries read. Returns the copy with its name from then on."""
        self._end_stream(table)
        if not copied.indexed:
            mirror.drop(connection, table.shape)
            return replace(copied, shape=mirror.rename(connection, copied.shape))
        if not table.indexed:  # it has the name of the mirror
            mirror.drop(connection, table.shape)
        mirror.show(connection, copied.shape)
        if table.indexed:
            mirror.drop(connection, table.shape)
        return copied

    def compact(self, connection: duckdb.DuckDBPyConnection, table: Table) -> Table:
        """Returns the table, or the copy that replaces it, for a table that only this connection uses."""
        if not table.is_outgrown:
            return table
        copied = self.copy(connection, table)
        self.build_index(connection, copied)
        return self.exchange(connection, table, copied)

    def _end_stream(self, table: Table) -> None:
        """Lets the connection that applies changes forget the stream of a table, if it has one."""
        if table in self._incomings:
            self._dropped.append(table)

    def _numbered(self, shape: Shape) -> Shape:
        return replace(shape, number=next(self._numbers))


def _indexed(shape: Shape, rows: int) -> bool:
    """Returns whether a table with this number of rows has an index."""
    return rows >= ROWS_INDEXED_MIN and bool(shape.key)


def _in_place(rows: int, changed: int) -> bool:
    return rows <= ROWS_IN_PLACE_MAX or changed >= rows * CHANGED_SHARE
