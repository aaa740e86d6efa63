"""to_char() of timestamps and intervals, in English.

Source: PostgreSQL 15, src/backend/utils/adt/formatting.c, DCH_to_char().
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo

from tailgate.lake.errors import InvalidDatetimeFormat
from tailgate.sql.compute.numeric.numerals import ordinal_ending, roman
from tailgate.sql.compute.registry import udf
from tailgate.sql.compute.time.date_pattern import DAYS, MONTHS, Kind, Part, parse
from tailgate.sql.compute.time.interval_functions import Interval, quotient, remainder
from tailgate.values.times.calendar import INFINITIES_TIME, JULIAN_DAY_1970, civil, days, iso_week, weekday
from tailgate.values.times.units import DAY, HOUR, MINUTE, SECOND
from tailgate.values.times.zones import abbreviation, offset_text, to_local


def shown(year: int) -> int:
    """Returns an astronomical year as it is counted: 0 is 1 BC."""
    return year if year > 0 else 1 - year


@dataclass(frozen=True)
class _Fields:
    """The fields that a pattern can name; `day` is None for an interval."""

    year: int
    month: int
    day_of_month: int
    micros: int
    day: int | None
    zone: str
    east: int = 0  # seconds

    @property
    def shown_year(self) -> int:
        return self.year if self.day is None else shown(self.year)

    @property
    def hours(self) -> int:
        return quotient(self.micros, HOUR)

    @property
    def minutes(self) -> int:
        return quotient(remainder(self.micros, HOUR), MINUTE)

    @property
    def seconds(self) -> int:
        return quotient(remainder(self.micros, MINUTE), SECOND)

    @property
    def fraction(self) -> int:
        return remainder(self.micros, SECOND)

    @property
    def days(self) -> int:
        """Returns the days of an interval, with 30 days in a month."""
        return (self.year * 12 + self.month) * 30 + self.day_of_month


@udf("timestamp", "text", to="text")
def to_char_timestamp(value: int, pattern: str) -> str | None:
    return _to_char(value, pattern, "")


@udf("timestamptz", "text", to="text")
def to_char_timestamptz(value: int, pattern: str) -> str | None:
    return _to_char(value, pattern, "UTC")


def to_char_zoned(moment: int, pattern: str, zone: tzinfo) -> str | None:
    """Returns to_char() of a moment in a time zone."""
    local = to_local(moment, zone)
    return _to_char(local, pattern, abbreviation(zone, moment // SECOND), (local - moment) // SECOND)


def _to_char(value: int, pattern: str, zone: str, east: int = 0) -> str | None:
    if value in INFINITIES_TIME:
        return None
    day, micros = divmod(value, DAY)
    return _write(_Fields(*civil(day), micros, day, zone, east), pattern)


@udf("interval", "text", to="text")
def to_char_interval(value: Interval, pattern: str) -> str | None:
    months, days, micros = value
    return _write(_Fields(quotient(months, 12), remainder(months, 12), days, micros, None, ""), pattern)


def _write(fields: _Fields, pattern: str) -> str | None:
    if not pattern:
        return None
    return "".join(p.spelling if p.kind != Kind.FIELD else _field(fields, p) for p in parse(pattern))


# --- fields --------------------------------------------------------------------------------------


def _field(f: _Fields, p: Part) -> str:
    text = _time(f, p)
    if text is None:
        text = _year_month_day(f, p)
    if text is None:
        text = _interval_day(f, p) if f.day is None else _calendar(f, p, f.day)
    return text


def _roman_month(f: _Fields) -> int:
    """Returns the month of RM. Intervals have no month 0: negative ones count from December, whole years are 12 or -12 months."""
    if f.month == 0:
        return 12 if f.year > 0 else 1
    return f.month if f.month > 0 else 13 + f.month


def _time(f: _Fields, p: Part) -> str | None:
    """Returns a field of the time of day or the time zone, or None for other fields."""
    match p.field:
        case "HH24":
            return _number(p, f.hours, 2)
        case "HH" | "HH12":
            return _number(p, remainder(f.hours, 12) or 12, 2)
        case "MI":
            return _number(p, f.minutes, 2)
        case "SS":
            return _number(p, f.seconds, 2)
        case "MS" | "FF3":
            return _fraction(p, f, 3)
        case "US" | "FF6":
            return _fraction(p, f, 6)
        case "FF1" | "FF2" | "FF4" | "FF5":
            return _fraction(p, f, int(p.field[2]))
        case "SSSS" | "SSSSS":
            return _number(p, f.hours * 3600 + f.minutes * 60 + f.seconds, 0)
        case "AM" | "PM" | "A.M." | "P.M.":
            half = "pm" if f.hours % 24 >= 12 else "am"
            return _cased(p, ".".join(half) + "." if "." in p.field else half)
        case "TZ":
            return _date_only(f, _cased(p, f.zone))
        case "TZH":
            return _date_only(f, f"{'-' if f.east < 0 else '+'}{abs(f.east) // 3600:02d}")
        case "OF":
            return _date_only(f, offset_text(f.east // 60 * 60).decode())
        case "TZM":
            return _date_only(f, f"{abs(f.east) // 60 % 60:02d}")
    return None


def _year_month_day(f: _Fields, p: Part) -> str | None:
    """Returns a field of the year, month or day, or None for other fields."""
    match p.field:
        case "Q":
            return _number(p, quotient(f.month - 1, 3) + 1, 1) if f.month else ""
        case "MM":
            return _number(p, f.month, 2)
        case "RM":
            return _padded(p, _cased(p, roman(_roman_month(f))), 4) if f.month or f.year else ""
        case "DD":
            return _number(p, f.day_of_month, 2)
        case "DDD":
            return _number(p, f.days if f.day is None else _day_of_year(f, f.day), 3)
        case "CC":
            century = quotient(f.year, 100)
            if f.day is not None:
                century = (f.year - 1) // 100 + 1 if f.year > 0 else century - 1
            return _number(p, century, 2 if abs(century) < 100 else 0)
        case "Y,YYY":
            return _with_ending(p, f"{quotient(f.shown_year, 1000)},{remainder(f.shown_year, 1000):03d}")
        case "YYYY":
            return _number(p, f.shown_year, 4)
        case "YYY" | "YY" | "Y":
            return _number(p, remainder(f.shown_year, 10 ** len(p.field)), len(p.field))
    return None


def _interval_day(f: _Fields, p: Part) -> str:
    match p.field:
        case "WW":
            return _number(p, quotient(f.days - 1, 7) + 1, 2)
        case "W":
            return _number(p, quotient(f.day_of_month - 1, 7) + 1, 1)
        case "J":
            return _number(p, _julian_day(f.year, f.month, f.day_of_month), 0)
    return _date_only(f, "")


def _day_of_year(f: _Fields, day: int) -> int:
    return day - days(f.year, 1, 1) + 1


def _calendar(f: _Fields, p: Part, day: int) -> str:
    """Returns a field that only dates have."""
    iso_year, week = iso_week(day)
    number = weekday(day) + 1
    match p.field:
        case "AD" | "BC":
            return _cased(p, "AD" if f.year > 0 else "BC")
        case "A.D." | "B.C.":
            return _cased(p, "A.D." if f.year > 0 else "B.C.")
        case "MONTH":
            return _padded(p, _cased(p, MONTHS[f.month - 1]), 9)
        case "MON":
            return _cased(p, MONTHS[f.month - 1][:3])
        case "DAY":
            return _padded(p, _cased(p, DAYS[number % 7]), 9)
        case "DY":
            return _cased(p, DAYS[number % 7][:3])
        case "D":
            return _number(p, number % 7 + 1, 1)
        case "ID":
            return _number(p, number, 1)
        case "IDDD":
            return _number(p, (week - 1) * 7 + number, 3)
        case "WW":
            return _number(p, (_day_of_year(f, day) - 1) // 7 + 1, 2)
        case "W":
            return _number(p, (f.day_of_month - 1) // 7 + 1, 1)
        case "IW":
            return _number(p, week, 2)
        case "IYYY" | "IYY" | "IY" | "I":
            width = len(p.field)
            return _number(p, shown(iso_year) % 10**width if width < 4 else shown(iso_year), width)
        case "J":
            return _number(p, day + JULIAN_DAY_1970, 0)
    return ""  # FX


def _julian_day(year: int, month: int, day: int) -> int:
    """Computes PostgreSQL's date2j(), which accepts months and days out of range."""
    year, month = (year + 4800, month + 1) if month > 2 else (year + 4799, month + 13)
    century = quotient(year, 100)
    leap_days = quotient(year, 4) - century + quotient(century, 4)
    return year * 365 - 32167 + leap_days + quotient(7834 * month, 256) + day


