"""Functions of the session's time zone: `zone_name` is a value of the setting TimeZone.

Source: PostgreSQL 15, src/backend/utils/adt/{timestamp,date}.c.
"""

from __future__ import annotations

from collections.abc import Callable

from tailgate.lake.ranges import MULTIRANGE_OF
from tailgate.lake.types import TIMESTAMPTZ, Type
from tailgate.sql.compute.registry import udf
from tailgate.sql.compute.series import stepped
from tailgate.sql.compute.time.date_formats import to_char_zoned
from tailgate.sql.compute.time.date_parsing import parsed_timestamp
from tailgate.sql.compute.time.interval_functions import Interval
from tailgate.sql.compute.time.times import plus_months, truncated_at
from tailgate.values.codec.codec import Value
from tailgate.values.codec.style import Style
from tailgate.values.ranges import forms as ranges
from tailgate.values.ranges import multiranges
from tailgate.values.registry import read_text, text_writer
from tailgate.values.strings.jsonb import dump
from tailgate.values.times.calendar import INFINITIES_TIME, time_in_range
from tailgate.values.times.dates import read_timestamptz, write_timestamp, write_timestamptz
from tailgate.values.times.intervals import order_key
from tailgate.values.times.units import DAY, SECOND
from tailgate.values.times.zoned_times import read_timetz, zoned
from tailgate.values.times.zones import of_session, offset, offset_text, to_local, to_utc

TIMETZ = Type("timetz")


@udf("timestamptz", "text", to="timestamp")
def local_of_moment(moment: int, zone_name: str) -> int:
    return to_local(moment, of_session(zone_name))


@udf("timestamp", "text", to="timestamptz")
def moment_of_local(local: int, zone_name: str) -> int:
    return local if local in INFINITIES_TIME else to_utc(local, of_session(zone_name))


@udf("timestamptz", "text", to="int4")
def offset_of_moment(moment: int, zone_name: str) -> int | None:
    """Returns the seconds east of UTC."""
    return None if moment in INFINITIES_TIME else offset(zone_name, moment // SECOND)


@udf("timestamptz", "text", to="text")
def text_of_moment(moment: int, zone_name: str) -> str:
    return write_timestamptz(moment, zone_name).decode()


@udf("timestamptz", "text", to="jsonb")
def jsonb_of_moment(moment: int, zone_name: str) -> str:
    east = offset_text(offset(zone_name, moment // SECOND))
    suffix = east if b":" in east else east + b":00"
    return dump(write_timestamp(to_local(moment, of_session(zone_name)), suffix, b"T").decode())


@udf("text", "text", to="timestamptz")
def moment_of_text(text: str, zone_name: str) -> int:
    return read_timestamptz(text, TIMESTAMPTZ, Style(time_zone=zone_name))


@udf("text", "text", to="timetz")
def timetz_of_text(text: str, zone_name: str) -> int:
    return read_timetz(text, TIMETZ, Style(time_zone=zone_name))


@udf("timestamptz", "text", to="timetz")
def timetz_of_moment(moment: int, zone_name: str) -> int | None:
    if moment in INFINITIES_TIME:
        return None
    east = offset(zone_name, moment // SECOND)
    return zoned((moment + east * SECOND) % DAY, east)


@udf("time", "timestamptz", "text", to="timetz")
def timetz_of_time(micros: int, now: int, zone_name: str) -> int:
    """Returns a time with the offset that the zone has today at this time."""
    zone = of_session(zone_name)
    local = to_local(now, zone) // DAY * DAY + micros
    return zoned(micros, (local - to_utc(local, zone)) // SECOND)


@udf("timestamptz", "interval", "int4", "text", to="timestamptz")
def moment_plus(moment: int, interval: Interval, sign: int, zone_name: str) -> int:
    """Returns a moment plus or minus an interval: months and days of local time, one after the other, then the time."""
    if moment in INFINITIES_TIME:
        return moment
    months, days, micros = (sign * part for part in interval)
    zone = of_session(zone_name)
    if months:
        moment = to_utc(time_in_range(plus_months(to_local(moment, zone), months)), zone)
    if days:
        moment = to_utc(time_in_range(to_local(moment, zone) + days * DAY), zone)
    return time_in_range(moment + micros)


@udf("timestamptz", "timestamptz", "interval", "text", to="timestamptz[]")
def series_of_moments(first: int, last: int, step: Interval, zone_name: str) -> list[int]:
    """Computes generate_series(). Raises 22023, 54000."""
    return stepped(first, last, order_key(step), lambda moment: moment_plus(moment, step, 1, zone_name))


@udf("text", "timestamptz", "text", to="timestamptz")
def moment_truncated(unit: str, moment: int, zone_name: str) -> int:
    return moment if moment in INFINITIES_TIME else truncated_at(unit, moment, of_session(zone_name))


@udf("int4range", "text", to="text")
def range_to_text_in(form: bytes, zone_name: str) -> str:
    return text_writer(Type(ranges.decode(form).type.name), Style(time_zone=zone_name))(form).decode()


@udf("int4multirange", "text", to="text")
def multirange_to_text_in(form: bytes, zone_name: str) -> str:
    return text_writer(Type(MULTIRANGE_OF[multiranges.decode(form).type.name]), Style(time_zone=zone_name))(form).decode()


def _reader(type: Type) -> Callable[[str, str], Value]:
    return lambda text, zone_name: read_text(text, type, Style(time_zone=zone_name))


for _name in ("tstzrange", "tstzmultirange"):
    udf("text", "text", to=_name, name=f"text_to_{_name}_in")(_reader(Type(_name)))


@udf("timestamptz", "text", "text", to="text")
def moment_to_char(moment: int, pattern: str, zone_name: str) -> str | None:
    return to_char_zoned(moment, pattern, of_session(zone_name))


@udf("text", "text", "text", to="timestamptz")
def moment_of_pattern(text: str, pattern: str, zone_name: str) -> int:
    local, has_zone = parsed_timestamp(text, pattern)
    return local if has_zone else to_utc(local, of_session(zone_name))
