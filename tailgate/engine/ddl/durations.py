"""The durations in options of statements."""

from __future__ import annotations

from tailgate.lake.errors import InvalidParameterValue
from tailgate.values.times.intervals import read_fields

DAY_MS = 24 * 3_600_000
MONTH_MS = 30 * DAY_MS  # PostgreSQL's conversion of months to a duration


def milliseconds(interval: str) -> int:
    """Returns the length of an interval in ms. Raises 22007."""
    months, days, micros = read_fields(interval)
    return months * MONTH_MS + days * DAY_MS + micros // 1000


def bounded_milliseconds(option: str, interval: str, most: int) -> int:
    """Returns the length of an option's interval in ms. Raises 22007, and 22023 unless it is above 0 and at most `most` ms."""
    length = milliseconds(interval)
    if not 0 < length <= most:
        raise InvalidParameterValue(f'invalid {option}: "{interval}"', hint=f"It must be positive and at most {most // DAY_MS} days.")
    return length
