"""The columns of relations that are created with another item: dead letters of a source, errors of a view."""

from __future__ import annotations

from tailgate.lake.types import BOOL, BYTEA, INT4, INT8, TEXT, TIMESTAMPTZ, Field

# columns of a source's dead letters: records that could not be decoded, with the error
DEAD_LETTERS = (
    Field("topic", TEXT, False),
    Field("partition", INT4, False),
    Field("offset", INT8, False),
    Field("time", TIMESTAMPTZ),
    Field("key", BYTEA),
    Field("value", BYTEA),
    Field("error", TEXT, False),
    Field("attempts", INT4, False),
    Field("since", TIMESTAMPTZ),
    Field("backfill", BOOL),
)
DEAD_LETTERS_KEY = (0, 1, 2)
DEAD_LETTERS_FIRST = 8  # number of columns in the first version; `since` and `backfill` were added later

# columns of a maintained item's errors
ERRORS = (Field("sqlstate", TEXT, False), Field("message", TEXT, False))
