"""The columns that ksqlDB adds to the rows of a stream or a windowed table. Other tables have ROWTIME only."""

from __future__ import annotations

from tailgate.sql.ksqldb import types

PSEUDO_COLUMNS = {"rowtime": types.BIGINT, "rowpartition": types.INT, "rowoffset": types.BIGINT}
WINDOW_BOUNDS = ("windowstart", "windowend")