def _date_only(f: _Fields, text: str) -> str:
    """Returns the text. Raises 22007 for an interval."""
    if f.day is None:
        raise InvalidDatetimeFormat(
            "invalid format specification for an interval value",
            hint="Intervals are not tied to specific calendar dates.",
        )
    return text


# --- text of a field -----------------------------------------------------------------------------


def _number(p: Part, value: int, width: int) -> str:
    # In DD, DDD and WW the minus sign takes the place of a digit.
    sign_outside_width = value < 0 and p.field not in ("DD", "DDD", "WW")
    return _with_ending(p, str(value) if p.fill_mode else f"{value:0{width + sign_outside_width}d}")


def _fraction(p: Part, f: _Fields, digits: int) -> str:
    return _with_ending(p, f"{quotient(f.fraction, 10 ** (6 - digits)):0{digits}d}")


def _with_ending(p: Part, number: str) -> str:
    """Appends the ending of an ordinal number if the field has the suffix TH or th."""
    if not p.suffix:
        return number
    ending = ordinal_ending(number)
    return number + (ending.upper() if p.suffix == "TH" else ending)


def _cased(p: Part, text: str) -> str:
    """Returns a text in the case of the field's spelling: upper, lower, or mixed."""
    return text.upper() if p.spelling.isupper() else text.lower() if p.spelling.islower() else text


def _padded(p: Part, text: str, width: int) -> str:
    return text if p.fill_mode else text.ljust(width)
