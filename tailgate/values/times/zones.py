"""Time zones by name, abbreviation or offset, and their offsets at a time.

A local time that a change of the clock skips is read with the offset before the change; a time that
occurs twice is read with the offset after it, as in PostgreSQL.

Source: PostgreSQL 15, src/backend/utils/adt/timestamp.c (timestamp_zone); src/timezone/tznames/Default.
"""

from __future__ import annotations

import re
import zoneinfo
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from tailgate.lake.errors import InvalidParameterValue
from tailgate.values.caching import cached
from tailgate.values.times.calendar import INFINITIES_TIME, SECOND, time_in_range

ZONES_CACHED = 256
MINUTES_BY_ABBREVIATION = {  # east of UTC
    name: minutes
    for minutes, names in (
        (0, "utc gmt z zulu ut wet uct"),
        (60, "cet met bst west"),
        (120, "cest mest eet sast ist"),
        (180, "eest msk idt"),
        (240, "msd gst"),
        (300, "pkt uzt"),
        (345, "npt"),
        (360, "bdst"),
        (420, "ict wib"),
        (480, "awst hkt sgt pht wita"),
        (540, "jst kst wit"),
        (570, "acst"),
        (600, "aest"),
        (630, "acdt"),
        (660, "aedt"),
        (720, "nzst"),
        (780, "nzdt"),
        (-150, "ndt"),
        (-180, "adt art brt"),
        (-210, "nst nft"),
        (-240, "ast edt clt"),
        (-300, "est cdt"),
        (-360, "cst mdt"),
        (-420, "mst pdt"),
        (-480, "pst akdt"),
        (-540, "akst hdt"),
        (-600, "hst"),
    )
    for name in names.split()
}
UTC_NAMES = {"utc": "UTC", "gmt": "GMT", "zulu": "Zulu", "z": "UTC"}
_OFFSET = re.compile(r"([+-]?)(\d{1,2})(?::?(\d\d))?(?::?(\d\d))?")
_EPOCH = datetime(1970, 1, 1)
_FIRST, _LAST = -62_135_510_400, 253_402_214_400  # seconds of years 1 and 9999, a day inside what datetime can hold
_CYCLE = 146_097 * 86_400  # seconds: after 400 years the days of the week and the leap years are the same again
OFFSET_MAX = timedelta(hours=18)  # of java.time
POSIX = re.compile(r"(?:[A-Za-z]+|<[^>]+>)?([+-]?)(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    """Returns the zones' names by their names in lower case."""
    return {name.lower(): name for name in zoneinfo.available_timezones()}


@cached(ZONES_CACHED)
def zone(name: str) -> tzinfo:
    """Returns the zone with a name. Raises 22023.

    A number is an offset in hours west of UTC, as in POSIX.
    """
    lower = name.lower()
    if lower in MINUTES_BY_ABBREVIATION:
        return timezone(timedelta(minutes=MINUTES_BY_ABBREVIATION[lower]))
    if lower in _names():
        return zoneinfo.ZoneInfo(_names()[lower])
    match = POSIX.fullmatch(name)
    hours, minutes, seconds = (int(number or 0) for number in match.groups()[1:]) if match else (24, 0, 0)
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if match is None or offset > OFFSET_MAX:
        raise InvalidParameterValue(f'time zone "{name}" not recognized')
    return timezone(offset if match[1] == "-" else -offset)


@lru_cache(maxsize=256)
def setting(name: str) -> tuple[str, tzinfo] | None:
    """Returns a value of the setting TimeZone as PostgreSQL shows it, and the zone; None if there is no such zone.

    A bare offset is in hours east of UTC; PostgreSQL shows it as in POSIX.

    >>> setting("europe/berlin")[0], setting("-7")[0], setting("nowhere")
    ('Europe/Berlin', '<-07>+07', None)
    """
    lower = name.lower()
    if lower in UTC_NAMES:
        return UTC_NAMES[lower], timezone.utc
    if lower in _names():
        return _names()[lower], zoneinfo.ZoneInfo(_names()[lower])
    posix = re.fullmatch(r"<[+-]?[\w:]+>([+-]\d.*)", name)
    match = _OFFSET.fullmatch(posix[1] if posix else name)
    if match is None:
        return None
    east = timedelta(hours=int(match[2]), minutes=int(match[3] or 0), seconds=int(match[4] or 0)) * (-1 if match[1] == "-" else 1)
    east = -east if posix else east
    if abs(east) > timedelta(hours=16):
        return None
    return name if posix else shown_offset(int(east.total_seconds())), timezone(east)


def shown_offset(seconds: int) -> str:
    """Returns the name of the zone with an offset in seconds east of UTC, as PostgreSQL shows it.

    >>> shown_offset(7200), shown_offset(-30600), shown_offset(0)
    ('<+02>-02', '<-08:30>+08:30', '<+00>-00')
    """
    west = offset_text(-seconds).decode() if seconds else "-00"
    return f"<{offset_text(seconds).decode()}>{west}"


def of_session(time_zone: str) -> tzinfo:
    """Returns the zone of a valid value of the setting TimeZone."""
    zone = setting(time_zone)
    return timezone.utc if zone is None else zone[1]


def offset_text(seconds: int) -> bytes:
    """Returns an offset as timestamps are written with.

    >>> offset_text(7200), offset_text(-12600), offset_text(3208)
    (b'+02', b'-03:30', b'+00:53:28')
    """
    sign, seconds = (b"-", -seconds) if seconds < 0 else (b"+", seconds)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    text = b"%c%02d" % (sign, hour)
    if minute or second:
        text += b":%02d" % minute
    return text + (b":%02d" % second if second else b"")


@lru_cache(maxsize=65_536)
def offset(time_zone: str, second: int) -> int:
    """Returns the seconds east of UTC of the session's zone at a second since 1970."""
    return _offset_of_moment(of_session(time_zone), second) // SECOND


def abbreviation(at: tzinfo, second: int) -> str:
    """Returns how a zone is called at a second since 1970."""
    moment = (_EPOCH + timedelta(seconds=_within(second))).replace(tzinfo=timezone.utc)
    return (
        offset_text(_offset_of_moment(at, second) // SECOND).decode() if isinstance(at, timezone) else moment.astimezone(at).tzname() or ""
    )


def named(second: int) -> list[tuple[str, str, timedelta, bool]]:
    """Returns all zones by name: the abbreviation and offset at a second since 1970, and whether they are those of summer.

    It takes 50 ms the first time, because the zones are read from files.
    """
    moment = datetime.fromtimestamp(second, timezone.utc)
    local = [(name, moment.astimezone(zoneinfo.ZoneInfo(name))) for name in sorted(_names().values())]
    return [(name, at.tzname() or "", at.utcoffset() or timedelta(), bool(at.dst())) for name, at in local]


def _within(second: int) -> int:
    """Returns a second of the years that Python's zones know, in the same place of the cycle of 400 years."""
    if second > _LAST:
        return second - ((second - _LAST) // _CYCLE + 1) * _CYCLE
    return second + ((_FIRST - second) // _CYCLE + 1) * _CYCLE if second < _FIRST else second


def _offset_of_moment(at: tzinfo, second: int) -> int:
    """Returns a zone's offset east of UTC, in µs, at a second since 1970."""
    moment = (_EPOCH + timedelta(seconds=_within(second))).replace(tzinfo=timezone.utc)
    return _micros(moment.astimezone(at).utcoffset())


def _offset_of_local(at: tzinfo, second: int) -> int:
    """Returns a zone's offset east of UTC, in µs, at a second since 1970 of its local time."""
    local = (_EPOCH + timedelta(seconds=_within(second))).replace(tzinfo=at)
    before, after = (_micros(local.replace(fold=fold).utcoffset()) for fold in (0, 1))
    return before if before < after else after  # before the change if it skips the time


def _micros(offset: timedelta | None) -> int:
    return 0 if offset is None else offset // timedelta(microseconds=1)


def to_utc(local: int, at: tzinfo) -> int:
    """Converts a local time to UTC, both in µs since 1970. Raises 22008."""
    if local in INFINITIES_TIME:
        return local
    return time_in_range(local - _offset_of_local(at, local // SECOND))


def to_local(moment: int, at: tzinfo) -> int:
    """Converts a time in UTC to local time, both in µs since 1970. Raises 22008."""
    if moment in INFINITIES_TIME:
        return moment
    return time_in_range(moment + _offset_of_moment(at, moment // SECOND))
