"""The calendar: days since 1970 from and to year, month and day, for any year; the limits of dates and timestamps.

Python's datetime ends at year 9999 and begins at 1; PostgreSQL's dates do not.

Source: H. Hinnant, "chrono-compatible low-level date algorithms"; PostgreSQL 15, src/backend/utils/adt/datetime.c, j2date.
"""

from __future__ import annotations

from tailgate.lake.errors import DatetimeFieldOverflow

DAY = 86_400_000_000  # µs
SECOND = 1_000_000  # µs
JULIAN_DAY_1970 = 2_440_588
DAYS_TO_2000 = 10_957  # PostgreSQL counts from 2000-01-01
MICROS_TO_2000 = DAYS_TO_2000 * DAY

# Infinity is stored as in DuckDB: -infinity is its negative.
INFINITE_DAY, INFINITE_TIME = 2**31 - 1, 2**63 - 1
INFINITIES_DATE = {INFINITE_DAY: b"infinity", -INFINITE_DAY: b"-infinity"}
INFINITIES_TIME = {INFINITE_TIME: b"infinity", -INFINITE_TIME: b"-infinity"}
# The limits: 4714-11-24 BC, 5874897-12-31, and the last microsecond of 64 bits in year 294247.
FIRST_DAY, LAST_DAY = -JULIAN_DAY_1970, 2_145_042_905
FIRST_TIME, LAST_TIME = FIRST_DAY * DAY, INFINITE_TIME - 1


def civil(days: int) -> tuple[int, int, int]:
    """Returns year (astronomical: 0 is 1 BC), month and day.

    >>> civil(0), civil(-719528)
    ((1970, 1, 1), (0, 1, 1))
    """
    days += 719_468
    era = days // 146_097
    day_of_era = days - era * 146_097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def days(year: int, month: int, day: int) -> int:
    """Returns the days since 1970-01-01 of a date. The inverse of `civil`.

    >>> days(1970, 1, 1), days(0, 1, 1)
    (0, -719528)
    """
    year -= month <= 2
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def day_in_range(days: int, text: str = "") -> int:
    """Returns a day. Raises 22008 if it is not a finite date; `text` is its input."""
    if not FIRST_DAY <= days <= LAST_DAY:
        raise DatetimeFieldOverflow("date out of range" + (f': "{text}"' if text else ""))
    return days


def time_in_range(micros: int, text: str = "") -> int:
    """Returns µs since 1970. Raises 22008 if they are not a finite timestamp; `text` is its input."""
    if not FIRST_TIME <= micros <= LAST_TIME:
        raise DatetimeFieldOverflow("timestamp out of range" + (f': "{text}"' if text else ""))
    return micros


def date_to_timestamp(days: int) -> int:
    """Returns midnight of a date, in µs since 1970. Raises 22008."""
    if days in INFINITIES_DATE:
        return INFINITE_TIME if days > 0 else -INFINITE_TIME
    if not FIRST_TIME <= days * DAY <= LAST_TIME:
        raise DatetimeFieldOverflow("date out of range for timestamp")
    return days * DAY


def timestamp_to_date(micros: int) -> int:
    if micros in INFINITIES_TIME:
        return INFINITE_DAY if micros > 0 else -INFINITE_DAY
    return micros // DAY


def weekday(days: int) -> int:
    """Returns the day of the week of a day since 1970, from 0 for Monday."""
    return (days + 3) % 7


def iso_week(day: int) -> tuple[int, int]:
    """Returns the year and week of ISO 8601 of a day since 1970. The year is astronomical.

    >>> iso_week(days(2027, 1, 1))
    (2026, 53)
    """
    thursday = day - weekday(day) + 3
    year = civil(thursday)[0]
    return year, (thursday - days(year, 1, 1)) // 7 + 1
