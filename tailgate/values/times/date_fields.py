"""The fields of a date and time.

A token adds fields; no field may be given twice. The order of the fields follows from their length,
from the names of months, and from the order of the setting DateStyle.

Source: PostgreSQL 15, src/backend/utils/adt/datetime.c, DecodeDate, DecodeNumber, DecodeNumberField,
DecodeTime, DecodeTimezone, ValidateDate.
"""

from __future__ import annotations

import re
from datetime import timedelta, tzinfo
from typing import TypeAlias

from tailgate.lake.errors import TailgateError
from tailgate.values.times import calendar, zones
from tailgate.values.times import date_tokens as d
from tailgate.values.times.calendar import DAY as DAY_MICROS
from tailgate.values.times.calendar import SECOND as SECOND_MICROS
from tailgate.values.times.date_tokens import BadFormat, FieldOverflow, MonthOverflow, Token, ZoneOverflow

YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, ZONE, DAY_OF_YEAR, FRACTION, HALF, ERA, WEEKDAY, SUMMER_TIME = (1 << n for n in range(13))
DATE, TIME = YEAR | MONTH | DAY, HOUR | MINUTE | SECOND
ZONE_HOURS_MAX = 15

Zone: TypeAlias = timedelta | tzinfo | None


class Fields:
    """The fields that the tokens have given so far, and their mask."""

    def __init__(self, date_order: str) -> None:
        self.date_order = date_order
        self.mask = 0
        self.year = self.month = self.day = self.day_of_year = 0
        self.hour = self.minute = self.second = self.micros = 0
        self.zone: Zone = None
        self.summer_time = timedelta()
        self.half = self.era = self.word = ""
        self.unit = ""  # what the next number is, if a word said it
        self.julian = self.short_year = self.month_name = False

    def add(self, mask: int) -> None:
        """Notes fields. Raises `BadFormat` if one of them was given before."""
        if mask & self.mask:
            raise BadFormat
        self.mask |= mask

    # --- dates -----------------------------------------------------------------------------------

    def date(self, text: str) -> int:
        """Decodes a date such as 2021-04-26 or 26-apr-2021."""
        parts = _date_parts(text)
        earlier_mask, added = self.mask, 0
        for name in filter(str.isalpha, parts):
            kind, value = d.WORDS.get(name[: d.WORD_LENGTH], ("", 0))
            if kind == d.IGNORED:
                continue
            if kind != d.MONTH or (earlier_mask | added) & MONTH:
                raise BadFormat
            self.month, added = int(value), added | MONTH
        month_name = added != 0
        for digits in filter(str.isdigit, parts):
            mask = self.number(digits, month_name, earlier_mask | added)
            if mask & (earlier_mask | added):
                raise BadFormat
            added |= mask
        if (earlier_mask | added) & ~(DAY_OF_YEAR | ZONE) != DATE:
            raise BadFormat
        return added

    def number(self, text: str, month_name: bool, earlier_mask: int) -> int:
        """Decodes a number by the fields of the date that are known."""
        value, rest = d.integer(text)
        if rest == text or (rest and not rest.startswith(".")):
            raise BadFormat
        if rest:
            if len(text) - len(rest) > 2:
                return self.run_together(text, earlier_mask | DATE)
            self.micros = _micros(rest)
        earlier_mask &= DATE
        if len(text) == 3 and earlier_mask == YEAR and 1 <= value <= 366:
            self.day_of_year = value
            return DAY_OF_YEAR | MONTH | DAY
        if earlier_mask == YEAR | MONTH and month_name and len(text) >= 3 and self.short_year:
            self.day, self.year, self.short_year = self.year, value, False  # the first number was the day
            return DAY
        if earlier_mask == DATE:
            return self.run_together(text, earlier_mask)
        field = self._next(earlier_mask, month_name, len(text))
        if field == YEAR:
            self.year, self.short_year = value, len(text) <= 2
        elif field == MONTH:
            self.month = value
        else:
            self.day = value
        return field

    def _next(self, earlier_mask: int, month_name: bool, length: int) -> int:
        """Returns the field of a number, by the fields before it."""
        long = length >= 3 or self.date_order == "YMD"
        if earlier_mask == 0:
            return YEAR if long else DAY if self.date_order == "DMY" else MONTH
        if earlier_mask == MONTH:
            return YEAR if month_name and long else DAY
        return {YEAR: MONTH, DAY: MONTH, YEAR | MONTH: DAY, MONTH | DAY: YEAR}[earlier_mask]

    def run_together(self, text: str, earlier_mask: int) -> int:
        """Decodes a date such as 20210426, or a time such as 101112.5."""
        digits, point, fraction = text.partition(".")
        if point:
            self.micros = _micros(point + fraction)
        elif earlier_mask & DATE != DATE and len(text) >= 6:
            self.year, self.month, self.day = d.wrapped_integer(text[:-4]), int(text[-4:-2]), int(text[-2:])
            self.short_year = self.short_year or len(text) == 6
            return DATE
        if earlier_mask & TIME != TIME and len(digits) in (4, 6):
            self.hour, self.minute, self.second = int(digits[:2]), int(digits[2:4]), int(digits[4:] or 0)
            return TIME
        raise BadFormat

    def julian_day(self, value: int) -> None:
        if value < 0:
            raise FieldOverflow
        self.year, self.month, self.day = calendar.civil(value - calendar.JULIAN_DAY_1970)
        self.julian = True

    # --- times -----------------------------------------------------------------------------------

    def time(self, text: str) -> int:
        """Decodes a time such as 10:11 or 10:11:12.5."""
        self.hour, self.minute, self.second, self.micros = clock(text)
        return TIME

    def named_zone(self, name: str) -> int:
        """Looks up a zone by its full name. Raises 22023."""
        self.zone = zones.zone(name)
        return ZONE

    def labelled(self, text: str) -> int:
        """Decodes a number whose field the word before it said, as in `y2021`."""
        unit, self.unit = self.unit, ""
        value, rest = d.integer(text)
        if unit == "time":
            mask = self.run_together(text, self.mask | DATE)
            if mask != TIME:
                raise BadFormat
            return mask
        if rest and not (rest.startswith(".") and unit in ("julian", "second")):
            raise BadFormat
        if unit == "julian":
            self.julian_day(value)
            if not rest:
                return DATE
            self._set_time(int(d.fraction(rest) * DAY_MICROS))
            return DATE | TIME
        if unit == "month" and self.mask & MONTH and self.mask & HOUR:
            unit = "minute"
        if unit not in _MASKS:
            raise BadFormat
        setattr(self, unit, value)
        if unit == "second" and rest:
            self.micros = _micros(rest)
            return SECOND | FRACTION
        return _MASKS[unit]

    def _set_time(self, micros: int) -> None:
        seconds, self.micros = divmod(micros, SECOND_MICROS)
        minutes, self.second = divmod(seconds, 60)
        self.hour, self.minute = divmod(minutes, 60)

    # --- words -----------------------------------------------------------------------------------

    def word_of(self, token: Token, following: Token | None, *, time_only: bool) -> int:
        """Decodes a word. Returns the mask of its fields."""
        east = zones.MINUTES_BY_ABBREVIATION.get(token.text)
        if east is not None:
            self.zone = timedelta(minutes=east)
            return ZONE
        kind, value = d.WORDS.get(token.text[: d.WORD_LENGTH], ("", 0))
        match kind:
            case d.IGNORED:
                return 0
            case d.RESERVED:
                return self._reserved(str(value), time_only)
            case d.MONTH if not time_only:
                return self._month(int(value))
            case d.SUMMER_TIME:
                self.summer_time = timedelta(seconds=int(value))
                return SUMMER_TIME
            case d.HALF:
                self.half = str(value)
                return HALF
            case d.ERA:
                self.era = str(value)
                return ERA
            case d.WEEKDAY if not time_only:
                return WEEKDAY
            case d.UNIT:
                self.unit = str(value)
                return 0
            case d.ISO_TIME:
                dated = time_only or self.mask & DATE == DATE
                if not dated or following is None or following.kind not in (d.NUMBER, d.TIME, d.DATE):
                    raise BadFormat
                self.unit = str(value)
                return 0
            case "":
                try:
                    return self.named_zone(token.text)
                except TailgateError:
                    raise BadFormat from None
        raise BadFormat

    def _month(self, month: int) -> int:
        added = MONTH
        if self.mask & MONTH and not self.month_name and not self.mask & DAY and 1 <= self.month <= 31:
            self.day, added = self.month, DAY  # the number before the name was the day
        self.month_name = True
        self.month = month
        return added

    def _reserved(self, word: str, time_only: bool) -> int:
        if word == "allballs":
            self.zone = timedelta()
            return TIME | ZONE
        if time_only and word != "now":
            raise BadFormat
        self.word = word
        return DATE | TIME | ZONE if word in ("epoch", "infinity", "-infinity", "now") else DATE

    # --- checks ----------------------------------------------------------------------------------

    def check_date(self) -> None:
        """Completes the year by its era or length, and checks the date."""
        if self.word:
            return
        if self.mask & YEAR and not self.julian:
            if self.era == "bc":
                if self.year <= 0:
                    raise FieldOverflow
                self.year = 1 - self.year
            elif self.short_year:
                self.year += 2000 if self.year < 70 else 1900 if self.year < 100 else 0
            elif self.year <= 0:
                raise FieldOverflow
        if self.mask & DAY_OF_YEAR:
            self.year, self.month, self.day = calendar.civil(calendar.days(self.year, 1, 1) + self.day_of_year - 1)
        if (self.mask & MONTH and not 1 <= self.month <= 12) or (self.mask & DAY and not 1 <= self.day <= 31):
            raise MonthOverflow
        if self.mask & DATE == DATE and calendar.civil(self.days) != (self.year, self.month, self.day):
            raise FieldOverflow

    def check_half(self) -> None:
        """Applies AM and PM."""
        if not self.half:
            return
        if self.hour > 12:
            raise FieldOverflow
        self.hour = self.hour % 12 + (12 if self.half == "pm" else 0)

    @property
    def days(self) -> int:
        return calendar.days(self.year, self.month, self.day)

    @property
    def time_of_day(self) -> int:
        return ((self.hour * 60 + self.minute) * 60 + self.second) * SECOND_MICROS + self.micros

    def check_time(self) -> None:
        fields = (self.hour, 24), (self.minute, 59), (self.second, 60), (self.micros, SECOND_MICROS)
        if any(not 0 <= value <= most for value, most in fields) or self.time_of_day > DAY_MICROS:
            raise FieldOverflow


