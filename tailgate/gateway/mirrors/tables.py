"""The tables of the mirrors: applies changes in the cheapest way, and bounds what DuckDB keeps of old rows.

    keyed, few rows     UPDATE replaced rows in place, DELETE removed ones, INSERT added ones: 2.3 ms for 200 changed of 1,000 rows
    otherwise           DELETE and INSERT (`mirror.apply`): 3.9 ms for the same, but faster if few rows of a large table change

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
CHANGES_BEFORE_COPY_MIN = 100_000  # about 5 MB of old rows


@dataclass(slots=True)
class _Figures:
    rows: int
    changes: int = 0  # since the table was filled or copied


class Tables:
    """The tables of the mirrors that a process updates. Its caller ensures that one thread at a time changes a table."""

    def __init__(self) -> None:
        self._figures: dict[int, _Figures] = {}

    def filled(self, shape: Shape, rows: int) -> None:
        """Records that a table was filled with this number of rows."""
        self._figures[shape.relation] = _Figures(rows)

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
        if shape.key is None or not removals or removals == len(weights) or not _in_place(figures.rows, removals):
            mirror.apply(connection, shape, changes)
        else:
            mirror.update(connection, shape, changes, removals)
        figures.rows += len(weights) - 2 * removals
        figures.changes += removals
        if figures.changes > max(figures.rows, CHANGES_BEFORE_COPY_MIN):
            mirror.copy(connection, shape)
            figures.changes = 0


def _in_place(rows: int, changed: int) -> bool:
    return rows <= ROWS_IN_PLACE_MAX or changed >= rows * CHANGED_SHARE
