"""Type time with time zone.

A value is one number, whose order is that of PostgreSQL: the time in UTC, then the offset.

    (µs since midnight of UTC) · 2^17 + (seconds west of UTC) + 2^16

Two values are equal only if both parts are. The offset is fixed, so a zone whose offset changes needs a date: that
of the text, or else today.

Source: PostgreSQL 15, src/backend/utils/adt/date.c.
"""

from __future__ import annotations

from datetime import timedelta, tzinfo
from struct import Struct
from time import time_ns

from tailgate.lake.errors import DatetimeFieldOverflow, InvalidTimeZoneDisplacementValue
from tailgate.lake.types import MICROSECONDS, Type
from tailgate.values.codec.binary import check_size, leading
from tailgate.values.codec.codec import Codec, Writer
from tailgate.values.codec.style import Style
from tailgate.values.times import zones
from tailgate.values.times.calendar import DAY, SECOND
from tailgate.values.times.dates import clock_time, write_time

OFFSET_BITS = 17
OFFSET_ZERO = 1 << (OFFSET_BITS - 1)
_MICROS, _WEST = Struct("!q"), Struct("!i")  # the binary form: µs since midnight, then seconds west of UTC
OFFSET_END = 16 * 3600  # seconds: offsets in binary form are below


def zoned(micros: int, east: int) -> int:
    """Returns the value of µs since midnight and an offset in seconds east of UTC.

    >>> parts(zoned(5, -3600)), zoned(0, 3600) < zoned(0, 0)
    ((5, -3600), True)
    """
    return (micros - east * SECOND << OFFSET_BITS) + OFFSET_ZERO - east


def parts(value: int) -> tuple[int, int]:
    """Returns µs since midnight and the seconds east of UTC of a value. The inverse of `zoned`."""
    utc, west = value >> OFFSET_BITS, (value & (1 << OFFSET_BITS) - 1) - OFFSET_ZERO
    return utc - west * SECOND, -west


def rounded(value: int, digits: int) -> int:
    """Returns a value whose seconds have at most some fractional digits."""
    micros, east = parts(value)
    unit = 10 ** (MICROSECONDS - digits)
    return zoned((micros + unit // 2) // unit * unit, east)


def offset_on(zone: tzinfo, days: int | None, micros: int) -> int:
    """Returns the seconds east of UTC of a zone at a local time, on a day since 1970 or today."""
    local = days * DAY + micros if days is not None else zones.to_local(time_ns() // 1000, zone) // DAY * DAY + micros
    return (local - zones.to_utc(local, zone)) // SECOND


def read_timetz(text: str, type: Type, style: Style) -> int:
    """Reads a time. A text without a zone is in the zone of the session."""
    clock = clock_time(text, type, style)
    zone = clock.zone if clock.zone is not None else zones.of_session(style.time_zone)
    east = zone // timedelta(seconds=1) if isinstance(zone, timedelta) else offset_on(zone, clock.days, clock.micros)
    return zoned(clock.micros, east)


def write_timetz(value: int) -> bytes:
    micros, east = parts(value)
    return write_time(micros) + zones.offset_text(east)


def read_timetz_binary(data: bytes, type: Type) -> int:
    micros = leading(_MICROS, data)
    if not 0 <= micros <= DAY:
        raise DatetimeFieldOverflow("time out of range")
    west = leading(_WEST, data[_MICROS.size :])
    if not -OFFSET_END < west < OFFSET_END:
        raise InvalidTimeZoneDisplacementValue("time zone displacement out of range")
    check_size(data, _MICROS.size + _WEST.size)
    return zoned(micros, -west)


def write_timetz_binary(value: int) -> bytes:
    micros, east = parts(value)
    return _MICROS.pack(micros) + _WEST.pack(-east)


def _text_writer(type: Type, style: Style) -> Writer:
    return write_timetz


def _binary_writer(type: Type) -> Writer:
    return write_timetz_binary


TIMETZ = Codec(read_timetz, read_timetz_binary, _text_writer, _binary_writer)
