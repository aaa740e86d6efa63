"""generate_series(): its limit and its errors, and the steps that neither engine computes."""

from __future__ import annotations

from collections.abc import Callable

from tailgate.lake.errors import InvalidParameterValue, ProgramLimitExceeded
from tailgate.sql import interruption

SERIES_MAX = 10_000_000  # rows of one call
NUMERIC_SERIES_MAX = 1_000_000  # rows of one call with numerics, each of which takes some hundred bytes
NUMERIC_SERIES_DIGITS_MAX = 100_000_000  # of all its rows
ZERO_STEP = "step size cannot equal zero"
TOO_MANY_ROWS = f"generate_series gives more than {SERIES_MAX} rows"
CHECKED = 1_000  # rows between two checks whether the statement was canceled


def stepped(first: int, last: int, length: int, step: Callable[[int], int]) -> list[int]:
    """Returns the times from `first` to `last`. `length`: about that of a step, negative if it goes back. Raises 22023, 54000."""
    if length == 0:
        raise InvalidParameterValue(ZERO_STEP)
    series: list[int] = []
    current = first
    while current <= last if length > 0 else current >= last:
        if len(series) % CHECKED == 0:
            interruption.check()
            if len(series) + (last - current) // length >= SERIES_MAX:
                raise ProgramLimitExceeded(TOO_MANY_ROWS)
        series.append(current)
        current = step(current)
    return series
