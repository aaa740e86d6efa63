"""RETAIN HISTORY FOR: for how long a relation can be read as it was. `since` of the lake trails by the longest of all."""

from __future__ import annotations

from typing import Any

from lake.errors import InvalidParameterValue
from lake.reading import RETAIN_OPTION
from sql.input.intervals import to_interval
from sql.statements import Options

OPTION = "retain history for"  # in a statement's WITH (…) or SET (…)
DAY_MS = 24 * 3_600_000
MONTH_MS = 30 * DAY_MS  # as PostgreSQL counts where a month is a length of time
RETAIN_MAX_MS = 30 * DAY_MS  # for as long Delta's logs stay readable for others (lake.delta.CONFIGURATION)


def retained(options: Options) -> tuple[dict[str, Any], Options]:
    """The option of an item, if the statement has it, and the statement's other options."""
    found: dict[str, Any] = {}
    for name, value in options:
        if name == OPTION:
            found[RETAIN_OPTION] = milliseconds(value)
    return found, tuple((name, value) for name, value in options if name != OPTION)


def milliseconds(value: object) -> int:
    """An interval as a statement has it, in ms. Raises 22007 and 22023."""
    if not isinstance(value, str):
        raise InvalidParameterValue("RETAIN HISTORY FOR takes an interval", hint="Write RETAIN HISTORY FOR '2 hours'.")
    months, days, micros = to_interval(value)
    length = months * MONTH_MS + days * DAY_MS + micros // 1000
    if not 0 < length <= RETAIN_MAX_MS:
        raise InvalidParameterValue(
            f'invalid RETAIN HISTORY FOR: "{value}"', hint=f"It is more than nothing and at most {RETAIN_MAX_MS // DAY_MS} days."
        )
    return length
