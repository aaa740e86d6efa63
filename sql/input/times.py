"""Dates, times and intervals from text, with DateStyle "ISO, MDY"; infinity and words that mean another time at each reading are refused.

Source: PostgreSQL 15, appendix "Date/Time Support"; SQL standard and "postgres" interval styles.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_EVEN, Decimal

from lake.errors import DatetimeFieldOverflow, FeatureNotSupported, InvalidDatetimeFormat, TailgateError, of
from sql.input import zones

BLANKS = " \t\n\r\f\v"
DAY, YEAR, MONTH = r"(?P<day>\d{1,2})", r"(?P<year>\d{4,6})", r"(?P<name>[A-Za-z]{3,9})\.?"
DATES = [
    re.compile(pattern + r"(?P<rest>(?:[T\s+-].*|[zZ])?)", re.S)
    for pattern in (
        rf"{YEAR}-(?P<month>\d{{1,2}})-{DAY}",
        r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})",
        rf"{YEAR}/(?P<month>\d{{1,2}})/{DAY}",
        rf"(?P<month>\d{{1,2}})[/-]{DAY}[/-]{YEAR}",
        rf"{MONTH}[ -]+{DAY},?[ -]+{YEAR}",
        rf"{DAY}[ -]+{MONTH},?[ -]+{YEAR}",
        rf"{YEAR}[ -]+{MONTH}[ -]+{DAY}",
        r"(?P<year>\d{4})-(?P<ordinal>\d{3})",
        r"[Jj](?P<julian>\d{1,7})",
    )
]
BEHIND = r"(?P<fraction>\.\d*)?)?\s*(?P<half>[AaPp][Mm](?![A-Za-z]))?\s*(?P<zone>.*)"
CLOCKS = [
    re.compile(r"(?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})" + BEHIND, re.S),
    re.compile(r"(?P<hour>\d{2})(?P<minute>\d{2})(?:(?P<second>\d{2})" + BEHIND, re.S),
    re.compile(r"(?P<hour>\d{1,2})(?P<minute>)(?:(?P<second>)(?P<fraction>))\s*(?P<half>[AaPp][Mm])\s*(?P<zone>.*)", re.S),
]
OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2})(?::?(?P<seconds>\d{2}))?)?")
MONTHS = "january february march april may june july august september october november december".split()
SPECIAL = ("infinity", "-infinity", "+infinity", "now", "today", "tomorrow", "yesterday")
JULIAN_0001 = 1_721_425  # the day before 0001-01-01
Zone = timedelta | tzinfo | None


def invalid(type: str, text: str) -> TailgateError:
    return InvalidDatetimeFormat(f'invalid input syntax for type {type}: "{text}"')


def out_of_range(text: str) -> TailgateError:
    return DatetimeFieldOverflow(f'date/time field value out of range: "{text}"')


def moment(text: str, type: str) -> tuple[date, int, Zone]:
    """The date and the microseconds of its time as written (24:00 is a day of them), and the zone or offset if one was."""
    stripped = text.strip(BLANKS)
    lower = stripped.lower()
    if lower == "epoch":
        return date(1970, 1, 1), 0, timedelta() if type == "timestamp with time zone" else None
    if lower == "allballs":
        if type != "time":
            raise invalid(type, text)
        return date(1970, 1, 1), 0, None
    if lower in SPECIAL:
        raise FeatureNotSupported(f"'{text}' as a {type} is not supported", hint="Write it as in ISO 8601: 2021-04-26 12:00:00.")
    if lower.endswith(" bc"):
        raise FeatureNotSupported("years before 1 are not supported")
    stripped = stripped[:-3].rstrip() if lower.endswith(" ad") else stripped
    match = next((m for p in DATES if (m := p.fullmatch(stripped))), None)
    if match is None:
        raise invalid(type, text)
    found = match.groupdict()
    day = _day(found, type, text)
    rest = (found["rest"] or "").strip(BLANKS)
    rest = rest[1:].lstrip() if rest[:1] in ("T", "t") and rest[1:2].isdigit() else rest
    micros = 0
    zone: Zone = None
    if rest and (rest[0].isdigit()):
        clock = _clock_of(rest)
        if clock is None:
            raise invalid(type, text)
        micros = _clock(clock, text)
        rest = clock["zone"].strip(BLANKS)
    if rest:
        zone = _zone(rest, type, text)
    return day, micros, zone


def _day(found: dict[str, str | None], type: str, text: str) -> date:
    month, year, days = _month(found, type, text), int(found.get("year") or 1), found.get("ordinal")
    try:
        if (julian := found.get("julian")) is not None:
            return date.fromordinal(int(julian) - JULIAN_0001)
        if days is None:
            return date(year, month, int(found["day"] or 0))
        day = date(year, 1, 1) + timedelta(days=int(days) - 1)
        if day.year == year:
            return day
    except (ValueError, OverflowError):
        if year > 9999 or found.get("julian"):
            raise FeatureNotSupported("years before 1 and beyond 9999 are not supported") from None
    error = out_of_range(text)
    if days is None and (not 1 <= month <= 12 or not 1 <= int(found["day"] or 0) <= 31):
        error.hint = 'Perhaps you need a different "datestyle" setting.'
    raise error


def _month(found: dict[str, str | None], type: str, text: str) -> int:
    if (name := found.get("name")) is None:
        return int(found.get("month") or 0)
    lower = name.lower()
    number = next((i for i, month in enumerate(MONTHS, 1) if month[:3] == lower[:3]), 0)
    if not number or not (len(lower) == 3 or MONTHS[number - 1] == lower or lower == "sept"):
        raise invalid(type, text)
    return number


def _clock_of(text: str) -> re.Match[str] | None:
    return next((m for p in CLOCKS if (m := p.fullmatch(text))), None)


def _clock(found: re.Match[str], text: str) -> int:
    """Microseconds of the day; all of them at 24:00:00."""
    hour, minute, second = int(found["hour"] or 0), int(found["minute"] or 0), int(found["second"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            raise out_of_range(text)
        hour = hour % 12 + 12 * (found["half"].lower() == "pm")
    fraction = Decimal("0" + (found["fraction"] or ".") + "0")
    micros = second * 1_000_000 + int((fraction * 1_000_000).to_integral_value(ROUND_HALF_EVEN))
    if hour == 24 and not minute and not micros:
        return 86_400_000_000
    if hour > 23 or minute > 59 or micros > 60_000_000:
        raise out_of_range(text)
    return (hour * 60 + minute) * 60_000_000 + micros


def _zone(zone: str, type: str, text: str) -> Zone:
    """Z, an offset, or a name or abbreviation."""
    if zone.lower() in ("z", "utc", "gmt"):
        return timedelta()
    match = OFFSET.fullmatch(zone)
    if match is not None:
        hours, minutes, seconds = (int(match[n] or 0) for n in ("hours", "minutes", "seconds"))
        if hours > 15 or minutes > 59 or seconds > 59:
            raise of("22009", f'time zone displacement out of range: "{text}"')
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return -offset if match["sign"] == "-" else offset
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_/+-]*", zone):
        raise invalid(type, text)
    try:
        return zones.zone(zone)
    except TailgateError:
        if "/" in zone:
            raise
        raise invalid(type, text) from None


def to_date(text: str) -> date:
    return moment(text, "date")[0]


def to_timestamp(text: str) -> datetime:
    """A zone is read and has no meaning, as in PostgreSQL."""
    day, micros, _ = moment(text, "timestamp")
    return _at(day, micros)


def _at(day: date, micros: int) -> datetime:
    try:
        return datetime.combine(day, time()) + timedelta(microseconds=micros)
    except OverflowError:
        raise FeatureNotSupported("years beyond 9999 are not supported") from None


def to_timestamptz(text: str) -> datetime:
    """In UTC, which is also the zone of a text without one."""
    day, micros, zone = moment(text, "timestamp with time zone")
    value = _at(day, micros)
    if isinstance(zone, tzinfo):
        return zones.to_utc(value, zone)
    try:
        return (value - (zone or timedelta())).replace(tzinfo=timezone.utc)
    except OverflowError:
        raise out_of_range(text) from None


def to_time(text: str) -> int:
    """Microseconds of the day."""
    stripped = text.strip(BLANKS)
    match = _clock_of(stripped)
    if match is not None and not re.match(r"\d+[-/]", stripped):
        zone = match["zone"].strip(BLANKS) if match["zone"] else ""
        if "/" in zone:  # whose offset depends on the day
            raise invalid("time", text)
        if zone:
            _zone(zone, "time", text)
        return _clock(match, text)
    try:
        _, micros, _ = moment(text, "time")
    except TailgateError as error:
        raise invalid("time", text) if error.sqlstate == "22007" else error from None
    if ":" not in stripped and stripped.lower() != "allballs":  # a date alone
        raise invalid("time", text)
    return micros


UNITS: dict[str, tuple[int, int, int]] = {  # months, days, microseconds
    spelling: amounts
    for spellings, amounts in (
        ("year years y yr yrs", (12, 0, 0)),
        ("month months mon mons", (1, 0, 0)),
        ("decade decades dec decs", (120, 0, 0)),
        ("century centuries cent c", (1200, 0, 0)),
        ("millennium millennia mil mils", (12000, 0, 0)),
        ("week weeks w", (0, 7, 0)),
        ("day days d", (0, 1, 0)),
        ("hour hours h hr hrs", (0, 0, 3_600_000_000)),
        ("minute minutes m min mins", (0, 0, 60_000_000)),
        ("second seconds s sec secs", (0, 0, 1_000_000)),
        ("millisecond milliseconds ms msec msecs", (0, 0, 1_000)),
        ("microsecond microseconds us usec usecs", (0, 0, 1)),
    )
    for spelling in spellings.split()
}
PART = re.compile(
    r"\s*(?:(?P<sign>[+-])?(?P<hour>\d+):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2}(?:\.\d*)?))?"
    r"|(?P<years>[+-]?\d+)-(?P<months>\d{1,2})(?![\d-])"
    r"|(?P<amount>[+-]?(?:\d+\.?\d*|\.\d+))\s*(?P<unit>[a-zA-Z]+)?)"
)
ISO = re.compile(r"P(?:(?P<d>[^T]*))?(?:T(?P<t>.*))?")
ISO_PART = re.compile(r"([+-]?\d+(?:\.\d+)?)([YMWDHS])")


def to_interval(text: str, fields: str = "") -> tuple[int, int, int]:
    """Months, days, microseconds. `fields`: what followed the literal, such as `day` or `hour to second`.

    >>> to_interval("1 year 2 mons -3 days 04:05:06.7")
    (14, -3, 14706700000)
    """
    stripped = text.strip(BLANKS)
    months = days = micros = Decimal(0)

    def add(amount: Decimal, unit: tuple[int, int, int]) -> None:
        nonlocal months, days, micros
        if unit[0]:
            whole = int(amount * unit[0])
            months += whole
            # a fraction of a month is days of 30, of a day microseconds
            rest = (amount * unit[0] - whole) * 30 if unit[0] == 1 else Decimal(0)
            add(rest, (0, 1, 0)) if rest else None
        elif unit[1]:
            whole = int(amount * unit[1])
            days += whole
            micros += (amount * unit[1] - whole) * 86_400_000_000
        else:
            micros += amount * unit[2]

    if text.startswith("P") and (iso := ISO.fullmatch(text)) and len(text) > 1:
        for part, units in ((iso["d"] or "", "YMWD"), (iso["t"] or "", "HMS")):
            pieces = ISO_PART.findall(part)
            if "".join(a + b for a, b in pieces) != part or any(b not in units for _, b in pieces):
                raise invalid("interval", text)
            for amount, letter in pieces:
                word = {"Y": "year", "W": "week", "D": "day", "H": "hour", "S": "second"}.get(
                    letter, "month" if units == "YMWD" else "minute"
                )
                add(Decimal(amount), UNITS[word])
        return int(months), int(days), int(micros.to_integral_value(ROUND_HALF_EVEN))

    ago = stripped.lower().endswith("ago")
    rest = stripped.removeprefix("@")[: -3 if ago else None]
    at, default = 0, UNITS[fields.split()[-1]] if fields else UNITS["second"]
    if not rest.strip(BLANKS):
        raise invalid("interval", text)
    seen: set[object] = set()
    while at < len(rest) and rest[at:].strip(BLANKS):
        match = PART.match(rest, at)
        if match is None or match.end() == at:
            raise invalid("interval", text)
        part = "time" if match["hour"] is not None else "years" if match["years"] is not None else (match["unit"] or "").lower()
        if UNITS.get(part, part) in seen:
            raise invalid("interval", text)
        seen.add(UNITS.get(part, part))
        if match["hour"] is not None:
            sign = -1 if match["sign"] == "-" else 1
            seconds = Decimal(match["second"] or 0)
            first = match["second"] is None and fields == "minute to second"
            amount = (int(match["hour"]) * 60 + int(match["minute"])) * (1 if first else 60) + seconds
            micros += sign * amount * 1_000_000
        elif match["years"] is not None:
            sign = -1 if match["years"].startswith("-") else 1
            months += int(match["years"]) * 12 + sign * int(match["months"])
        else:
            following = PART.match(rest, match.end())
            day = following is not None and following["hour"] is not None  # 3 4:05:06
            unit = UNITS.get(match["unit"].lower()) if match["unit"] else UNITS["day"] if day else default
            if unit is None:
                raise invalid("interval", text)
            add(Decimal(match["amount"]), unit)
        at = match.end()
    if ago:
        months, days, micros = -months, -days, -micros
    if not -(2**31) <= months < 2**31 or not -(2**31) <= days < 2**31 or not -(2**63) <= micros < 2**63:
        raise DatetimeFieldOverflow(f'interval field value out of range: "{text}"')
    return int(months), int(days), int(micros.to_integral_value(ROUND_HALF_EVEN))
