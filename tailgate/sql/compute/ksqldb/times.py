"""ksqlDB's functions of dates and times: formatting and parsing by a pattern, in a time zone.

Missing fields are those of 1970-01-01 00:00:00.

Source: ksqlDB 0.29, documentation, "Scalar functions", section "Date and time"; java.time.format.DateTimeFormatter.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta, timezone, tzinfo
from time import time_ns

from tailgate.lake.errors import DatetimeFieldOverflow, InvalidDatetimeFormat, InvalidParameterValue
from tailgate.sql.compute.ksqldb.time_patterns import (
    CACHE_MAX,
    FULL,
    NARROW,
    OFFSETS,
    Field,
    Literal,
    Optional,
    Part,
    check_parses,
    parts_of,
)
from tailgate.sql.compute.ksqldb.zone_names import FULL_NAMES, FULL_ZONE, OF_FULL_NAMES, ZONES
from tailgate.sql.compute.registry import udf
from tailgate.values.caching import cached
from tailgate.values.times.units import MINUTE
from tailgate.values.times.zones import to_local, to_utc, zone

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
SHORT = 3  # letters of the short names; more in a pattern mean the full name
NOON, MIDNIGHT = 12, 24  # hours
MONTH_DAYS_MAX = 31  # a day beyond the end of its month is the last one, as in Java
DIGITS_MAX = 9  # of a fraction
OFFSET_MAX = 18 * 60  # minutes
MINUTE_MAX = 59
ERAS = {SHORT: "AD", FULL: "Anno Domini"}
ORDINALS = ("st", "nd", "rd", "th")
ZONE = "(?:UTC|GMT|UT)?[+-][0-9]{2}:[0-9]{2}|[A-Za-z][A-Za-z0-9_/+-]*"
# an offset from UTC as Java's ZoneId reads it
OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]|[0-9]{2}|[0-9]{4}|[0-9]{6}|[0-9]{2}(?::[0-9]{2}){1,2})")
DAY_US = 86_400_000_000  # microseconds
WEEK = 7  # days; weeks begin on Sunday, and the first one contains 1 January


@udf("int4", "int8", to="int8")
def ksqldb_clock(partition: int, offset: int) -> int:
    """Returns the current time in milliseconds, when the record at a place is processed."""
    return time_ns() // 1_000_000


# --- formatting ----------------------------------------------------------------------------------


@udf("timestamp", "text", "text", to="text")
def ksqldb_format_timestamp(value: int, pattern: str, zone_name: str) -> str:
    """Returns a UTC timestamp in a time zone as a pattern says. The years are 1 to 9999, as in ksqlDB's patterns."""
    try:
        local = (EPOCH + timedelta(microseconds=value)).astimezone(zone_of(zone_name))
    except OverflowError:
        raise DatetimeFieldOverflow("timestamp out of range") from None
    return formatted(local, parts_of(pattern))


def formatted(value: datetime, parts: Sequence[Part], letters: str | None = None) -> str:
    """Returns a time as a pattern says. `letters`: the fields that it has; an optional part with others is left out. Raises 22007."""
    out = []
    for part in parts:
        match part:
            case Literal(text):
                out.append(text)
            case Optional(inner):
                with suppress(InvalidDatetimeFormat):
                    out.append(formatted(value, inner, letters))
            case Field(letter, _) if letters is not None and letter not in letters:
                raise InvalidDatetimeFormat(f'the value has no field for the pattern letter "{letter}"')
            case Field(letter, count):
                out.append(_field(value, letter, count))
    return "".join(out)


