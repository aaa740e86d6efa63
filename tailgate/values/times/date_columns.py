"""Output of whole columns of dates and timestamps of the years 1 to 9999, which Arrow writes as PostgreSQL does."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake.types import Type
from tailgate.values.codec.columns import arrow_text, numbers_of, packed_numbers, with_nulls, within
from tailgate.values.codec.style import Style
from tailgate.values.times.calendar import DAY, DAYS_TO_2000, MICROS_TO_2000, SECOND, days
from tailgate.values.times.zones import offset, offset_text

_FIRST_DAY, _LAST_DAY = days(1, 1, 1) + 1, days(9999, 12, 31) - 1
_QUARTER_HOUR = 900  # s: no zone has changed its offset at any other second since 1975
_SINCE_1975 = 157_766_400  # s


def _has_common_dates(array: pa.Array) -> bool:
    return within(array.view(pa.int32()), _FIRST_DAY, _LAST_DAY)


def _has_common_times(array: pa.Array) -> bool:
    return within(array.view(pa.int64()), _FIRST_DAY * DAY, _LAST_DAY * DAY)


def date_text(array: pa.Array, type: Type, style: Style) -> pa.Array | None:
    return arrow_text(array) if _has_common_dates(array) else None


def date_binary(array: pa.Array, type: Type) -> pa.Array | None:
    return packed_numbers(array.view(pa.int32()), "!i", DAYS_TO_2000) if _has_common_dates(array) else None


def timestamp_text(array: pa.Array, type: Type, style: Style) -> pa.Array | None:
    return _timestamps(array.view(pa.int64())).view(pa.binary()) if _has_common_times(array) else None


def timestamp_binary(array: pa.Array, type: Type) -> pa.Array | None:
    return packed_numbers(array.view(pa.int64()), "!q", MICROS_TO_2000) if _has_common_times(array) else None


def timestamptz_text(array: pa.Array, type: Type, style: Style) -> pa.Array | None:
    """Writes local times with their offsets, which are looked up once for each quarter of an hour."""
    if not _has_common_times(array):
        return None
    micros = array.view(pa.int64())
    numbers = numbers_of(micros)
    seconds = numbers // SECOND
    steps = seconds // _QUARTER_HOUR * _QUARTER_HOUR if len(seconds) and seconds.min() >= _SINCE_1975 else seconds
    steps, indices = np.unique(steps, return_inverse=True)
    indices = indices.reshape(-1)
    east = np.array([offset(style.time_zone, int(step)) for step in steps], dtype=np.int64)
    suffixes = pa.array([offset_text(int(seconds)) for seconds in east], pa.binary()).take(pa.array(indices))
    local = pa.array(numbers + east[indices] * SECOND, pa.int64())
    return with_nulls(pc.binary_join_element_wise(_timestamps(local).view(pa.binary()), suffixes, b""), micros)


def _timestamps(micros: pa.Array) -> pa.Array:
    """Returns timestamps as text without the zeros at the end that Arrow writes."""
    return pc.ascii_rtrim(pc.ascii_rtrim(micros.view(pa.timestamp("us")).cast(pa.string()), "0"), ".")
