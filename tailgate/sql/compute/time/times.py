"""Functions of dates, timestamps and times.

A date is days since 1970, a timestamp microseconds since 1970, and a time microseconds since midnight. Infinity is the largest
number, -infinity its negative.

Source: PostgreSQL 15, src/backend/utils/adt/{timestamp,date}.c.
"""

from __future__ import annotations

import math
from datetime import tzinfo
from decimal import ROUND_HALF_EVEN, Decimal
from time import time_ns

from tailgate.lake.errors import DatetimeFieldOverflow, FeatureNotSupported
from tailgate.sql import interruption
from tailgate.sql.compute.registry import udf
from tailgate.sql.compute.series import stepped
from tailgate.sql.compute.time.interval_functions import Interval
from tailgate.values.times.calendar import (
    FIRST_TIME,
    INFINITE_TIME,
    INFINITIES_TIME,
    LAST_TIME,
    civil,
    date_to_timestamp,
    day_in_range,
    days,
    time_in_range,
    weekday,
)
from tailgate.values.times.intervals import order_key
from tailgate.values.times.units import DAY, HOUR, MINUTE, SECOND, unit_of, unsupported
from tailgate.values.times.zones import to_local, to_utc, zone

SECONDS_MAX = 1e13  # of a float that may be a timestamp
EPOCH_2000_S = 946_684_800  # PostgreSQL's epoch, in seconds since 1970


# --- construction --------------------------------------------------------------------------------


@udf("int4", "int4", "int4", to="date")
def make_date(year: int, month: int, day: int) -> int:
    """Returns a date. A negative year is BC."""
    astronomical = year + 1 if year < 0 else year
    number = days(astronomical, month, day) if 1 <= month <= 12 else 0
    if year == 0 or not 1 <= month <= 12 or not 1 <= day <= 31 or civil(number) != (astronomical, month, day):
        raise DatetimeFieldOverflow(f"date field value out of range: {year}-{month:02d}-{day:02d}")
    try:
        return day_in_range(number)
    except DatetimeFieldOverflow:
        raise DatetimeFieldOverflow(f"date out of range: {year}-{month:02d}-{day:02d}") from None


@udf("int4", "int4", "float8", to="time")
def make_time(hour: int, minute: int, seconds: float) -> int:
    error = DatetimeFieldOverflow(f"time field value out of range: {hour}:{minute:02d}:{seconds:g}")
    if not math.isfinite(seconds):
        raise error
    micros = int((Decimal(repr(seconds)) * 1_000_000).to_integral_value(ROUND_HALF_EVEN))
    if not 0 <= hour <= 24 or not 0 <= minute <= 59 or not 0 <= micros <= MINUTE:
        raise error
    time = hour * HOUR + minute * MINUTE + micros
    if time > DAY:
        raise error
    return time


@udf("int4", "int4", "int4", "int4", "int4", "float8", to="timestamp")
def make_timestamp(year: int, month: int, day: int, hour: int, minute: int, seconds: float) -> int:
    return date_at_time(make_date(year, month, day), make_time(hour, minute, seconds))


@udf("int4", "int4", "int4", "int4", "int4", "float8", "text", to="timestamptz")
def make_timestamptz(year: int, month: int, day: int, hour: int, minute: int, seconds: float, zone_name: str) -> int:
    local = make_timestamp(year, month, day, hour, minute, seconds)
    # A numeric zone counts hours east, as in a literal; zone() reads it as in POSIX, west.
    if zone_name[:1] in "+-" and zone_name[1:2].isdigit():
        zone_name = ("-" if zone_name[0] == "+" else "+") + zone_name[1:]
    return to_utc(local, zone(zone_name))


@udf("float8", to="timestamptz")
def to_timestamp(seconds: float) -> int:
    """Returns the timestamp of seconds since 1970."""
    if math.isnan(seconds):
        raise DatetimeFieldOverflow("timestamp cannot be NaN")
    if math.isinf(seconds):
        return INFINITE_TIME if seconds > 0 else -INFINITE_TIME
    if abs(seconds) > SECONDS_MAX:
        raise DatetimeFieldOverflow(f'timestamp out of range: "{seconds:g}"')
    # PostgreSQL rounds the microseconds since its own epoch.
    micros = round((seconds - EPOCH_2000_S) * 1e6) + EPOCH_2000_S * 1_000_000
    if not FIRST_TIME <= micros <= LAST_TIME:
        raise DatetimeFieldOverflow(f'timestamp out of range: "{seconds:g}"')
    return micros


@udf("date", "time", to="timestamp")
def date_at_time(day: int, micros: int) -> int:
    midnight = date_to_timestamp(day)
    return midnight if midnight in INFINITIES_TIME else time_in_range(midnight + micros)


# --- parts ---------------------------------------------------------------------------------------

WITHIN_DAYS = ("microsecond", "millisecond", "second", "minute", "hour")
SIZES = {"microsecond": 1, "millisecond": 1000, "second": 1_000_000, "minute": MINUTE, "hour": HOUR, "day": DAY}


