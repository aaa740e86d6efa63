"""Formatting and parsing of dates and of times of day by patterns. A pattern with fields that the value lacks is an error.

Source: ksqlDB 0.29, documentation, "Scalar functions", section "Date and time"; LocalDate and LocalTime of java.time.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from tailgate.lake.errors import DatetimeFieldOverflow, InvalidDatetimeFormat, InvalidParameterValue
from tailgate.sql.compute.ksqldb.time_patterns import parts_of
from tailgate.sql.compute.ksqldb.times import EPOCH, formatted, local_micros, matched, zone_of_fields
from tailgate.sql.compute.registry import udf

DATE, TIME, DAY = "date", "time", "day"
LETTERS = {DATE: "GuyYMLdDEecQqwW", TIME: "aHkKhmsSnAN"}
OTHERS = {DATE: LETTERS[TIME], TIME: LETTERS[DATE], DAY: ""}


@udf("timestamp", "text", "text", to="text")
def ksqldb_format_fields(value: int, pattern: str, kind: str) -> str:
    """Returns the date or the time (`kind`) of a UTC timestamp as a pattern says. Raises 22007 for another field."""
    if kind not in LETTERS:
        raise InvalidParameterValue(f'a pattern has no kind "{kind}"')
    try:
        utc = EPOCH + timedelta(microseconds=value)
    except OverflowError:
        raise DatetimeFieldOverflow("timestamp out of range") from None
    return formatted(utc, parts_of(pattern), LETTERS[kind])


@udf("text", "text", "text", to="timestamp")
def ksqldb_parse_fields(text: str, pattern: str, kind: str) -> int:
    """Returns the timestamp of a text with all fields of a date, or of a time of day.

    `kind`: date (without a field of a time), time (without one of a date), or day (a date, with or without a time). Raises 22007.
    """
    if kind not in OTHERS:
        raise InvalidParameterValue(f'a pattern has no kind "{kind}"')
    values, counts = matched(text, pattern)
    if any(letter in OTHERS[kind] for letter in values) or not (_has_time if kind == TIME else _has_date)(values):
        raise InvalidDatetimeFormat(f'text "{text}" has not the fields of a {kind} in the pattern "{pattern}"')
    try:
        micros = local_micros(values, counts)
        zone_of_fields(values)  # a zone that does not exist is an error
    except (ValueError, InvalidParameterValue):
        raise InvalidDatetimeFormat(f'text "{text}" is not a valid date or time') from None
    return micros


def _has_date(values: Collection[str]) -> bool:
    """Returns whether fields determine a date."""
    return ("y" in values or "u" in values) and ("D" in values or ("d" in values and ("M" in values or "L" in values)))


def _has_time(values: Collection[str]) -> bool:
    """Returns whether fields determine a time of day. Smaller fields than the last one are 0."""
    hour = "H" in values or "k" in values or ("a" in values and ("h" in values or "K" in values))
    fraction = "S" in values or "n" in values
    no_gap = ("m" in values or not ("s" in values or fraction)) and ("s" in values or not fraction)
    return "A" in values or "N" in values or (hour and no_gap)
