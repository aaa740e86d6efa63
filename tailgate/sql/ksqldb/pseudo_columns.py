"""The columns that ksqlDB adds to the rows of a stream or a declared table. Other tables have ROWTIME only."""

from __future__ import annotations

from collections.abc import Mapping

from tailgate.sql.ksqldb import types

PSEUDO_COLUMNS = {"rowtime": types.BIGINT, "rowpartition": types.INT, "rowoffset": types.BIGINT}
# the numbers of the rows that table functions make of one row, in the order of these rows; of derived streams that have such rows
ROW_NUMBER = "_rownumber"
# the tick that read the record, and its place among the records of the tick: texts that sort as the records were processed
ARRIVAL = "_arrival"
HIDDEN_COLUMNS = (*PSEUDO_COLUMNS, ROW_NUMBER, ARRIVAL)  # those of a stream's row are its position
WINDOW_BOUNDS = ("windowstart", "windowend")


def record(position: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the texts of the columns of a position that say where a record is in its topic, and the number of its row."""
    return tuple(position[name] for name in ("rowpartition", "rowoffset", ROW_NUMBER) if name in position)


def order(position: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the texts of the columns of a position that sort rows in the order of all records.

    Streams of earlier versions have no ARRIVAL: their records are sorted by timestamp.
    """
    return (position.get(ARRIVAL) or position["rowtime"], *record(position)) if position else ()
