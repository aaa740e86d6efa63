"""The input functions of dates, timestamps and times, with DateStyle "ISO, MDY".

Infinity and words whose meaning depends on the current time (now, today) are not supported.

Source: PostgreSQL 15, appendix "Date/Time Support".
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_EVEN, Decimal
from typing import NamedTuple

from tailgate.lake.errors import DatetimeFieldOverflow, FeatureNotSupported, InvalidDatetimeFormat, TailgateError, of
from tailgate.sql.input import zones
from tailgate.sql.input.numbers import BLANKS
from tailgate.sql.input.units import DAY, MINUTE, SECOND

DAY_OF_MONTH, YEAR, MONTH_NAME = r"(?P<day>\d{1,2})", r"(?P<year>\d{4,6})", r"(?P<name>[A-Za-z]{3,9})\.?"
MONTH = r"(?P<month>\d{1,2})"
DATES = [
    re.compile(pattern + r"(?P<rest>(?:[T\s+-].*|[zZ])?)", re.S)
    for pattern in (
        rf"{YEAR}-{MONTH}-{DAY_OF_MONTH}",
        r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})",
        rf"{YEAR}/{MONTH}/{DAY_OF_MONTH}",
        rf"{MONTH}[/-]{DAY_OF_MONTH}[/-]{YEAR}",
        rf"{MONTH_NAME}[ -]+{DAY_OF_MONTH},?[ -]+{YEAR}",
        rf"{DAY_OF_MONTH}[ -]+{MONTH_NAME},?[ -]+{YEAR}",
        rf"{YEAR}[ -]+{MONTH_NAME}[ -]+{DAY_OF_MONTH}",
        r"(?P<year>\d{4})-(?P<ordinal>\d{3})",
        r"[Jj](?P<julian>\d{1,7})",
    )
]
HALF_AND_ZONE = r"\s*(?P<half>[AaPp][Mm](?![A-Za-z]))?\s*(?P<zone>.*)"
TIMES = [
    re.compile(pattern, re.S)
    for pattern in (
        rf"(?P<hour>\d{{1,2}}):(?P<minute>\d{{1,2}})(?::(?P<second>\d{{1,2}})(?P<fraction>\.\d*)?)?{HALF_AND_ZONE}",
        rf"(?P<hour>\d{{2}})(?P<minute>\d{{2}})(?:(?P<second>\d{{2}})(?P<fraction>\.\d*)?)?{HALF_AND_ZONE}",
        r"(?P<hour>\d{1,2})(?P<minute>)(?:(?P<second>)(?P<fraction>))\s*(?P<half>[AaPp][Mm])\s*(?P<zone>.*)",
    )
]
OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2})(?::?(?P<seconds>\d{2}))?)?")
ZONE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_/+-]*")
MONTHS = "january february march april may june july august september october november december".split()
UNSUPPORTED_WORDS = ("infinity", "-infinity", "+infinity", "now", "today", "tomorrow", "yesterday")
EPOCH = date(1970, 1, 1)
JULIAN_DAY_0 = 1_721_425  # the Julian day before 0001-01-01
OFFSET_HOURS_MAX = 15
Zone = timedelta | tzinfo | None


class Moment(NamedTuple):
    """A date, the microseconds since its midnight, and an offset or a zone."""

    day: date
    micros: int
    zone: Zone


def _invalid(type: str, text: str) -> TailgateError:
    return InvalidDatetimeFormat(f'invalid input syntax for type {type}: "{text}"')


def _out_of_range(text: str) -> TailgateError:
    return DatetimeFieldOverflow(f'date/time field value out of range: "{text}"')


# --- types ---------------------------------------------------------------------------------------


def to_date(text: str) -> date:
    return _parse(text, "date").day


def to_timestamp(text: str) -> datetime:
    """Returns a timestamp; a zone in the text is ignored."""
    day, micros, _ = _parse(text, "timestamp")
    return _datetime(day, micros)


def to_timestamptz(text: str) -> datetime:
    """Returns a timestamp in UTC, which is also the zone of a text without one."""
    day, micros, zone = _parse(text, "timestamp with time zone")
    value = _datetime(day, micros)
    if isinstance(zone, tzinfo):
        return zones.to_utc(value, zone)
    try:
        return (value - (zone or timedelta())).replace(tzinfo=timezone.utc)
    except OverflowError:
        raise _out_of_range(text) from None


def to_time(text: str) -> int:
    """Returns microseconds since midnight; ignores a date before the time and a zone after it."""
    stripped = text.strip(BLANKS)
    match = _time_match(stripped)
    if match is not None and not re.match(r"\d+[-/]", stripped):
        zone = match["zone"].strip(BLANKS) if match["zone"] else ""
        # The offset of a zone such as Europe/Berlin depends on the date.
        if "/" in zone:
            raise _invalid("time", text)
        if zone:
            _zone(zone, "time", text)
        return _time(match, text)
    try:
        micros = _parse(text, "time").micros
    except TailgateError as error:
        raise _invalid("time", text) if error.sqlstate == "22007" else error from None
    if ":" not in stripped and stripped.lower() != "allballs":  # a date without a time
        raise _invalid("time", text)
    return micros


def _datetime(day: date, micros: int) -> datetime:
    try:
        return datetime.combine(day, time()) + timedelta(microseconds=micros)
    except OverflowError:
        raise FeatureNotSupported("years beyond 9999 are not supported") from None


# --- parts ---------------------------------------------------------------------------------------


def _parse(text: str, type: str) -> Moment:
    stripped = text.strip(BLANKS)
    lower = stripped.lower()
    if lower == "epoch":
        return Moment(EPOCH, 0, timedelta() if type == "timestamp with time zone" else None)
    if lower == "allballs":
        if type != "time":
            raise _invalid(type, text)
        return Moment(EPOCH, 0, None)
    if lower in UNSUPPORTED_WORDS:
        raise FeatureNotSupported(f"'{text}' as a {type} is not supported", hint="Write it as in ISO 8601: 2021-04-26 12:00:00.")
    if lower.endswith(" bc"):
        raise FeatureNotSupported("years before 1 are not supported")
    stripped = stripped[:-3].rstrip() if lower.endswith(" ad") else stripped
    match = next((m for p in DATES if (m := p.fullmatch(stripped))), None)
    if match is None:
        raise _invalid(type, text)
    day = _date(match.groupdict(), type, text)
    rest = (match["rest"] or "").strip(BLANKS)
    rest = rest[1:].lstrip() if rest[:1] in ("T", "t") and rest[1:2].isdigit() else rest
    micros = 0
    if rest[:1].isdigit():
        time_match = _time_match(rest)
        if time_match is None:
            raise _invalid(type, text)
        micros = _time(time_match, text)
        rest = time_match["zone"].strip(BLANKS)
    return Moment(day, micros, _zone(rest, type, text) if rest else None)


def _date(fields: dict[str, str | None], type: str, text: str) -> date:
    month, year, ordinal = _month(fields, type, text), int(fields.get("year") or 1), fields.get("ordinal")
    day = int(fields.get("day") or 0)
    try:
        if (julian := fields.get("julian")) is not None:
            return date.fromordinal(int(julian) - JULIAN_DAY_0)
        if ordinal is None:
            return date(year, month, day)
        ordinal_date = date(year, 1, 1) + timedelta(days=int(ordinal) - 1)
        if ordinal_date.year == year:
            return ordinal_date
    except (ValueError, OverflowError):
        if year > 9999 or fields.get("julian"):
            raise FeatureNotSupported("years before 1 and beyond 9999 are not supported") from None
    error = _out_of_range(text)
    if ordinal is None and (not 1 <= month <= 12 or not 1 <= day <= 31):
        error.hint = 'Perhaps you need a different "datestyle" setting.'
    raise error


def _month(fields: dict[str, str | None], type: str, text: str) -> int:
    if (name := fields.get("name")) is None:
        return int(fields.get("month") or 0)
    lower = name.lower()
    number = next((i for i, month in enumerate(MONTHS, 1) if month[:3] == lower[:3]), 0)
    if not number or not (len(lower) == 3 or MONTHS[number - 1] == lower or lower == "sept"):
        raise _invalid(type, text)
    return number


def _time_match(text: str) -> re.Match[str] | None:
    return next((m for p in TIMES if (m := p.fullmatch(text))), None)


def _time(match: re.Match[str], text: str) -> int:
    """Returns microseconds since midnight."""
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    if match["half"]:
        if not 1 <= hour <= 12:
            raise _out_of_range(text)
        hour = hour % 12 + 12 * (match["half"].lower() == "pm")
    fraction = Decimal("0" + (match["fraction"] or ".") + "0")
    micros = second * SECOND + int((fraction * SECOND).to_integral_value(ROUND_HALF_EVEN))
    if hour == 24 and not minute and not micros:
        return DAY
    if hour > 23 or minute > 59 or micros > MINUTE:
        raise _out_of_range(text)
    return (hour * 60 + minute) * MINUTE + micros


def _zone(zone: str, type: str, text: str) -> Zone:
    """Returns the offset of Z or a number, or the zone of a name or abbreviation."""
    if zone.lower() in ("z", "utc", "gmt"):
        return timedelta()
    match = OFFSET.fullmatch(zone)
    if match is not None:
        hours, minutes, seconds = (int(match[n] or 0) for n in ("hours", "minutes", "seconds"))
        if hours > OFFSET_HOURS_MAX or minutes > 59 or seconds > 59:
            raise of("22009", f'time zone displacement out of range: "{text}"')
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return -offset if match["sign"] == "-" else offset
    if not ZONE_NAME.fullmatch(zone):
        raise _invalid(type, text)
    try:
        return zones.zone(zone)
    except TailgateError:
        if "/" in zone:
            raise
        raise _invalid(type, text) from None
