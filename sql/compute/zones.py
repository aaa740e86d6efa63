"""AT TIME ZONE."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone, tzinfo

from lake.errors import InvalidParameterValue
from sql.compute.registry import own
from sql.input.zones import to_local, to_utc, zone

Interval = tuple[int, int, int]


@own("text", "timestamp", to="timestamptz")
def timestamp_at_zone(name: str, local: datetime) -> datetime:
    return to_utc(local, zone(name))


@own("text", "timestamptz", to="timestamp")
def timestamptz_at_zone(name: str, moment: datetime) -> datetime:
    return to_local(moment, zone(name))


def _fixed(value: Interval) -> tzinfo:
    if value[0] or value[1]:
        raise InvalidParameterValue("interval time zone must not include months or days")
    return timezone(timedelta(microseconds=value[2]))


@own("interval", "timestamp", to="timestamptz")
def timestamp_at_offset(offset: Interval, local: datetime) -> datetime:
    return to_utc(local, _fixed(offset))


@own("interval", "timestamptz", to="timestamp")
def timestamptz_at_offset(offset: Interval, moment: datetime) -> datetime:
    return to_local(moment, _fixed(offset))


@own("timestamptz", "text", to="text")
def timestamptz_to_text_at(moment: datetime, name: str) -> str:
    """As it is printed in a zone."""
    local = moment.astimezone(zone(name))
    text = local.replace(tzinfo=None).isoformat(sep=" ")
    seconds = int((local.utcoffset() or timedelta()).total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("+", seconds)
    shown = f"{sign}{seconds // 3600:02d}" + (f":{seconds // 60 % 60:02d}" if seconds % 3600 else "")
    return (text.rstrip("0") if moment.microsecond else text) + shown
