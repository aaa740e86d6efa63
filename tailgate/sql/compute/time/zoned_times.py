"""Functions of time with time zone. `values.times.zoned_times` describes the stored form.

Source: PostgreSQL 15, src/backend/utils/adt/date.c.
"""

from __future__ import annotations

from decimal import Decimal

from tailgate.lake.errors import InvalidTimeZoneDisplacementValue
from tailgate.sql.compute.registry import udf
from tailgate.sql.compute.time.interval_functions import Interval
from tailgate.sql.compute.time.times import part_of_time
from tailgate.sql.compute.time.zones import fixed_offset
from tailgate.values.times.calendar import INFINITIES_TIME, date_to_timestamp, time_in_range
from tailgate.values.times.units import DAY, SECOND, unit_of
from tailgate.values.times.zoned_times import parts, rounded, write_timetz, zoned
from tailgate.values.times.zones import OFFSET_MAX, to_local, zone

# --- casts ---------------------------------------------------------------------------------------


@udf("timetz", to="text")
def timetz_to_text(value: int) -> str:
    return write_timetz(value).decode()


@udf("time", to="timetz")
def time_to_timetz(micros: int) -> int:
    return zoned(micros, 0)


@udf("timetz", to="time")
def timetz_to_time(value: int) -> int:
    return parts(value)[0]


udf("timetz", "int4", to="timetz", name="round_timetz")(rounded)

# --- parts ---------------------------------------------------------------------------------------


def _quotient(a: int, b: int) -> int:
    """Returns a / b without the fraction, as C computes it."""
    return -(-a // b) if a < 0 else a // b


@udf("text", "timetz", to="numeric")
def extract_timetz(word: str, value: int) -> Decimal:
    micros, east = parts(value)
    match unit_of(word):
        case "timezone":
            return Decimal(east)
        case "timezone_hour":
            return Decimal(_quotient(east, 3600))
        case "timezone_minute":
            return Decimal(_quotient(east, 60) - 60 * _quotient(east, 3600))
        case "epoch":
            return Decimal(micros - east * SECOND).scaleb(-6)
    return part_of_time(word, micros, "time with time zone")


@udf("timetz", to="float8")
def epoch_timetz(value: int) -> float:
    """Returns the seconds since midnight of UTC, summed in PostgreSQL's order."""
    micros, east = parts(value)
    return micros / SECOND - east


# --- arithmetic ----------------------------------------------------------------------------------


@udf("timetz", "interval", to="timetz")
def timetz_add(value: int, interval: Interval) -> int:
    micros, east = parts(value)
    return zoned((micros + interval[2]) % DAY, east)


@udf("timetz", "interval", to="timetz")
def timetz_subtract(value: int, interval: Interval) -> int:
    micros, east = parts(value)
    return zoned((micros - interval[2]) % DAY, east)


@udf("date", "timetz", to="timestamptz")
def date_at_timetz(day: int, value: int) -> int:
    """Returns the moment of a date and a time."""
    midnight = date_to_timestamp(day)
    micros, east = parts(value)
    return midnight if midnight in INFINITIES_TIME else time_in_range(midnight + micros - east * SECOND)


def _at(value: int, east: int) -> int:
    """Returns the same time at another offset from UTC, in seconds."""
    micros, earlier = parts(value)
    if abs(east) > OFFSET_MAX.total_seconds():
        raise InvalidTimeZoneDisplacementValue("time zone displacement out of range")
    return zoned((micros + (east - earlier) * SECOND) % DAY, east)


@udf("interval", "timetz", to="timetz")
def timetz_at_offset(offset: Interval, value: int) -> int:
    return _at(value, fixed_offset(offset))


@udf("text", "timetz", "timestamptz", to="timetz")
def timetz_at_zone(zone_name: str, value: int, now: int) -> int:
    """Returns the same time at the offset that a zone has at present."""
    return _at(value, (to_local(now, zone(zone_name)) - now) // SECOND)
