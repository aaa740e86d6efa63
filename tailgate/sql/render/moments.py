"""Dates and timestamps as Spark and DuckDB read them in literals: of any year, and infinite."""

from __future__ import annotations

from tailgate.values.times.calendar import DAY, INFINITIES_DATE, INFINITIES_TIME, civil
from tailgate.values.times.dates import write_time

YEAR_MAX = 9999  # later years have a sign in Spark


def spark_date(days: int) -> str:
    """Returns a date, also an infinite one, with its astronomical year.

    >>> spark_date(0), spark_date(-719528)
    ('1970-01-01', '0000-01-01')
    """
    year, month, day = civil(days)
    sign = "-" if year < 0 else "+" if year > YEAR_MAX else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}"


def spark_timestamp(micros: int) -> str:
    days, time = divmod(micros, DAY)
    return f"{spark_date(days)} {write_time(time).decode()}"


def duckdb_date(days: int) -> str:
    """Returns a date.

    >>> duckdb_date(0), duckdb_date(-719528), duckdb_date(2**31 - 1)
    ('1970-01-01', '0001-01-01 (BC)', 'infinity')
    """
    if days in INFINITIES_DATE:
        return INFINITIES_DATE[days].decode()
    year, month, day = civil(days)
    return f"{year:04}-{month:02}-{day:02}" if year > 0 else f"{1 - year:04}-{month:02}-{day:02} (BC)"


def duckdb_timestamp(micros: int) -> str:
    """Returns a timestamp, in UTC if its type has a time zone."""
    if micros in INFINITIES_TIME:
        return INFINITIES_TIME[micros].decode()
    days, time = divmod(micros, DAY)
    return f"{duckdb_date(days)} {write_time(time).decode()}"
