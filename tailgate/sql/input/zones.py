"""Time zones by name, abbreviation or offset.

A local time that a change of the clock skips is read with the offset before the change; a time that
occurs twice is read with the offset after it, as in PostgreSQL.

Source: PostgreSQL 15, src/backend/utils/adt/timestamp.c (timestamp_zone); src/timezone/tznames/Default.
"""

from __future__ import annotations

import re
import zoneinfo
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from tailgate.lake.errors import DatetimeFieldOverflow, InvalidParameterValue

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
POSIX = re.compile(r"(?:[A-Za-z]{3,}|<[^>]+>)?([+-]?)(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    """Returns the zones' names by their names in lower case."""
    return {name.lower(): name for name in zoneinfo.available_timezones()}


@lru_cache(maxsize=256)
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
    if match is None or int(match[2]) > 24:
        raise InvalidParameterValue(f'time zone "{name}" not recognized')
    offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0), seconds=int(match[4] or 0))
    return timezone(offset if match[1] == "-" else -offset)


def to_utc(local: datetime, at: tzinfo) -> datetime:
    """Converts a local time to UTC."""
    before, after = local.replace(tzinfo=at, fold=0), local.replace(tzinfo=at, fold=1)
    skipped = before.utcoffset() < after.utcoffset()  # type: ignore[operator]
    try:
        return (before if skipped else after).astimezone(timezone.utc)
    except OverflowError:
        raise DatetimeFieldOverflow("timestamp out of range") from None


def to_local(moment: datetime, at: tzinfo) -> datetime:
    try:
        return moment.astimezone(at).replace(tzinfo=None)
    except OverflowError:
        raise DatetimeFieldOverflow("timestamp out of range") from None
