"""Dates, times and intervals from text: ISO 8601 and PostgreSQL's own output; other forms are refused by name.

Source: PostgreSQL 15, appendix "Date/Time Support"; SQL standard and "postgres" interval styles.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from decimal import ROUND_HALF_EVEN, Decimal

from lake.errors import DatetimeFieldOverflow, FeatureNotSupported, InvalidDatetimeFormat, TailgateError, of

BLANKS = " \t\n\r\f\v"
TIME = r"(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?P<fraction>\.\d*)?)?)"
ZONE = r"\s*(?P<zone>[zZ]|[uU][tT][cC]|[gG][mM][tT]|[+-]\d{1,2}(?::?\d{2}(?::?\d{2})?)?)"
COMPACT = re.compile(r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})")
TIMESTAMP = re.compile(
    rf"(?P<year>\d{{4,6}})-(?P<month>\d{{1,2}})-(?P<day>\d{{1,2}})(?:(?:[tT]|\s+|\s*[tT]\s*){TIME}(?:{ZONE})?|\s*(?P<dayzone>[zZ]|[+-]\d{{1,2}}(?::?\d{{2}})?))?"
)
CLOCK = re.compile(rf"{TIME}(?:{ZONE})?")
LETTERS = re.compile(
    r"jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|now|today|tomorrow|yesterday|infinity|allballs|\bbc\b|\bad\b|[0-9]/[0-9]", re.I
)


def invalid(type: str, text: str) -> TailgateError:
    if LETTERS.search(text):
        return FeatureNotSupported(f"'{text}' as a {type} is not supported", hint="Write it as in ISO 8601: 2021-04-26 12:00:00.")
    return InvalidDatetimeFormat(f'invalid input syntax for type {type}: "{text}"')


def out_of_range(text: str) -> TailgateError:
    return DatetimeFieldOverflow(f'date/time field value out of range: "{text}"')


def moment(text: str, type: str) -> tuple[datetime, timedelta | None]:
    """The date and time as written, and the zone's offset if one was."""
    stripped = text.strip(BLANKS)
    if stripped.lower() == "epoch":
        return datetime(1970, 1, 1), timedelta() if type == "timestamp with time zone" else None
    match = TIMESTAMP.fullmatch(stripped) or COMPACT.fullmatch(stripped)
    if match is None:
        raise invalid(type, text)
    found = match.groupdict()
    hour, minute, micros, carry = _clock(found, text) if found.get("hour") else (0, 0, 0, 0)
    try:
        day = datetime(int(found["year"]), int(found["month"]), int(found["day"]))
        value = day + timedelta(days=carry, hours=hour, minutes=minute, microseconds=micros)
    except (ValueError, OverflowError):
        if int(found["year"]) > 9999:
            raise FeatureNotSupported("years beyond 9999 are not supported") from None
        error = out_of_range(text)
        if not 1 <= int(found["month"]) <= 12 or not 1 <= int(found["day"]) <= 31:
            error.hint = 'Perhaps you need a different "datestyle" setting.'
        raise error from None
    return value, _zone(found.get("zone") or found.get("dayzone"), text)


def _clock(found: dict[str, str | None], text: str) -> tuple[int, int, int, int]:
    """Hour, minute, microseconds of the minute, days carried by 24:00:00."""
    hour, minute, second = int(found["hour"] or 0), int(found["minute"] or 0), int(found["second"] or 0)
    fraction = Decimal("0" + (found["fraction"] or ".") + "0")
    micros = second * 1_000_000 + int((fraction * 1_000_000).to_integral_value(ROUND_HALF_EVEN))
    if hour == 24 and not minute and not micros:
        return 0, 0, 0, 1
    if hour > 23 or minute > 59 or micros > 60_000_000:
        raise out_of_range(text)
    return hour, minute, micros, 0


def _zone(zone: str | None, text: str) -> timedelta | None:
    if zone is None:
        return None
    if zone[0] not in "+-":
        return timedelta()
    digits = zone[1:].replace(":", "")
    digits = digits if len(digits) % 2 == 0 else "0" + digits
    hours, minutes, seconds = (int(digits[i : i + 2] or 0) for i in (0, 2, 4))
    if hours > 15 or minutes > 59 or seconds > 59:
        raise of("22009", f'time zone displacement out of range: "{text}"')
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return -offset if zone[0] == "-" else offset


def to_date(text: str) -> date:
    return moment(text, "date")[0].date()


def to_timestamp(text: str) -> datetime:
    """A zone is read and has no meaning, as in PostgreSQL."""
    return moment(text, "timestamp")[0]


def to_timestamptz(text: str) -> datetime:
    """In UTC, which is also the zone of a text without one."""
    value, offset = moment(text, "timestamp with time zone")
    try:
        return (value - (offset or timedelta())).replace(tzinfo=timezone.utc)
    except OverflowError:
        raise out_of_range(text) from None


def to_time(text: str) -> int:
    """Microseconds of the day."""
    stripped = text.strip(BLANKS)
    match = CLOCK.fullmatch(stripped) or (TIMESTAMP.fullmatch(stripped))
    if match is None or not match["hour"]:
        raise invalid("time", text)
    hour, minute, micros, carry = _clock(match.groupdict(), text)
    return carry * 86_400_000_000 + (hour * 60 + minute) * 60_000_000 + micros


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

    if stripped.startswith("P") and (iso := ISO.fullmatch(stripped)) and len(stripped) > 1:
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
    rest = stripped[:-3] if ago else stripped.removeprefix("@")
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
