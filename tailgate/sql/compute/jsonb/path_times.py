"""The dates and times of a jsonpath, which its method datetime() reads from texts.

Source: PostgreSQL 15, src/backend/utils/adt/{jsonpath_exec,json}.c.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from time import time

from tailgate.lake.errors import FeatureNotSupported, TailgateError
from tailgate.lake.types import Type
from tailgate.sql.compute.jsonb.path_methods import PathError
from tailgate.values.codec.style import DEFAULT
from tailgate.values.times.dates import read_date, read_time, write_date, write_time, write_timestamp
from tailgate.values.times.units import DAY, SECOND
from tailgate.values.times.zones import of_session, offset, to_utc

NOT_DATETIME = "22031"
DIGITS_MAX = 100  # of a field; Python reads no integers of 5,000 digits
_INTEGER = f"[0-9]{{1,{DIGITS_MAX}}}"
_DATE = rf"\s*(?P<date>{_INTEGER}-\s*{_INTEGER}-\s*{_INTEGER})"
_TIME = rf"\s*(?P<time>{_INTEGER}:\s*{_INTEGER}:\s*{_INTEGER}(?!\d)(\.\d{{1,6}}(?!\d))?)"
_ZONE = rf"(?P<sign>[-+ ])\s*(?P<hours>\+?{_INTEGER})(:\s*(?P<minutes>{_INTEGER}))?"
_FORMS = tuple(
    (kind, re.compile(form + r"\s*", re.ASCII))
    for kind, form in (
        ("date", _DATE),
        ("timetz", _TIME + _ZONE),
        ("time", _TIME),
        ("timestamptz", f"{_DATE}[ T]{_TIME}{_ZONE}"),
        ("timestamp", f"{_DATE}[ T]{_TIME}"),
    )
)
HOURS_MAX, MINUTES_MAX = 15, 59  # of the offset of a zone
LAST_HOUR, LAST_SECOND = 23, 59


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or time.

    - `kind`: the name of its type, such as timestamptz
    - `value`: days or microseconds since 1970, microseconds of a day; with a zone they are local
    - `east`: the seconds of the zone, which only timetz and timestamptz have
    """

    kind: str
    value: int
    east: int = 0

    @property
    def type_name(self) -> str:
        return Type(self.kind).facts.sql

    @property
    def text(self) -> str:
        """Returns the ISO 8601 form, which JSON has."""
        hours, minutes = divmod(abs(self.east) // 60, 60)
        zone = f"{'-' if self.east < 0 else '+'}{hours:02d}:{minutes:02d}".encode() if self.kind.endswith("tz") else b""
        if self.kind == "date":
            return write_date(self.value).decode()
        if self.kind.startswith("timestamp"):
            return write_timestamp(self.value, zone, b"T").decode()
        return (write_time(self.value) + zone).decode()


def read(value: object) -> Moment:
    """Returns the date or time in a text in an ISO form. Raises PathError."""
    if not isinstance(value, str):
        raise PathError(NOT_DATETIME, "jsonpath item method .datetime() can only be applied to a string")
    for kind, form in _FORMS:
        match = form.fullmatch(value)
        moment = _moment(kind, match) if match is not None else None
        if moment is not None:
            return moment
    raise PathError(NOT_DATETIME, f'datetime format is not recognized: "{value}"')


def _moment(kind: str, match: re.Match[str]) -> Moment | None:
    """Returns the date or time of a match, or None if a field is out of range."""
    parts, number, east = match.groupdict(), 0, 0
    if parts.get("hours"):
        hours, minutes = int(parts["hours"]), int(parts["minutes"] or 0)
        if hours > HOURS_MAX or minutes > MINUTES_MAX:
            return None
        east = (hours * 3600 + minutes * 60) * (-1 if parts["sign"] == "-" else 1)
    try:
        if date := parts.get("date"):
            year, month, day = map(int, date.split("-"))
            number = read_date(f"{year:04d}-{month:02d}-{day:02d}", Type("date"), DEFAULT)
        if clock := parts.get("time"):
            whole, _, fraction = clock.partition(".")
            hour, minute, second = map(int, whole.split(":"))
            if hour > LAST_HOUR or second > LAST_SECOND:
                return None
            number = number * DAY + read_time(f"{hour:02d}:{minute:02d}:{second:02d}.{fraction}", Type("time"), DEFAULT)
    except TailgateError:
        return None
    return Moment(kind, number, east)


def order(a: Moment, b: Moment, zone: str | None) -> int | None:
    """Returns -1, 0 or 1, or None for a date and a time of day. Without a zone, comparisons that need one raise 0A000."""
    if (a.kind.startswith("time") and not a.kind.startswith("timestamp")) != (
        b.kind.startswith("time") and not b.kind.startswith("timestamp")
    ):
        return None
    if a.kind.endswith("tz") != b.kind.endswith("tz") and zone is None:
        source, target = (b, a) if a.kind.endswith("tz") else (a, b)
        message = f"cannot convert value from {source.kind} to {target.kind} without time zone usage"
        raise FeatureNotSupported(message)
    in_zone = a.kind.endswith("tz") or b.kind.endswith("tz")
    first, second = (_key(moment, zone if in_zone else None) for moment in (a, b))
    return (first > second) - (first < second)


def _key(moment: Moment, zone: str | None) -> tuple[int, int]:
    """Returns a key that compares like the moment, in UTC if there is a zone."""
    match moment.kind:
        case "timestamptz":
            return moment.value - moment.east * SECOND, 0
        case "timetz":
            return moment.value - moment.east * SECOND, -moment.east
        case "time":
            east = 0 if zone is None else offset(zone, int(time()))
            return moment.value - east * SECOND, -east
    local = moment.value * DAY if moment.kind == "date" else moment.value
    return (local if zone is None else to_utc(local, of_session(zone))), 0