_MASKS = {"year": YEAR, "month": MONTH, "day": DAY, "hour": HOUR, "minute": MINUTE, "second": SECOND}


_DATE_PART = re.compile(r"[^0-9a-z]*(\d+|[a-z]+).?", re.ASCII | re.DOTALL)


def _date_parts(text: str) -> list[str]:
    """Splits a date into numbers and words; each ends at a delimiter."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        match = _DATE_PART.match(text, at)
        if match is None:
            raise BadFormat
        parts.append(match[1])
        at = match.end()
    return parts


def _micros(fraction: str) -> int:
    return round(d.fraction(fraction) * SECOND_MICROS)


def clock(text: str) -> tuple[int, int, int, int]:
    """Returns hour, minute, second and µs of a time. The hour has no limit."""
    hour, rest = d.long_integer(text)
    if not rest.startswith(":"):
        raise BadFormat
    minute, rest = d.integer(rest[1:])
    second = micros = 0
    if rest.startswith(":"):
        second, rest = d.integer(rest[1:])
        if rest:
            micros = _micros(rest)
    elif rest:  # minutes and seconds
        hour, minute, second, micros = 0, hour, minute, _micros(rest)
    if not 0 <= minute <= 59 or not 0 <= second <= 60 or hour < 0:
        raise FieldOverflow
    return hour, minute, second, micros


def zone_offset(text: str) -> timedelta:
    """Returns the offset east of UTC of a text such as +02, -0830 or +05:30:15."""
    try:
        hours, rest = d.integer(text[1:])
        minutes = seconds = 0
        if rest.startswith(":"):
            minutes, rest = d.integer(rest[1:])
            if rest.startswith(":"):
                seconds, rest = d.integer(rest[1:])
        elif not rest and len(text) > 3:
            hours, minutes = divmod(hours, 100)
    except FieldOverflow:
        raise ZoneOverflow from None
    if not 0 <= hours <= ZONE_HOURS_MAX or not 0 <= minutes <= 59 or not 0 <= seconds <= 59:
        raise ZoneOverflow
    if rest:
        raise BadFormat
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return -offset if text.startswith("-") else offset
