"""The calendar: days since 1970 from and to year, month and day, for any year.

Python's datetime ends at year 9999 and begins at 1; PostgreSQL's dates do not.

Source: H. Hinnant, "chrono-compatible low-level date algorithms"; PostgreSQL 15, src/backend/utils/adt/datetime.c, j2date.
"""

from __future__ import annotations

DAY = 86_400_000_000  # µs
SECOND = 1_000_000  # µs
JULIAN_DAY_1970 = 2_440_588
DAYS_TO_2000 = 10_957  # PostgreSQL counts from 2000-01-01
MICROS_TO_2000 = DAYS_TO_2000 * DAY

# How infinity is stored: DuckDB's and PostgreSQL's largest and smallest.
INFINITIES_DATE = {2**31 - 1: b"infinity", -(2**31) + 1: b"-infinity", -(2**31): b"-infinity"}
INFINITIES_TIME = {2**63 - 1: b"infinity", -(2**63) + 1: b"-infinity", -(2**63): b"-infinity"}


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
