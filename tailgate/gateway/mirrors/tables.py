"""The tables of the mirrors: applies changes in the cheapest way, and bounds what DuckDB keeps of old rows.

    keyed, few rows     UPDATE replaced rows in place, DELETE removed ones, INSERT added ones: 2.3 ms for 200 changed of 1,000 rows
    otherwise           DELETE and INSERT (`mirror.apply`): 3.9 ms for the same, but faster if few rows of a large table change
    with an index       the same, without a scan (`mirror.apply_by_index`): from ROWS_INDEXED_MIN rows on

For small tables DuckDB runs statements as they are written, every row with every change: its optimizer takes longer than the rest
of a statement. An UPDATE of 12 of 1,000 rows takes 0.8 ms of CPU in place of 1.5.

DuckDB keeps the texts of updated rows, and removed rows of groups that are partly in use, for as long
as the table exists. A table is therefore copied after as many changes as it has rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from tailgate.gateway.mirrors import mirror
from tailgate.gateway.mirrors.mirror import Shape
from tailgate.lake.types import WEIGHT

ROWS_IN_PLACE_MAX = 200_000  # of a table that is updated in place, unless CHANGED_SHARE of it changes
CHANGED_SHARE = 0.01  # DuckDB updates blocks of 2,048 rows: with more changes, most of a block's work is useful
ROWS_INDEXED_MIN = 1_000_000  # from which on a table has an index of its key: an index of so many rows takes 1 s to create
PAIRS_MAX = 100_000  # of a row and a change in a statement without the optimizer, which would join them by their hashes
CHANGES_BEFORE_COPY_MIN = 100_000  # about 5 MB of old rows


@dataclass(slots=True)
class _Figures:
    rows: int
    indexed: bool
    changes: int = 0  # since the table was filled or copied


class Tables:
    """The tables of the mirrors that a process updates. Its caller ensures that one thread at a time changes a table.

    `follower`: the connection that applies ticks.
    """

    def __init__(self, follower: duckdb.DuckDBPyConnection) -> None:
        self._follower, self._optimized = follower, True
        self._figures: dict[int, _Figures] = {}

    def fill(self, connection: duckdb.DuckDBPyConnection, shape: Shape, rows: pa.Table) -> None:
        """Creates the table of a relation with these rows, which have weights above zero. A large one has an index of its key."""
        indexed = _indexed(shape, rows.num_rows)
        mirror.create(connection, shape, indexed=indexed)
        mirror.fill(connection, shape, rows, indexed=indexed)
        if indexed:
            mirror.create_index(connection, shape)
        self._figures[shape.relation] = _Figures(rows.num_rows, indexed)

    def dropped(self, shape: Shape) -> None:
        """Forgets a table."""
        self._figures.pop(shape.relation, None)

    def apply(self, connection: duckdb.DuckDBPyConnection, shape: Shape, changes: pa.Table) -> None:
        """Applies net changes: each row occurs at most once, with its weight."""
        if changes.num_rows == 0:
            return
        figures = self._figures[shape.relation]
        weights = changes.column(WEIGHT).to_numpy()
        removals = int(np.count_nonzero(weights < 0))
        if connection is self._follower:
            self._optimize(figures.rows * len(weights) > PAIRS_MAX)
        more = len(weights) - 2 * removals
        if figures.indexed:
            mirror.apply_by_index(connection, shape, changes, figures.rows)
        elif shape.key is None or not removals or removals == len(weights) or not _in_place(figures.rows, removals):
            more = mirror.apply(connection, shape, changes)  # of a mirror without a key, copies of a row are one line
        else:
            mirror.update(connection, shape, changes, removals)
        figures.rows += more
        figures.changes += removals
        indexed = figures.indexed or _indexed(shape, figures.rows)
        if indexed != figures.indexed or figures.changes > max(figures.rows, CHANGES_BEFORE_COPY_MIN):
            # a table with updates that readers may see cannot get an index
            mirror.copy(connection, shape, indexed=indexed)
            self._figures[shape.relation] = _Figures(figures.rows, indexed)

    def _optimize(self, optimized: bool) -> None:
        """Turns the optimizer on or off for later statements of the follower."""
        if optimized != self._optimized:
            self._follower.execute(f"PRAGMA {'enable' if optimized else 'disable'}_optimizer")
            self._optimized = optimized


def _indexed(shape: Shape, rows: int) -> bool:
    """Returns whether a table with this number of rows has an index."""
    return rows >= ROWS_INDEXED_MIN and bool(shape.key)


def _in_place(rows: int, changed: int) -> bool:
    return rows <= ROWS_IN_PLACE_MAX or changed >= rows * CHANGED_SHARE
