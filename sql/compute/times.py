"""Dates, times and intervals. An interval is (months, days, microseconds), a time is microseconds of the day.

Source: PostgreSQL 15, src/backend/utils/adt/{timestamp,date}.c.
"""

from __future__ import annotations

import calendar
import math
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal

from lake.errors import DatetimeFieldOverflow, DivisionByZero, FeatureNotSupported, InvalidParameterValue, TailgateError, of
from sql.compute.registry import own
from sql.input.units import SPELLINGS
from sql.input.zones import to_local, to_utc, zone

Interval = tuple[int, int, int]
DAY = 86_400_000_000  # microseconds
HOUR, MINUTE, SECOND = 3_600_000_000, 60_000_000, 1_000_000


def unit_of(word: str) -> str:
    return SPELLINGS.get(word.lower(), word.lower())


UNITS = (
    "microsecond millisecond second minute hour day week month quarter year decade century millennium".split()
)  # that one can truncate to


def unrecognized(word: str, type: str) -> TailgateError:
    known = unit_of(word) in UNITS
    message = f'unit "{word.lower()}" not {"supported" if known else "recognized"} for type {type}'
    return FeatureNotSupported(message) if known else InvalidParameterValue(message)


def ranged(months: int, days: int, micros: int) -> Interval:
    if not -(2**31) <= months < 2**31 or not -(2**31) <= days < 2**31 or not -(2**63) <= micros < 2**63:
        raise of("22008", "interval out of range")
    return months, days, micros


def truncated(a: int, b: int) -> int:
    """a / b towards zero."""
    return abs(a) // b * (-1 if a < 0 else 1)


# --- intervals -------------------------------------------------------------------------------------------------------------------


@own("interval", "interval", to="interval")
def interval_add(a: Interval, b: Interval) -> Interval:
    return ranged(a[0] + b[0], a[1] + b[1], a[2] + b[2])


@own("interval", "interval", to="interval")
def interval_subtract(a: Interval, b: Interval) -> Interval:
    return ranged(a[0] - b[0], a[1] - b[1], a[2] - b[2])


@own("interval", to="interval")
def interval_negate(a: Interval) -> Interval:
    return ranged(-a[0], -a[1], -a[2])


def _round(seconds: float) -> float:
    return float(round(seconds * 1e6)) / 1e6


@own("interval", "float8", to="interval")
def interval_multiply(a: Interval, factor: float) -> Interval:
    return _scaled(a[0] * factor, a[1] * factor, a[2] * factor)


@own("interval", "float8", to="interval")
def interval_divide(a: Interval, divisor: float) -> Interval:
    if divisor == 0:
        raise DivisionByZero("division by zero")
    return _scaled(a[0] / divisor, a[1] / divisor, a[2] / divisor)


def _scaled(months: float, days: float, micros: float) -> Interval:
    """A part of a month goes to days of 30, a part of a day to hours."""
    if not all(map(math.isfinite, (months, days, micros))) or abs(months) >= 2**31 or abs(days) >= 2**31:
        raise of("22008", "interval out of range")
    month, day = int(months), int(days)
    month_days = _round((months - month) * 30)
    seconds = _round((days - day + month_days - int(month_days)) * 86400)
    if abs(seconds) >= 86400:
        day += int(seconds / 86400)
        seconds -= int(seconds / 86400) * 86400
    day += int(month_days)
    total = micros + seconds * 1e6
    if abs(total) >= 2**63:
        raise of("22008", "interval out of range")
    return ranged(month, day, round(total))


@own("interval", to="interval")
def justify_hours(value: Interval) -> Interval:
    months, days, micros = value
    whole = truncated(micros, DAY)
    return ranged(months, *_same_sign(days + whole, micros - whole * DAY, DAY))


@own("interval", to="interval")
def justify_days(value: Interval) -> Interval:
    months, days, micros = value
    whole = truncated(days, 30)
    return ranged(*_same_sign(months + whole, days - whole * 30, 30), micros)


@own("interval", to="interval")
def justify_interval(value: Interval) -> Interval:
    months, days, micros = value
    whole = truncated(micros, DAY)
    days, micros = days + whole, micros - whole * DAY
    whole = truncated(days, 30)
    months, days = months + whole, days - whole * 30
    if months > 0 and (days < 0 or (days == 0 and micros < 0)):
        months, days = months - 1, days + 30
    elif months < 0 and (days > 0 or (days == 0 and micros > 0)):
        months, days = months + 1, days - 30
    return ranged(months, *_same_sign(days, micros, DAY))