def _truncated(word: str, value: int, type: str) -> int:
    if value in INFINITIES_TIME:
        return value
    unit = unit_of(word)
    if unit in SIZES:
        return value // SIZES[unit] * SIZES[unit]
    day = value // DAY
    year, month, _ = civil(day)
    match unit:
        case "week":
            day -= weekday(day)
        case "month" | "quarter" | "year":
            months = {"month": 1, "quarter": 3, "year": 12}[unit]
            day = days(year, (month - 1) // months * months + 1, 1)
        case "decade":
            day = days(year // 10 * 10, 1, 1)
        case "century" | "millennium":
            years = {"century": 100, "millennium": 1000}[unit]
            day = days((year - 1) // years * years + 1, 1, 1)
        case _:
            raise unsupported(word, type)
    return time_in_range(day * DAY)


@udf("text", "timestamp", to="timestamp")
def date_trunc_timestamp(word: str, value: int) -> int:
    return _truncated(word, value, "timestamp without time zone")


@udf("text", "timestamptz", "text", to="timestamptz")
def date_trunc_timestamptz(word: str, value: int, zone_name: str) -> int:
    return value if value in INFINITIES_TIME else truncated_at(word, value, zone(zone_name))


def truncated_at(word: str, moment: int, time_zone: tzinfo) -> int:
    """Truncates the local time of a finite moment. Within a day it keeps its offset, also where a change of the clock repeats an hour."""
    local = to_local(moment, time_zone)
    truncated = _truncated(word, local, "timestamp with time zone")
    return truncated - (local - moment) if unit_of(word) in WITHIN_DAYS else to_utc(truncated, time_zone)


@udf("text", "time", to="numeric")
def extract_time(word: str, micros: int) -> Decimal:
    return part_of_time(word, micros, "time without time zone")


def part_of_time(word: str, micros: int, type: str) -> Decimal:
    """Returns a part of microseconds since midnight. `type` is the name of their type."""
    match unit_of(word):
        case "hour":
            return Decimal(micros // HOUR)
        case "minute":
            return Decimal(micros // MINUTE % 60)
        case "second":
            return Decimal(micros % MINUTE).scaleb(-6)
        case "millisecond":
            return Decimal(micros % MINUTE).scaleb(-3)
        case "microsecond":
            return Decimal(micros % MINUTE)
        case "epoch":
            return Decimal(micros).scaleb(-6)
    raise unsupported(word, type)


@udf("interval", "timestamp", "timestamp", to="timestamp")
def date_bin(stride: Interval, value: int, origin: int) -> int:
    months, number, micros = stride
    if value in INFINITIES_TIME:
        return value
    if origin in INFINITIES_TIME:
        raise DatetimeFieldOverflow("origin out of range")
    if months:
        raise FeatureNotSupported("timestamps cannot be binned into intervals containing months or years")
    size = number * DAY + micros
    if size <= 0:
        raise DatetimeFieldOverflow("stride must be greater than zero")
    return time_in_range(origin + (value - origin) // size * size)


# --- arithmetic ----------------------------------------------------------------------------------


@udf("timestamp", "timestamp", "interval", to="timestamp[]", name="series_timestamp")
def series(first: int, last: int, step: Interval) -> list[int]:
    """Computes generate_series() for steps with parts of both signs, which DuckDB refuses."""
    months, number, micros = step
    return stepped(first, last, order_key(step), lambda time: time_in_range(plus_months(time, months) + number * DAY + micros))


def plus_months(value: int, months: int) -> int:
    """Returns a local time months later, on the last day of the month if it has no such day."""
    day, time = divmod(value, DAY)
    year, month, day_of_month = civil(day)
    year, month = divmod(year * 12 + month - 1 + months, 12)
    return days(year, month + 1, min(day_of_month, _month_length(year, month + 1))) * DAY + time


def _month_length(year: int, month: int) -> int:
    return days(year + month // 12, month % 12 + 1, 1) - days(year, month, 1)


@udf("timestamp", "timestamp", to="interval")
def age(a: int, b: int) -> Interval:
    """Returns the difference of two timestamps in years, months and days.

    PostgreSQL 15 computes with infinity as the number that stores it, in microseconds since 2000.
    """
    if -INFINITE_TIME in (a, b):
        raise DatetimeFieldOverflow("timestamp out of range")
    a, b = (value + EPOCH_2000_S * SECOND if value == INFINITE_TIME else value for value in (a, b))
    negative = a < b
    (later_day, later_time), (earlier_day, earlier_time) = (divmod(v, DAY) for v in ((b, a) if negative else (a, b)))
    later, earlier = civil(later_day), civil(earlier_day)
    months = (later[0] - earlier[0]) * 12 + later[1] - earlier[1]
    number = later[2] - earlier[2]
    micros = later_time - earlier_time
    if micros < 0:
        micros, number = micros + DAY, number - 1
    if number < 0:
        number, months = number + _month_length(earlier[0], earlier[1]), months - 1
    return (-months, -number, -micros) if negative else (months, number, micros)


@udf("time", "interval", to="time")
def time_add(micros: int, interval: Interval) -> int:
    return (micros + interval[2]) % DAY


@udf("time", "interval", to="time")
def time_subtract(micros: int, interval: Interval) -> int:
    return (micros - interval[2]) % DAY


@udf("interval", to="text", volatile=True)
def pg_sleep_for(length: Interval) -> str:
    """Sleeps as `pg_sleep` does, until the present time plus an interval."""
    months, number, micros = length
    now = _now()
    return pg_sleep((time_in_range(plus_months(now, months) + number * DAY + micros) - now) / SECOND)


@udf("timestamptz", to="text", volatile=True)
def pg_sleep_until(end: int) -> str:
    """Sleeps as `pg_sleep` does, until a time."""
    return pg_sleep((end - _now()) / SECOND)


def _now() -> int:
    return time_ns() // 1000


@udf("float8", to="text", volatile=True)
def pg_sleep(seconds: float) -> str:
    """Sleeps on the thread that runs the statement, until a cancel request or statement_timeout ends it."""
    interruption.sleep(seconds)
    return ""
