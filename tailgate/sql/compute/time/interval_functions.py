"""Functions of intervals, which are (months, days, microseconds).

Source: PostgreSQL 15, src/backend/utils/adt/timestamp.c.
"""

from __future__ import annotations

import math
from decimal import Decimal

from tailgate.lake.errors import DatetimeFieldOverflow, DivisionByZero, TailgateError
from tailgate.sql.compute.registry import udf
from tailgate.values.times.units import DAY, HOUR, MINUTE, SECOND, unit_of, unsupported

Interval = tuple[int, int, int]
MONTHS_PER_UNIT = {"millennium": 12000, "century": 1200, "decade": 120, "year": 12, "quarter": 3, "month": 1}
MICROS_PER_UNIT = {"hour": HOUR, "minute": MINUTE, "second": SECOND, "millisecond": 1000, "microsecond": 1}


def out_of_range() -> TailgateError:
    return DatetimeFieldOverflow("interval out of range")


def checked(months: int, days: int, micros: int) -> Interval:
    """Returns an interval. Raises 22008 if a part is out of range."""
    if not -(2**31) <= months < 2**31 or not -(2**31) <= days < 2**31 or not -(2**63) <= micros < 2**63:
        raise out_of_range()
    return months, days, micros


def quotient(a: int, b: int) -> int:
    """Returns a / b rounded towards zero."""
    return abs(a) // b * (-1 if a < 0 else 1)


def remainder(a: int, b: int) -> int:
    """Returns the remainder of `quotient`, which has the sign of a."""
    return a - b * quotient(a, b)


# --- arithmetic ----------------------------------------------------------------------------------


@udf("interval", "interval", to="interval")
def interval_add(a: Interval, b: Interval) -> Interval:
    return checked(a[0] + b[0], a[1] + b[1], a[2] + b[2])


@udf("interval", "interval", to="interval")
def interval_subtract(a: Interval, b: Interval) -> Interval:
    return checked(a[0] - b[0], a[1] - b[1], a[2] - b[2])


@udf("interval", to="interval")
def interval_negate(a: Interval) -> Interval:
    return checked(-a[0], -a[1], -a[2])


@udf("interval", "float8", to="interval")
def interval_multiply(a: Interval, factor: float) -> Interval:
    return _rounded(a[0] * factor, a[1] * factor, a[2] * factor)


@udf("interval", "float8", to="interval")
def interval_divide(a: Interval, divisor: float) -> Interval:
    if divisor == 0:
        raise DivisionByZero("division by zero")
    return _rounded(a[0] / divisor, a[1] / divisor, a[2] / divisor)


def _round_to_micros(seconds: float) -> float:
    return float(round(seconds * 1e6)) / 1e6


def _rounded(months: float, days: float, micros: float) -> Interval:
    """Returns an interval of integers.

    Fractions of months become days (30 each), and fractions of days become time.
    """
    if not all(map(math.isfinite, (months, days, micros))) or abs(months) >= 2**31 or abs(days) >= 2**31:
        raise out_of_range()
    whole_months, whole_days = int(months), int(days)
    month_days = _round_to_micros((months - whole_months) * 30)
    seconds = _round_to_micros((days - whole_days + month_days - int(month_days)) * 86400)
    if abs(seconds) >= 86400:
        whole_days += int(seconds / 86400)
        seconds -= int(seconds / 86400) * 86400
    whole_days += int(month_days)
    total_micros = micros + seconds * 1e6
    if abs(total_micros) >= 2**63:
        raise out_of_range()
    return checked(whole_months, whole_days, round(total_micros))


# --- justification -------------------------------------------------------------------------------


@udf("interval", to="interval")
def justify_hours(value: Interval) -> Interval:
    months, days, micros = value
    return checked(months, *_same_sign(days + quotient(micros, DAY), remainder(micros, DAY), DAY))


@udf("interval", to="interval")
def justify_days(value: Interval) -> Interval:
    months, days, micros = value
    return checked(*_same_sign(months + quotient(days, 30), remainder(days, 30), 30), micros)


@udf("interval", to="interval")
def justify_interval(value: Interval) -> Interval:
    months, days, micros = value
    days, micros = days + quotient(micros, DAY), remainder(micros, DAY)
    months, days = months + quotient(days, 30), remainder(days, 30)
    if months > 0 and (days < 0 or (days == 0 and micros < 0)):
        months, days = months - 1, days + 30
    elif months < 0 and (days > 0 or (days == 0 and micros > 0)):
        months, days = months + 1, days - 30
    return checked(months, *_same_sign(days, micros, DAY))


def _same_sign(large: int, small: int, unit: int) -> tuple[int, int]:
    """Moves one unit between a large and a small part whose signs differ."""
    if large > 0 > small:
        return large - 1, small + unit
    if large < 0 < small:
        return large + 1, small - unit
    return large, small


@udf("int4", "int4", "int4", "int4", "int4", "int4", "float8", to="interval")
def make_interval(years: int, months: int, weeks: int, days: int, hours: int, minutes: int, seconds: float) -> Interval:
    if not math.isfinite(seconds):
        raise out_of_range()
    return checked(years * 12 + months, weeks * 7 + days, hours * HOUR + minutes * MINUTE + round(seconds * 1e6))


# --- parts ---------------------------------------------------------------------------------------


@udf("text", "interval", to="interval")
def date_trunc_interval(word: str, value: Interval) -> Interval:
    months, days, micros = value
    unit = unit_of(word)
    if unit in MONTHS_PER_UNIT:
        return months - remainder(months, MONTHS_PER_UNIT[unit]), 0, 0
    if unit == "day":
        return months, days, 0
    if unit not in MICROS_PER_UNIT:
        raise unsupported(word, "interval")
    return months, days, micros - remainder(micros, MICROS_PER_UNIT[unit])


@udf("text", "interval", to="numeric")
def extract_interval(word: str, value: Interval) -> Decimal:
    months, days, micros = value
    years, months_of_year = quotient(months, 12), remainder(months, 12)
    micros_of_minute = remainder(micros, MINUTE)
    match unit_of(word):
        case "year":
            return Decimal(years)
        case "month":
            return Decimal(months_of_year)
        case "day":
            return Decimal(days)
        case "quarter":
            return Decimal(quotient(months_of_year, 3) + 1)
        case "decade":
            return Decimal(quotient(years, 10))
        case "century":
            return Decimal(quotient(years, 100))
        case "millennium":
            return Decimal(quotient(years, 1000))
        case "hour":
            return Decimal(quotient(micros, HOUR))
        case "minute":
            return Decimal(remainder(quotient(micros, MINUTE), 60))
        case "microsecond":
            return Decimal(micros_of_minute)
        case "second":
            return Decimal(micros_of_minute).scaleb(-6)
        case "millisecond":
            return Decimal(micros_of_minute).scaleb(-3)
        case "epoch":  # a year has 365.25 days, a month has 30
            seconds = years * 31_557_600 + months_of_year * 2_592_000 + days * 86_400
            return Decimal(seconds) + Decimal(micros).scaleb(-6)
    raise unsupported(word, "interval")


@udf("interval", to="float8")
def epoch_interval(value: Interval) -> float:
    """Returns an interval in seconds for date_part(): a sum of doubles, in PostgreSQL's order."""
    months, days, micros = value
    years, months_of_year = quotient(months, 12), remainder(months, 12)
    return micros / 1e6 + 365.25 * 86_400 * years + 30.0 * 86_400 * months_of_year + 86_400.0 * days
