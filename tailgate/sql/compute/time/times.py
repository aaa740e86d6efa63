"""Functions of dates, timestamps and times. A time is microseconds since midnight.

Source: PostgreSQL 15, src/backend/utils/adt/{timestamp,date}.c.
"""

from __future__ import annotations

import calendar
import math
from datetime import date, datetime, timedelta, timezone
from decimal import ROUND_HALF_EVEN, Decimal

from tailgate.lake.errors import DatetimeFieldOverflow, FeatureNotSupported
from tailgate.sql import interruption
from tailgate.sql.compute.registry import udf
from tailgate.sql.compute.time.interval_functions import Interval
from tailgate.values.times.intervals import order_key
from tailgate.values.times.units import DAY, HOUR, MINUTE, SECOND, unit_of, unsupported
from tailgate.values.times.zones import to_local, to_utc, zone

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
EPOCH_2000_S = 946_684_800  # PostgreSQL's epoch, in seconds since 1970


# --- construction --------------------------------------------------------------------------------


@udf("int4", "int4", "int4", to="date")
def make_date(year: int, month: int, day: int) -> date:
    if year < 0:
        raise FeatureNotSupported("years before 1 are not supported")
    if year > 9999 and 1 <= month <= 12 and 1 <= day <= 31:
        raise FeatureNotSupported("years beyond 9999 are not supported")
    try:
        return date(year, month, day)
    except ValueError:
        raise DatetimeFieldOverflow(f"date field value out of range: {year}-{month:02d}-{day:02d}") from None


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
def make_timestamp(year: int, month: int, day: int, hour: int, minute: int, seconds: float) -> datetime:
    return date_at_time(make_date(year, month, day), make_time(hour, minute, seconds))


@udf("int4", "int4", "int4", "int4", "int4", "float8", "text", to="timestamptz")
def make_timestamptz(year: int, month: int, day: int, hour: int, minute: int, seconds: float, zone_name: str) -> datetime:
    local = make_timestamp(year, month, day, hour, minute, seconds)
    # A numeric zone counts hours east, as in a literal; zone() reads it as in POSIX, west.
    if zone_name[:1] in "+-" and zone_name[1:2].isdigit():
        zone_name = ("-" if zone_name[0] == "+" else "+") + zone_name[1:]
    return to_utc(local, zone(zone_name))


@udf("float8", to="timestamptz")
def to_timestamp(seconds: float) -> datetime:
    """Returns the timestamp of seconds since 1970."""
    if math.isnan(seconds):
        raise DatetimeFieldOverflow("timestamp cannot be NaN")
    try:
        # PostgreSQL rounds the microseconds since its own epoch.
        micros = round((seconds - EPOCH_2000_S) * 1e6) + EPOCH_2000_S * 1_000_000
        return EPOCH + timedelta(microseconds=micros)
    except (OverflowError, ValueError):
        raise DatetimeFieldOverflow(f'timestamp out of range: "{seconds:g}"') from None


@udf("date", "time", to="timestamp")
def date_at_time(day: date, micros: int) -> datetime:
    return datetime(day.year, day.month, day.day) + timedelta(microseconds=micros)


# --- parts ---------------------------------------------------------------------------------------


