"""The columns that ksqlDB adds to the rows of a stream or a windowed table. Other tables have ROWTIME only."""

from __future__ import annotations

from tailgate.sql.ksqldb import types

PSEUDO_COLUMNS = {"rowtime": types.BIGINT, "rowpartition": types.INT, "rowoffset": types.BIGINT}
# the numbers of the rows that table functions make of one row, in the order of these rows; of derived streams that have such rows
ROW_NUMBER = "_rownumber"
HIDDEN_COLUMNS = (*PSEUDO_COLUMNS, ROW_NUMBER)  # those of a stream's row are its position
WINDOW_BOUNDS = ("windowstart", "windowend")