def _same_sign(large: int, small: int, unit: int) -> tuple[int, int]:
    if large > 0 > small:
        return large - 1, small + unit
    if large < 0 < small:
        return large + 1, small - unit
    return large, small


@own("int4", "int4", "int4", "int4", "int4", "int4", "float8", to="interval")
def make_interval(years: int, months: int, weeks: int, days: int, hours: int, mins: int, secs: float) -> Interval:
    if not math.isfinite(secs):
        raise of("22008", "interval out of range")
    return ranged(years * 12 + months, weeks * 7 + days, hours * HOUR + mins * MINUTE + round(secs * 1e6))


# --- making --------------------------------------------------------------------------------------------------------------------


def _seconds(seconds: float, message: str) -> int:
    """Microseconds."""
    if not math.isfinite(seconds):
        raise DatetimeFieldOverflow(message)
    return int((Decimal(repr(seconds)) * 1_000_000).to_integral_value(ROUND_HALF_EVEN))


@own("int4", "int4", "int4", to="date")
def make_date(year: int, month: int, day: int) -> date:
    try:
        if year < 0:
            raise FeatureNotSupported("years before 1 are not supported")
        if year > 9999 and 1 <= month <= 12 and 1 <= day <= 31:
            raise FeatureNotSupported("years beyond 9999 are not supported")
        return date(year, month, day)
    except ValueError:
        raise DatetimeFieldOverflow(f"date field value out of range: {year}-{month:02d}-{day:02d}") from None


@own("int4", "int4", "float8", to="time")
def make_time(hour: int, minute: int, seconds: float) -> int:
    message = f"time field value out of range: {hour}:{minute:02d}:{seconds:g}"
    micros = _seconds(seconds, message)
    if not 0 <= hour <= 24 or not 0 <= minute <= 59 or not 0 <= micros <= MINUTE:
        raise DatetimeFieldOverflow(message)
    total = hour * HOUR + minute * MINUTE + micros
    if total > DAY:
        raise DatetimeFieldOverflow(message)
    return total


@own("int4", "int4", "int4", "int4", "int4", "float8", to="timestamp")
def make_timestamp(year: int, month: int, day: int, hour: int, minute: int, seconds: float) -> datetime:
    try:
        made = make_date(year, month, day)
    except TailgateError as error:
        if error.sqlstate == "0A000":
            raise
        raise DatetimeFieldOverflow(f"date field value out of range: {year}-{month:02d}-{day:02d}") from None
    return datetime(made.year, made.month, made.day) + timedelta(microseconds=make_time(hour, minute, seconds))


@own("int4", "int4", "int4", "int4", "int4", "float8", "text", to="timestamptz")
def make_timestamptz(year: int, month: int, day: int, hour: int, minute: int, seconds: float, name: str) -> datetime:
    local = make_timestamp(year, month, day, hour, minute, seconds)
    if name[:1] in "+-" and name[1:2].isdigit():  # here numbers are east, as in a literal
        name = ("-" if name[0] == "+" else "+") + name[1:]
    return to_utc(local, zone(name))


# --- parts -----------------------------------------------------------------------------------------------------------------------


