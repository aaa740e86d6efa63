"""AT TIME ZONE, and the text of timestamps in a time zone."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone, tzinfo

from tailgate.lake.errors import InvalidParameterValue
from tailgate.sql.compute.casts import micros_of
from tailgate.sql.compute.registry import udf
from tailgate.sql.compute.time.interval_functions import Interval
from tailgate.values.times.dates import write_timestamp
from tailgate.values.times.zones import offset_text, to_local, to_utc, zone


@udf("text", "timestamp", to="timestamptz")
def timestamp_at_zone(zone_name: str, local: datetime) -> datetime:
    return to_utc(local, zone(zone_name))


@udf("text", "timestamptz", to="timestamp")
def timestamptz_at_zone(zone_name: str, moment: datetime) -> datetime:
    return to_local(moment, zone(zone_name))


def _fixed_zone(offset: Interval) -> tzinfo:
    months, days, micros = offset
    if months or days:
        raise InvalidParameterValue("interval time zone must not include months or days")
    return timezone(timedelta(microseconds=micros))


@udf("interval", "timestamp", to="timestamptz")
def timestamp_at_offset(offset: Interval, local: datetime) -> datetime:
    return to_utc(local, _fixed_zone(offset))


@udf("interval", "timestamptz", to="timestamp")
def timestamptz_at_offset(offset: Interval, moment: datetime) -> datetime:
    return to_local(moment, _fixed_zone(offset))


@udf("timestamptz", "text", to="text")
def timestamptz_to_text_at(moment: datetime, zone_name: str) -> str:
    """Returns a timestamp's text in a time zone."""
    local = moment.astimezone(zone(zone_name))
    offset = int((local.utcoffset() or timedelta()).total_seconds())
    return write_timestamp(micros_of(local.replace(tzinfo=None)), offset_text(offset)).decode()