def _field(value: datetime, letter: str, count: int) -> str:
    match letter:
        case "G":
            return ERAS[max(count, SHORT)]
        case "y" | "u" | "Y":
            year = _week_year(value) if letter == "Y" else value.year
            return f"{year % 100:02}" if count == 2 else f"{year:0{count}}"
        case "Q" | "q" if count >= SHORT:
            quarter = _number(value, letter)
            return f"Q{quarter}" if count == SHORT else f"{quarter}{ORDINALS[quarter - 1]} quarter"
        case "M" | "L" if count >= SHORT:
            return _name(MONTHS[value.month - 1], count)
        case "E" | "e" | "c" if letter == "E" or count >= SHORT:
            return _name(DAYS[value.weekday()], count)
        case "z" if count == FULL:
            return _full_zone(value)
        case "V" | "z":
            name = str(value.tzinfo if letter == "V" else value.tzname())
            return name if name == "UTC" else name.removeprefix("UTC")
        case "a":
            return "AM" if value.hour < NOON else "PM"
        case "S":
            return f"{value.microsecond:06}000"[:count]
        case "n":
            return f"{value.microsecond * 1000:0{count}}"
        case "X" | "x" | "Z":
            return _offset_text(int((value.utcoffset() or timedelta()).total_seconds()) // 60, letter, count)
        case "O":
            return _gmt(int((value.utcoffset() or timedelta()).total_seconds()) // 60, count)
    return f"{_number(value, letter):0{count}}"


def _name(name: str, count: int) -> str:
    return name[:1] if count == NARROW else name[:SHORT] if count <= SHORT else name


def _week_year(value: datetime) -> int:
    """Returns the year of the week of a day, which contains the next 1 January or the year's own."""
    saturday = value.day + (5 - value.weekday()) % WEEK  # of December
    return value.year + (value.month == 12 and saturday > 31)


def _week(value: datetime, first: date) -> int:
    """Returns the number of the week since the one that contains a day."""
    return (value.date() - first + timedelta(days=(first.weekday() + 1) % WEEK)).days // WEEK + 1


def _gmt(minutes: int, count: int) -> str:
    """Returns an offset from GMT, as in GMT+1 or GMT+01:00."""
    hours, rest = divmod(abs(minutes), 60)
    if not minutes:
        return "GMT"
    sign = "-" if minutes < 0 else "+"
    return f"GMT{sign}{hours:02}:{rest:02}" if count == FULL else f"GMT{sign}{hours}{f':{rest:02}' if rest else ''}"


def _number(value: datetime, letter: str) -> int:
    hour = value.hour
    return {
        "Q": (value.month + 2) // 3,
        "q": (value.month + 2) // 3,
        "w": _week(value, date(_week_year(value), 1, 1)) if _week_year(value) == value.year else 1,
        "W": _week(value, date(value.year, value.month, 1)),
        "M": value.month,
        "L": value.month,
        "d": value.day,
        "D": value.timetuple().tm_yday,
        "e": value.isoweekday() % WEEK + 1,
        "c": value.isoweekday() % WEEK + 1,
        "H": hour,
        "k": hour or 24,
        "K": hour % NOON,
        "h": hour % NOON or NOON,
        "m": value.minute,
        "s": value.second,
        "A": _of_day(value) // 1000,
        "N": _of_day(value) * 1000,
    }[letter]


def _of_day(value: datetime) -> int:
    """Returns the microseconds since midnight."""
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _offset_text(minutes: int, letter: str, count: int) -> str:
    if letter == "Z" and count == FULL:
        return _gmt(minutes, count)
    if minutes == 0 and (letter == "X" or (letter == "Z" and count == NARROW)):
        return "Z"
    hours, rest = divmod(abs(minutes), 60)
    sign = "-" if minutes < 0 else "+"
    if letter != "Z" and count == 1:
        return f"{sign}{hours:02}" + (f"{rest:02}" if rest else "")
    return f"{sign}{hours:02}{':' if _has_colon(letter, count) else ''}{rest:02}"


def _has_colon(letter: str, count: int) -> bool:
    return count == NARROW or (letter != "Z" and count == SHORT)


# --- parsing -------------------------------------------------------------------------------------


@udf("text", "text", "text", to="timestamp")
def ksqldb_parse_timestamp(text: str, pattern: str, zone_name: str) -> int:
    """Returns the UTC timestamp of a text. It is in a time zone unless it contains an offset or a zone. Raises 22007."""
    values, counts = matched(text, pattern)
    offset = next((values[letter] for letter in OFFSETS if letter in values), None)
    try:
        micros = local_micros(values, counts)
        minutes = None if offset is None else offset_minutes(offset)
        zone_of_text = zone_of_fields(values)
    except (ValueError, InvalidParameterValue):
        raise InvalidDatetimeFormat(f'text "{text}" is not a valid date or time') from None
    if zone_of_text is None and minutes is not None:
        return micros - minutes * MINUTE
    return to_utc(micros, zone_of_text or zone_of(zone_name))


def _full_zone(value: datetime) -> str:
    """Returns the full name of the zone of a time. Raises 22023 for a zone whose name is not known here."""
    name = str(value.tzname())
    if value.tzinfo == timezone.utc or name.startswith(("UTC+", "UTC-")):
        return f"{FULL_NAMES['UTC']} Time" if name == "UTC" else name.removeprefix("UTC")
    local = value.astimezone(zone_of(ZONES.get(name, name))) if name in FULL_NAMES else None
    if local is None or local.utcoffset() != value.utcoffset():
        raise InvalidParameterValue(f'the full name of the time zone "{value.tzinfo}" is known in views only')
    return f"{FULL_NAMES[name]} Time"


def matched(text: str, pattern: str) -> tuple[dict[str, str], dict[str, int]]:
    """Returns the texts of the fields that a text has, and how often the letter of each occurs. Raises 22007."""
    expression, fields = _expression(pattern)
    match = expression.fullmatch(text)
    if match is None:
        raise InvalidDatetimeFormat(f'text "{text}" could not be parsed with the pattern "{pattern}"')
    values = {field.letter: value for n, field in enumerate(fields) if (value := match[f"f{n}"]) is not None}
    return values, {field.letter: field.count for field in fields}


def zone_of_fields(values: dict[str, str]) -> tzinfo | None:
    """Returns the zone that fields name. Raises ValueError and 22023."""
    name = values.get("z", values.get("V"))
    if "z" in values:
        short = OF_FULL_NAMES.get(values["z"], values["z"])
        name = ZONES.get(short, short)
    return None if name is None else _zone_of_text(name)


def _zone_of_text(name: str) -> tzinfo:
    """Returns the zone of a name in a text. Raises 22023, and ValueError for an offset that is not written as +00:00."""
    if ":" not in name and OFFSET.fullmatch(name) is not None:
        raise ValueError(name)
    return zone_of(name)


# --- time zones ----------------------------------------------------------------------------------


@udf("timestamp", "text", "text", to="timestamp")
def ksqldb_convert_tz(value: int, zone_name: str, target: str) -> int:
    """Returns the local time in another time zone of a local time in the first one."""
    return to_local(to_utc(value, zone_of(zone_name)), zone_of(target))


def zone_of(name: str) -> tzinfo:
    """Returns the zone with a name. An offset is east of UTC, unlike in `zone`. Raises 22023.

    >>> zone_of("+02:00"), zone_of("UTC-3")
    (datetime.timezone(datetime.timedelta(seconds=7200)), datetime.timezone(datetime.timedelta(days=-1, seconds=75600)))
    """
    match = OFFSET.fullmatch(name)
    if match is None:
        return zone(name)
    digits = match[2].replace(":", "")
    hours, minutes, seconds = (int(digits.rjust(2, "0").ljust(6, "0")[n : n + 2]) for n in (0, 2, 4))
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if max(minutes, seconds) > MINUTE_MAX or offset > timedelta(minutes=OFFSET_MAX):
        raise InvalidParameterValue(f'time zone "{name}" not recognized')
    return timezone(-offset if match[1] == "-" else offset)


@cached(CACHE_MAX)
def _expression(pattern: str) -> tuple[re.Pattern[str], tuple[Field, ...]]:
    """Returns a regular expression with a group for each field: f0, f1 and so on."""
    fields: list[Field] = []

    def text_of(parts: Sequence[Part]) -> str:
        out = []
        for part in parts:
            match part:
                case Literal(text):
                    out.append(re.escape(text))
                case Optional(inner):
                    out.append(f"(?:{text_of(inner)})?")
                case Field():
                    fields.append(part)
                    out.append(f"(?P<f{len(fields) - 1}>{_field_expression(part)})")
        return "".join(out)

    parts = parts_of(pattern)
    check_parses(parts)
    text = text_of(parts)
    return re.compile(text, re.ASCII), tuple(fields)


def _field_expression(field: Field) -> str:
    letter, count = field.letter, field.count
    match letter:
        case "G":
            return ERAS[max(count, SHORT)]
        case "M" | "L" if count >= SHORT:
            return "|".join(_name(name, count) for name in MONTHS)
        case "E" | "e" | "c" if letter == "E" or count >= SHORT:
            return "|".join(_name(name, count) for name in DAYS)
        case "z" if count == FULL:
            return FULL_ZONE
        case "V" | "z":
            return ZONE
        case "a":
            return "AM|PM"
        case "X" if count == 1:
            return r"Z|[+-][0-9]{2}(?:[0-9]{2})?"
        case "X" | "x" | "Z":
            colon = ":" if _has_colon(letter, count) else ""
            return (
                ("Z|" if letter == "X" or (letter == "Z" and count == NARROW) else "")
                + f"[+-][0-9]{{2}}{colon}[0-9]{{2}}"
                + ("|[+-][0-9]{2}" if letter == "x" and count == 1 else "")
            )
        case "y" | "u" if count != 2:
            return f"[0-9]{{{count}}}" if field.adjacent else f"[0-9]{{{count},4}}" if count <= 4 else f"[0-9]{{{count}}}"
        case "S":
            return f"[0-9]{{{count}}}"
    digits_max = {"D": 3, "n": DIGITS_MAX, "A": 8, "N": 14}.get(letter, 2)
    return f"[0-9]{{1,{digits_max}}}" if count == 1 and not field.adjacent else f"[0-9]{{{count}}}"


def local_micros(values: dict[str, str], counts: dict[str, int]) -> int:
    """Returns the local timestamp of the values of fields, as that of UTC. Raises ValueError."""
    return (_local(values, counts).replace(tzinfo=timezone.utc) - EPOCH) // timedelta(microseconds=1)


def _local(values: dict[str, str], counts: dict[str, int]) -> datetime:
    year_text = values.get("y") or values.get("u") or "1970"
    year = int(year_text) + (2000 if counts.get("y", counts.get("u")) == 2 else 0)
    numbers = {letter: int(text) for letter, text in values.items() if text.isdecimal()}
    month = _month(values, counts)
    day = date(year, month, min(_within(numbers.get("d", 1), 1, MONTH_DAYS_MAX), monthrange(year, month)[1]))
    if "D" in numbers:
        day = _days_after(date(year, 1, 1), numbers["D"] - 1)
        if day.year != year:
            raise ValueError("day of the year")
    if "E" in values and DAYS[day.weekday()][:SHORT] != values["E"][:SHORT] and "d" in values:
        raise ValueError("day of the week")
    of_day = numbers["A"] * 1000 if "A" in numbers else numbers.get("N", 0) // 1000
    if of_day:
        return datetime(year, day.month, day.day) + timedelta(microseconds=_within(of_day, 0, DAY_US - 1))
    fraction = values["S"].ljust(6, "0")[:6] if "S" in values else f"{numbers.get('n', 0) // 1000:06}"
    hour, rest = _hour(values, numbers), (numbers.get("m", 0), numbers.get("s", 0), int(fraction))
    if numbers.get("H") == MIDNIGHT and not any(rest):  # the end of the day, the next one if the text has the day
        hour, day = 0, _days_after(day, 1 if "d" in numbers or "D" in numbers else 0)
    return datetime(day.year, day.month, day.day, hour, *rest)


def _days_after(day: date, count: int) -> date:
    """Returns the day that is a number of days after another one. Raises ValueError beyond the year 9999."""
    return date.fromordinal(day.toordinal() + count)


def _month(values: dict[str, str], counts: dict[str, int]) -> int:
    letter = "M" if "M" in values else "L"
    if letter not in values:
        return 1
    return int(values[letter]) if counts[letter] < SHORT else [_name(n, SHORT) for n in MONTHS].index(values[letter][:SHORT]) + 1


def _hour(values: dict[str, str], numbers: dict[str, int]) -> int:
    if "H" in numbers:
        return numbers["H"]
    if "k" in numbers:
        return _within(numbers["k"], 1, 24) % 24
    half = _within(numbers["K"], 0, 11) if "K" in numbers else _within(numbers.get("h", NOON), 1, NOON) % NOON
    return half + (NOON if values.get("a") == "PM" else 0)


def _within(value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise ValueError(value)
    return value


def offset_minutes(offset: str) -> int:
    """Returns the minutes of an offset from UTC such as +01:00 or Z. Raises ValueError for more than 18 hours, as in Java."""
    if offset == "Z":
        return 0
    digits = offset[1:].replace(":", "").ljust(4, "0")
    minutes = int(digits[:2]) * 60 + _within(int(digits[2:]), 0, 59)
    return _within(minutes, 0, OFFSET_MAX) * (-1 if offset[0] == "-" else 1)