def _truncated(unit: str, value: datetime, word: str, type: str) -> datetime:
    midnight = {"hour": 0, "minute": 0, "second": 0, "microsecond": 0}
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
            return value.replace(**midnight)  # type: ignore[arg-type]
        case "week":
            return value.replace(**midnight) - timedelta(days=value.weekday())  # type: ignore[arg-type]
    start = {"month": 1, "quarter": 3, "year": 12}.get(unit)
    if start is not None:
        return datetime(value.year, (value.month - 1) // start * start + 1, 1)
    years = {"decade": 10, "century": 100, "millennium": 1000}.get(unit)
    if years is None:
        raise unrecognized(word, type)
    return datetime(max(value.year // 10 * 10, 1) if years == 10 else (value.year - 1) // years * years + 1, 1, 1)


@own("text", "timestamp", to="timestamp")
def date_trunc_timestamp(word: str, value: datetime) -> datetime:
    return _truncated(unit_of(word), value, word, "timestamp without time zone")


@own("text", "timestamptz", "text", to="timestamptz")
def date_trunc_timestamptz(word: str, value: datetime, name: str) -> datetime:
    at = zone(name)
    local = _truncated(unit_of(word), to_local(value, at), word, "timestamp with time zone")
    return to_utc(local, at)


@own("text", "interval", to="interval")
def date_trunc_interval(word: str, value: Interval) -> Interval:
    months, days, micros = value
    unit = unit_of(word)
    years = {"year": 12, "decade": 120, "century": 1200, "millennium": 12000, "quarter": 3, "month": 1}.get(unit)
    if years is not None:
        return truncated(months, years) * years, 0, 0
    if unit == "day":
        return months, days, 0
    size = {"hour": HOUR, "minute": MINUTE, "second": SECOND, "millisecond": 1000, "microsecond": 1}.get(unit)
    if size is None:
        raise unrecognized(word, "interval")
    return months, days, truncated(micros, size) * size


@own("text", "interval", to="numeric")
def extract_interval(word: str, value: Interval) -> Decimal:
    months, days, micros = value
    years, month = truncated(months, 12), months - 12 * truncated(months, 12)
    minutes = truncated(micros, MINUTE)
    unit = unit_of(word)
    whole = {
        "year": years, "month": month, "day": days, "quarter": truncated(month, 3) + 1, "decade": truncated(years, 10),
        "century": truncated(years, 100), "millennium": truncated(years, 1000), "hour": truncated(micros, HOUR),
        "minute": minutes - 60 * truncated(minutes, 60), "microsecond": micros - minutes * MINUTE,
    }.get(unit)  # fmt: skip
    if whole is not None:
        return Decimal(whole)
    if unit == "second":
        return Decimal(micros - minutes * MINUTE).scaleb(-6)
    if unit == "millisecond":
        return Decimal(micros - minutes * MINUTE).scaleb(-3)
    if unit == "epoch":
        # a year has 365.25 days
        return Decimal(years * 31_557_600 + month * 2_592_000 + days * 86_400) + Decimal(micros).scaleb(-6)
    raise unrecognized(word, "interval")


@own("interval", to="float8")
def epoch_interval(value: Interval) -> float:
    """As date_part gives it: a sum of doubles, in PostgreSQL's order."""
    months, days, micros = value
    years = truncated(months, 12)
    return micros / 1e6 + 365.25 * 86_400 * years + 30.0 * 86_400 * (months - 12 * years) + 86_400.0 * days


@own("text", "time", to="numeric")
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
    raise unrecognized(word, "time without time zone")


@own("interval", "timestamp", "timestamp", to="timestamp")
def date_bin(stride: Interval, value: datetime, origin: datetime) -> datetime:
    if stride[0]:
        raise FeatureNotSupported("timestamps cannot be binned into intervals containing months or years")
    size = stride[1] * DAY + stride[2]
    if size <= 0:
        raise of("22008", "stride must be greater than zero")
    difference = (value - origin) // timedelta(microseconds=1)
    return origin + timedelta(microseconds=difference // size * size)


@own("timestamp", "timestamp", "interval", to="timestamp[]", name="series_timestamp")
def series(first: datetime, last: datetime, step: Interval) -> list[datetime]:
    """generate_series, for steps that DuckDB refuses: those with signs of both kinds."""
    forward = (step[0] * 30 + step[1]) * DAY + step[2] > 0
    found: list[datetime] = []
    while first <= last if forward else first >= last:
        found.append(first)
        month = first.year * 12 + first.month - 1 + step[0]
        year, month = divmod(month, 12)
        day = min(first.day, calendar.monthrange(year, month + 1)[1])
        first = first.replace(year=year, month=month + 1, day=day) + timedelta(days=step[1], microseconds=step[2])
    return found


@own("timestamp", "timestamp", to="interval")
def age(a: datetime, b: datetime) -> Interval:
    """In years, months and days, where a subtraction is in days."""
    negative = a < b
    later, earlier = (b, a) if negative else (a, b)
    micros = _clock(later) - _clock(earlier)
    days, months = later.day - earlier.day, (later.year - earlier.year) * 12 + later.month - earlier.month
    if micros < 0:
        micros, days = micros + DAY, days - 1
    if days < 0:
        # the days of the month of the one that is subtracted, or of the first if signs are turned
        days, months = days + calendar.monthrange(earlier.year, earlier.month)[1], months - 1
    return (-months, -days, -micros) if negative else (months, days, micros)


def _clock(value: datetime) -> int:
    return (value.hour * 3600 + value.minute * 60 + value.second) * 1_000_000 + value.microsecond


# --- time of day -----------------------------------------------------------------------------------------------------------------


@own("time", "interval", to="time")
def time_add(micros: int, value: Interval) -> int:
    return (micros + value[2]) % DAY


@own("time", "interval", to="time")
def time_subtract(micros: int, value: Interval) -> int:
    return (micros - value[2]) % DAY


@own("date", "time", to="timestamp")
def date_at_time(day: date, micros: int) -> datetime:
    return datetime(day.year, day.month, day.day) + timedelta(microseconds=micros)
