"""Days and microseconds since 1970 to the words of ISO dates, for any year; zones by name.

Python's datetime ends at year 9999 and begins at 1; PostgreSQL's dates do not, so the calendar is computed here.

Source: H. Hinnant, "chrono-compatible low-level date algorithms"; PostgreSQL 15, src/backend/utils/adt/datetime.c, EncodeDateTime.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

DAY = 86_400_000_000  # µs
SECOND = 1_000_000  # µs
DAYS_TO_2000 = 10_957  # PostgreSQL counts from 2000-01-01
MICROS_TO_2000 = DAYS_TO_2000 * DAY

# How infinity is stored: DuckDB's and PostgreSQL's largest and smallest.
INFINITIES_DATE = {2**31 - 1: b"infinity", -(2**31) + 1: b"-infinity", -(2**31): b"-infinity"}
INFINITIES_TIME = {2**63 - 1: b"infinity", -(2**63) + 1: b"-infinity", -(2**63): b"-infinity"}


def civil(days: int) -> tuple[int, int, int]:
    """Year (astronomical: 0 is 1 BC), month and day.

    >>> civil(0), civil(-719528)
    ((1970, 1, 1), (0, 1, 1))
    """
    days += 719_468
    era = days // 146_097
    day_of_era = days - era * 146_097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def days(year: int, month: int, day: int) -> int:
    """The inverse of `civil`.

    >>> days(1970, 1, 1), days(0, 1, 1)
    (0, -719528)
    """
    year -= month <= 2
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def date_text(value: int) -> bytes:
    if value in INFINITIES_DATE:
        return INFINITIES_DATE[value]
    year, month, day = civil(value)
    if year <= 0:
        return b"%04d-%02d-%02d BC" % (1 - year, month, day)
    return b"%04d-%02d-%02d" % (year, month, day)


def fraction(micros: int) -> bytes:
    """`.5` for 500,000; nothing for 0.

    >>> fraction(120), fraction(0)
    (b'.00012', b'')
    """
    return (b".%06d" % micros).rstrip(b"0") if micros else b""


def time_text(value: int) -> bytes:
    seconds, micros = divmod(value, SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return b"%02d:%02d:%02d" % (hour, minute, second) + fraction(micros)


def timestamp_text(value: int, suffix: bytes = b"") -> bytes:
    """`suffix`: the zone's offset, which stands before BC."""
    if value in INFINITIES_TIME:
        return INFINITIES_TIME[value]
    day, rest = divmod(value, DAY)
    date = date_text(day)
    era = b" BC" if date.endswith(b"C") else b""
    return date.removesuffix(b" BC") + b" " + time_text(rest) + suffix + era


@lru_cache(maxsize=1)
def _zone_names() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


_OFFSET = re.compile(r"([+-]?)(\d{1,2})(?::?(\d\d))?(?::?(\d\d))?$")


@lru_cache(maxsize=256)
def zone(name: str) -> tuple[str, tzinfo] | None:
    """A zone as PostgreSQL shows its name, and its rules; None if there is no such zone.

    A bare offset counts east of Greenwich, as SQL has it; PostgreSQL shows it in POSIX's way.

    >>> zone("europe/berlin")[0], zone("-7")[0], zone("nowhere")
    ('Europe/Berlin', '<-07>+07', None)
    """
    if name.lower() in ("utc", "z", "zulu", "gmt"):
        return {"utc": "UTC", "gmt": "GMT", "zulu": "Zulu", "z": "UTC"}[name.lower()], timezone.utc
    known = _zone_names().get(name.lower())
    if known is not None:
        return known, ZoneInfo(known)
    posix = re.fullmatch(r"<[+-]?\w+>([+-]\d.*)", name)
    offset = _OFFSET.match(posix[1] if posix else name)
    if offset is None:
        return None
    east = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0), seconds=int(offset[4] or 0)) * (-1 if offset[1] == "-" else 1)
    east = -east if posix else east
    if abs(east) > timedelta(hours=16):
        return None
    shown = offset_text(int(east.total_seconds())).decode()
    inverse = offset_text(-int(east.total_seconds())).decode()
    return f"<{shown}>{inverse}", timezone(east)


def offset_text(seconds: int) -> bytes:
    """
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


_EPOCH = datetime(1970, 1, 1)
_FIRST, _LAST = -62_135_510_400, 253_402_214_400  # seconds of years 1 and 9999, a day inside what datetime can hold


@lru_cache(maxsize=65_536)
def offset(name: str, second: int) -> int:
    """Seconds east of Greenwich at a second since 1970. Outside the years 1 to 9999 a zone stays as it was at their end."""
    found = zone(name)
    if found is None or found[1] is timezone.utc:
        return 0
    at = (_EPOCH + timedelta(seconds=min(max(second, _FIRST), _LAST))).replace(tzinfo=timezone.utc)
    east = at.astimezone(found[1]).utcoffset()
    return int(east.total_seconds()) if east is not None else 0


def timestamptz_text(value: int, time_zone: str) -> bytes:
    if value in INFINITIES_TIME:
        return INFINITIES_TIME[value]
    east = offset(time_zone, value // SECOND)
    return timestamp_text(value + east * SECOND, offset_text(east))
