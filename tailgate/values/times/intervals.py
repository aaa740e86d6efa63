"""Type interval: (months, days, µs).

    "1 year 2 mons -3 days 04:05:06.7", "1-2", "P1Y2M3DT4H", "P0001-02-03T04:05:06"

Source: PostgreSQL 15, src/backend/utils/adt/datetime.c, DecodeInterval, DecodeISO8601Interval,
EncodeInterval; timestamp.c, interval_in, interval_recv.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import TypeAlias

from tailgate.lake.errors import DatetimeFieldOverflow, IntervalFieldOverflow, InvalidDatetimeFormat
from tailgate.lake.types import Type
from tailgate.values.codec.binary import check_size
from tailgate.values.codec.codec import Codec, Writer
from tailgate.values.codec.style import DEFAULT, Style
from tailgate.values.times import date_tokens as d
from tailgate.values.times.date_fields import clock
from tailgate.values.times.date_tokens import BadFormat, FieldOverflow, Token
from tailgate.values.times.dates import fraction, write_time
from tailgate.values.times.units import DAY, HOUR, MINUTE, SECOND, UNITS_BY_SPELLING

Interval: TypeAlias = tuple[int, int, int]

DAYS_PER_MONTH = 30
MONTHS = {"month": 1, "year": 12, "decade": 120, "century": 1200, "millennium": 12_000}
DAYS = {"day": 1, "week": 7}
MICROS = {"hour": HOUR, "minute": MINUTE, "second": SECOND, "millisecond": 1_000, "microsecond": 1}
# the words that may follow a number, cut as the tokens are
SPELLINGS = {word[: d.WORD_LENGTH]: unit for word, unit in UNITS_BY_SPELLING.items() if unit in {**MONTHS, **DAYS, **MICROS}}
_SUBSECONDS = frozenset({"second", "millisecond", "microsecond"})
_CLOCK = frozenset({"hour", "minute", "second"})


def read(text: str, type: Type, style: Style) -> Interval:
    return read_fields(text, type.fields_of_interval)


def read_fields(text: str, fields: str = "") -> Interval:
    """Reads an interval. `fields` is what follows an interval literal, such as `day` or `hour to second`.

    >>> read_fields("1 year 2 mons -3 days 04:05:06.7"), read_fields("2:03", "minute to second")
    ((14, -3, 14706700000), (0, 0, 123000000))
    """
    try:
        total = _read(text, fields)
    except BadFormat:
        raise InvalidDatetimeFormat(f'invalid input syntax for type interval: "{text}"') from None
    except FieldOverflow:
        raise IntervalFieldOverflow(f'interval field value out of range: "{text}"') from None
    if not -(2**31) <= total.months < 2**31:
        raise DatetimeFieldOverflow("interval out of range")
    return total.months, total.days, total.micros


def _read(text: str, fields: str) -> _Sum:
    try:
        return _by_units(d.tokens(text), fields)
    except BadFormat:
        return _Iso(text).read()


class _Sum:
    """The sum of the parts of an interval."""

    def __init__(self) -> None:
        self.months = self.days = self.micros = 0
        self._years = 0  # of the months

    def add(self, amount: int, part: float, unit: str) -> None:
        """Adds an amount of a unit and a fraction of one.

        A fraction of a year becomes whole months, one of a month days, and one of a day time.
        """
        if unit in MONTHS:
            self._add_months(amount, unit)
            if unit == "month":
                self._add_days(part * DAYS_PER_MONTH)
            else:
                self.months += round(part * MONTHS[unit])
        elif unit in DAYS:
            self._check(amount, 32)
            self.days = self._check(self.days + self._check(amount * DAYS[unit], 32), 32)
            self._add_days(part * DAYS[unit])
        else:
            self.micros = self._check(self.micros + self._check(amount * MICROS[unit], 64), 64)
            self._add_micros(part, MICROS[unit])

    def _add_months(self, amount: int, unit: str) -> None:
        self._check(amount, 32)
        if unit == "month":
            self.months += amount
            self._check(self.months - 12 * self._years, 32)
        else:
            years = amount * (MONTHS[unit] // 12)
            self._years = self._check(self._years + self._check(years, 32), 32)
            self.months += 12 * years

    def _add_days(self, part: float) -> None:
        days = int(part)
        self.days = self._check(self.days + days, 32)
        self._add_micros(part - days, DAY)

    def _add_micros(self, part: float, scale: int) -> None:
        """Adds a fraction of a unit, rounded to µs; half a µs is dropped."""
        part *= scale
        whole = int(part)
        rest = part - whole
        self.micros = self._check(self.micros + whole + (1 if rest > 0.5 else -1 if rest < -0.5 else 0), 64)

    def negate(self) -> None:
        self.months, self.days, self.micros = -self.months, self._check(-self.days, 32), self._check(-self.micros, 64)

    @staticmethod
    def _check(value: int, bits: int) -> int:
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise FieldOverflow
        return value


# --- PostgreSQL's and the SQL standard's format --------------------------------------------------


def _by_units(tokens: list[Token], fields: str) -> _Sum:
    """Reads backwards: a unit follows its number."""
    total = _Sum()
    units: set[str] = set()
    unit, ago = "", False
    for token in reversed(tokens):
        added: frozenset[str] | set[str] = frozenset()
        if token.kind in (d.STRING, d.SPECIAL):
            if token.text == "ago":
                ago, unit = True, "ago"
            elif token.text in ("at", "on"):
                raise BadFormat
            else:
                unit = SPELLINGS.get(token.text[: d.WORD_LENGTH], "")
                if not unit:
                    raise BadFormat
            continue
        if token.kind == d.TIME or (token.kind == d.SIGNED and ":" in token.text and _is_clock(token.text[1:])):
            total.micros = _clock_micros(token.text, fields)
            added, unit = _CLOCK, "day"
        else:
            unit, added = _add_number(total, token.text, unit or _last_field(fields))
        if units & added:
            raise BadFormat
        units |= added
    if not units:
        raise BadFormat
    if ago:
        total.negate()
    return total


def _last_field(fields: str) -> str:
    """Returns the unit of a number without one."""
    return fields.split()[-1] if fields else "second"


def _is_clock(text: str) -> bool:
    try:
        clock(text)
    except (BadFormat, FieldOverflow):
        return False
    return True


def _clock_micros(text: str, fields: str) -> int:
    sign = -1 if text.startswith("-") else 1
    hour, minute, second, micros = clock(text.lstrip("+-"))
    if fields == "minute to second" and text.count(":") == 1 and "." not in text:
        hour, minute, second = 0, hour, minute
    value = sign * (hour * HOUR + minute * MINUTE + second * SECOND + micros)
    if not -(2**63) < value < 2**63:
        raise FieldOverflow
    return value


def _add_number(total: _Sum, text: str, unit: str) -> tuple[str, set[str]]:
    """Adds a number of a unit, or years and months such as 1-2.

    Returns the unit of the number before it, and the fields that it gave.
    """
    amount, rest = d.long_integer(text)
    part = 0.0
    negative = text.startswith("-")
    if rest.startswith("-"):
        months, rest = d.integer(rest[1:])
        if not 0 <= months < 12:
            raise FieldOverflow
        if rest:
            raise BadFormat
        unit, amount = "month", amount * 12 + (-months if negative else months)
    elif rest.startswith("."):
        part = d.fraction(rest) * (-1 if negative else 1)
    elif rest:
        raise BadFormat
    if unit == "ago":
        raise BadFormat
    total.add(amount, part, unit)
    if unit == "second" and part:
        return unit, set(_SUBSECONDS)
    return "day" if unit == "hour" else unit, {unit}


# --- ISO 8601 ------------------------------------------------------------------------------------

_ISO_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_ISO_DATE_UNITS = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_ISO_TIME_UNITS = {"H": "hour", "M": "minute", "S": "second"}
_ISO_VALUE_MAX = 1e15


class _Iso:
    """A reader of ISO 8601's formats, with designators (P1DT2H) and alternative ones (P0001-02-03T04:05:06)."""

    def __init__(self, text: str) -> None:
        if len(text) < 2 or text[0] != "P":
            raise BadFormat
        self.text, self.at, self.total = text, 1, _Sum()

    def _number(self) -> tuple[int, float]:
        match = _ISO_NUMBER.match(self.text, self.at)
        if match is None:
            raise BadFormat
        self.at = match.end()
        value = float(match[0])
        if abs(value) > _ISO_VALUE_MAX:
            raise FieldOverflow
        return int(value), value - int(value)

    def _next(self) -> str:
        """Returns the next character, and nothing at the end."""
        self.at += 1
        return self.text[self.at - 1 : self.at]

    def read(self) -> _Sum:
        dated, first = True, True
        while self.at < len(self.text):
            if self.text[self.at] == "T":
                self.at += 1
                dated, first = False, True
                continue
            start = self.at
            amount, part = self._number()
            width = sum(map(str.isdigit, self.text[start : self.at].partition(".")[0]))
            designator = self._next()
            unit = (_ISO_DATE_UNITS if dated else _ISO_TIME_UNITS).get(designator)
            if unit is not None:
                self.total.add(amount, part, unit)
                first = False
            elif not first or designator not in (("", "T", "-") if dated else ("", ":")):
                raise BadFormat
            elif not dated:
                self._alternative_time(amount, part, width, designator)
                return self.total
            else:
                self._alternative_date(amount, part, width, designator)
                dated = False
        return self.total

    def _alternative_date(self, amount: int, part: float, width: int, designator: str) -> None:
        """Adds a date such as 00010203 or 0001-02-03, up to the T."""
        if width == 8 and designator != "-":
            for value, unit in ((amount // 10_000, "year"), (amount // 100 % 100, "month"), (amount % 100, "day")):
                self.total.add(value, part if unit == "day" else 0.0, unit)
            return
        self.total.add(amount, part, "year")
        for unit in ("month", "day"):
            if designator != "-":
                break
            self.total.add(*self._number(), unit)
            designator = self._next()
        if designator not in ("", "T"):
            raise BadFormat

    def _alternative_time(self, amount: int, part: float, width: int, designator: str) -> None:
        """Adds a time such as 040506 or 04:05:06, to the end."""
        if width == 6 and not designator:
            for value, unit in ((amount // 10_000, "hour"), (amount // 100 % 100, "minute"), (amount % 100, "second")):
                self.total.add(value, 0.0, unit)
            self.total.add(0, part, "microsecond")
            return
        self.total.add(amount, part, "hour")
        for unit in ("minute", "second"):
            if designator != ":":
                break
            self.total.add(*self._number(), unit)
            designator = self._next()
        if designator:
            raise BadFormat


# --- output --------------------------------------------------------------------------------------


def write_postgres(value: Interval) -> bytes:
    """
    >>> write_postgres((14, 3, 3661500000)), write_postgres((0, -1, 3600000000)), write_postgres((0, 0, 0))
    (b'1 year 2 mons 3 days 01:01:01.5', b'-1 days +01:00:00', b'00:00:00')
    """
    months, days, micros = value
    years, months = _towards_zero(months, 12)
    parts, before = [], False
    for number, unit in ((years, b"year"), (months, b"mon"), (days, b"day")):
        if number:
            plus = b"+" if before and number > 0 else b""
            parts.append(b"%s%d %s%s" % (plus, number, unit, b"" if number == 1 else b"s"))
            before = number < 0
    if micros or not parts:
        sign = b"-" if micros < 0 else b"+" if before else b""
        parts.append(sign + write_time(abs(micros)))
    return b" ".join(parts)


def write_iso(value: Interval) -> bytes:
    """
    >>> write_iso((14, 3, 3661500000)), write_iso((0, 0, -500000)), write_iso((0, 0, 0))
    (b'P1Y2M3DT1H1M1.5S', b'PT-0.5S', b'PT0S')
    """
    months, days, micros = value
    years, months = _towards_zero(months, 12)
    date = b"".join(b"%d%s" % (n, u) for n, u in ((years, b"Y"), (months, b"M"), (days, b"D")) if n)
    hours, rest = _towards_zero(micros, HOUR)
    minutes, rest = _towards_zero(rest, MINUTE)
    seconds, rest = _towards_zero(rest, SECOND)
    time = b"".join(b"%d%s" % (n, u) for n, u in ((hours, b"H"), (minutes, b"M")) if n)
    if seconds or rest:
        time += b"%s%d%sS" % (b"-" if seconds < 0 or rest < 0 else b"", abs(seconds), fraction(abs(rest)))
    return b"P" + date + (b"T" + time if time else b"") if date or time else b"PT0S"


def _towards_zero(value: int, unit: int) -> tuple[int, int]:
    quotient, rest = divmod(abs(value), unit)
    return (-quotient, -rest) if value < 0 else (quotient, rest)


def writer(type: Type, style: Style = DEFAULT) -> Writer:
    return write_iso if style.interval_style == "iso_8601" else write_postgres


# --- binary --------------------------------------------------------------------------------------

_LAYOUT = Struct("!qii")  # µs, days, months


def read_binary(data: bytes, type: Type) -> Interval:
    check_size(data, _LAYOUT.size)
    micros, days, months = _LAYOUT.unpack(data)
    return months, days, micros


def write_binary(value: Interval) -> bytes:
    return _LAYOUT.pack(value[2], value[1], value[0])


def order_key(value: Interval) -> int:
    """Returns the length in µs, with 30 days in a month and 24 hours in a day."""
    months, days, micros = value
    return (months * DAYS_PER_MONTH + days) * DAY + micros


INTERVAL = Codec(read, read_binary, writer, lambda type: write_binary, order_key=order_key)