def _truncated(word: str, value: datetime, type: str) -> datetime:
    unit = unit_of(word)
    midnight = value.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "microsecond":
            return value
        case "millisecond":
            return value.replace(microsecond=value.microsecond // 1000 * 1000)
        case "second":
            return value.replace(microsecond=0)
        case "minute":
            return value.replace(second=0, microsecond=0)
        case "hour":
            return value.replace(minute=0, second=0, microsecond=0)
        case "day":
            return midnight
        case "week":
            return midnight - timedelta(days=value.weekday())
        case "month" | "quarter" | "year":
            months = {"month": 1, "quarter": 3, "year": 12}[unit]
            return datetime(value.year, (value.month - 1) // months * months + 1, 1)
        case "decade":
            if value.year < 10:
                raise FeatureNotSupported("years before 1 are not supported")
            return datetime(value.year // 10 * 10, 1, 1)
        case "century" | "millennium":
            years = {"century": 100, "millennium": 1000}[unit]
            return datetime((value.year - 1) // years * years + 1, 1, 1)
    raise unsupported(word, type)


@udf("text", "timestamp", to="timestamp")
def date_trunc_timestamp(word: str, value: datetime) -> datetime:
    return _truncated(word, value, "timestamp without time zone")


@udf("text", "timestamptz", "text", to="timestamptz")
def date_trunc_timestamptz(word: str, value: datetime, zone_name: str) -> datetime:
    time_zone = zone(zone_name)
    return to_utc(_truncated(word, to_local(value, time_zone), "timestamp with time zone"), time_zone)


@udf("text", "time", to="numeric")
def extract_time(word: str, micros: int) -> Decimal:
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
    raise unsupported(word, "time without time zone")


@udf("interval", "timestamp", "timestamp", to="timestamp")
def date_bin(stride: Interval, value: datetime, origin: datetime) -> datetime:
    months, days, micros = stride
    if months:
        raise FeatureNotSupported("timestamps cannot be binned into intervals containing months or years")
    size = days * DAY + micros
    if size <= 0:
        raise DatetimeFieldOverflow("stride must be greater than zero")
    difference = (value - origin) // timedelta(microseconds=1)
    return origin + timedelta(microseconds=difference // size * size)


# --- arithmetic ----------------------------------------------------------------------------------


@udf("timestamp", "timestamp", "interval", to="timestamp[]", name="series_timestamp")
def series(first: datetime, last: datetime, step: Interval) -> list[datetime]:
    """Computes generate_series() for steps with parts of both signs, which DuckDB refuses."""
    months, days, micros = step
    ascending = order_key(step) > 0
    timestamps: list[datetime] = []
    current = first
    while current <= last if ascending else current >= last:
        timestamps.append(current)
        current = _plus_months(current, months) + timedelta(days=days, microseconds=micros)
    return timestamps


def _plus_months(value: datetime, months: int) -> datetime:
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    day = min(value.day, calendar.monthrange(year, month + 1)[1])
    return value.replace(year=year, month=month + 1, day=day)


@udf("timestamp", "timestamp", to="interval")
def age(a: datetime, b: datetime) -> Interval:
    """Returns the difference of two timestamps in years, months and days."""
    negative = a < b
    later, earlier = (b, a) if negative else (a, b)
    months = (later.year - earlier.year) * 12 + later.month - earlier.month
    days = later.day - earlier.day
    micros = _time_of_day(later) - _time_of_day(earlier)
    if micros < 0:
        micros, days = micros + DAY, days - 1
    if days < 0:
        days, months = days + calendar.monthrange(earlier.year, earlier.month)[1], months - 1
    return (-months, -days, -micros) if negative else (months, days, micros)


def _time_of_day(value: datetime) -> int:
    return (value.hour * 3600 + value.minute * 60 + value.second) * SECOND + value.microsecond


@udf("time", "interval", to="time")
def time_add(micros: int, interval: Interval) -> int:
    return (micros + interval[2]) % DAY


@udf("time", "interval", to="time")
def time_subtract(micros: int, interval: Interval) -> int:
    return (micros - interval[2]) % DAY


@udf("interval", to="text", volatile=True)
def pg_sleep_for(length: Interval) -> str:
    """Sleeps as `pg_sleep` does, until the present time plus an interval."""
    months, days, micros = length
    now = datetime.now(timezone.utc)
    try:
        end = _plus_months(now, months) + timedelta(days=days, microseconds=micros)
    except (OverflowError, ValueError):
        raise DatetimeFieldOverflow("timestamp out of range") from None
    return pg_sleep((end - now).total_seconds())


@udf("timestamptz", to="text", volatile=True)
def pg_sleep_until(end: datetime) -> str:
    """Sleeps as `pg_sleep` does, until a time."""
    return pg_sleep((end - datetime.now(timezone.utc)).total_seconds())


@udf("float8", to="text", volatile=True)
def pg_sleep(seconds: float) -> str:
    """Sleeps on the thread that runs the statement, until a cancel request or statement_timeout ends it."""
    interruption.sleep(seconds)
    return ""
