"""AT TIME ZONE, and the text of timestamps in a time zone."""

from __future__ import annotations

from tailgate.lake.errors import InvalidParameterValue
from tailgate.sql.compute.registry import udf
from tailgate.sql.compute.time.interval_functions import Interval
from tailgate.values.times.calendar import INFINITIES_TIME, SECOND, time_in_range
from tailgate.values.times.dates import write_timestamp
from tailgate.values.times.intervals import write_postgres
from tailgate.values.times.zones import offset_text, to_local, to_utc, zone


@udf("text", "timestamp", to="timestamptz")
def timestamp_at_zone(zone_name: str, local: int) -> int:
    return local if local in INFINITIES_TIME else to_utc(local, zone(zone_name))


@udf("text", "timestamptz", to="timestamp")
def timestamptz_at_zone(zone_name: str, moment: int) -> int:
    return moment if moment in INFINITIES_TIME else to_local(moment, zone(zone_name))


def fixed_offset(offset: Interval) -> int:
    """Returns an offset east of UTC in seconds, without a fraction. It may have more than a day. Raises 22023."""
    months, days, micros = offset
    if months or days:
        shown = write_postgres(offset).decode()
        raise InvalidParameterValue(f'interval time zone "{shown}" must not include months or days')
    return -(-micros // SECOND) if micros < 0 else micros // SECOND


@udf("interval", "timestamp", to="timestamptz")
def timestamp_at_offset(offset: Interval, local: int) -> int:
    return local if local in INFINITIES_TIME else time_in_range(local - fixed_offset(offset) * SECOND)


@udf("interval", "timestamptz", to="timestamp")
def timestamptz_at_offset(offset: Interval, moment: int) -> int:
    return moment if moment in INFINITIES_TIME else time_in_range(moment + fixed_offset(offset) * SECOND)


@udf("timestamptz", "text", to="text")
def timestamptz_to_text_at(moment: int, zone_name: str) -> str:
    """Returns a timestamp's text in a time zone."""
    local = to_local(moment, zone(zone_name))
    suffix = b"" if moment in INFINITIES_TIME else offset_text((local - moment) // SECOND)
    return write_timestamp(local, suffix).decode()
