"""RETAIN HISTORY FOR: how long past states of a relation stay readable.

The lake's `since` follows the longest of these durations.
"""

from __future__ import annotations

from tailgate.engine.ddl.durations import DAY_MS, bounded_milliseconds
from tailgate.lake.errors import InvalidParameterValue
from tailgate.sql.statements import Options

OPTION = "retain history for"  # in a statement's WITH (…) or SET (…)
# Delta's logs stay readable for other readers for the same time (lake.tables.delta.CONFIGURATION)
RETAIN_MAX_MS = 30 * DAY_MS


def split_retention(options: Options) -> tuple[int, Options]:
    """Returns for how many ms an item retains its history, 0 by default, and the statement's other options."""
    retention = 0
    for name, value in options:
        if name == OPTION:
            retention = milliseconds(value)
    return retention, tuple((name, value) for name, value in options if name != OPTION)


def milliseconds(value: object) -> int:
    """Returns the interval of a statement in ms. Raises 22007 and 22023."""
    if not isinstance(value, str):
        raise InvalidParameterValue("RETAIN HISTORY FOR takes an interval", hint="Write RETAIN HISTORY FOR '2 hours'.")
    return bounded_milliseconds("RETAIN HISTORY FOR", value, RETAIN_MAX_MS)
