"""The input function of interval: "1 year 2 mons -3 days 04:05:06.7", "1-2", "P1Y2M3DT4H".

Source: PostgreSQL 15, appendix "Date/Time Support"; SQL standard and "postgres" interval styles.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Decimal
from typing import NamedTuple

from tailgate.lake.errors import DatetimeFieldOverflow, InvalidDatetimeFormat, TailgateError
from tailgate.sql.input.numbers import BLANKS
from tailgate.sql.input.units import DAY, HOUR, MINUTE, SECOND


class Unit(NamedTuple):
    """The length of a unit; one part is not 0."""

    months: int = 0
    days: int = 0
    micros: int = 0


UNITS = {
    spelling: unit
    for spellings, unit in (
        ("year years y yr yrs", Unit(months=12)),
        ("month months mon mons", Unit(months=1)),
        ("decade decades dec decs", Unit(months=120)),
        ("century centuries cent c", Unit(months=1200)),
        ("millennium millennia mil mils", Unit(months=12000)),
        ("week weeks w", Unit(days=7)),
        ("day days d", Unit(days=1)),
        ("hour hours h hr hrs", Unit(micros=HOUR)),
        ("minute minutes m min mins", Unit(micros=MINUTE)),
        ("second seconds s sec secs", Unit(micros=SECOND)),
        ("millisecond milliseconds ms msec msecs", Unit(micros=1_000)),
        ("microsecond microseconds us usec usecs", Unit(micros=1)),
    )
    for spelling in spellings.split()
}
PART = re.compile(
    r"\s*(?:(?P<sign>[+-])?(?P<hour>\d+):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2}(?:\.\d*)?))?"
    r"|(?P<years>[+-]?\d+)-(?P<months>\d{1,2})(?![\d-])"
    r"|(?P<amount>[+-]?(?:\d+\.?\d*|\.\d+))\s*(?P<unit>[a-zA-Z]+)?)"
)
ISO = re.compile(r"P(?P<date>[^T]*)(?:T(?P<time>.*))?")
ISO_PART = re.compile(r"([+-]?\d+(?:\.\d+)?)([YMWDHS])")
ISO_DATE_UNITS = {"Y": "year", "M": "month", "W": "week", "D": "day"}
ISO_TIME_UNITS = {"H": "hour", "M": "minute", "S": "second"}


def to_interval(text: str, fields: str = "") -> tuple[int, int, int]:
    """Returns months, days and microseconds.

    `fields` is what follows an interval literal, such as `day` or `hour to second`.

    >>> to_interval("1 year 2 mons -3 days 04:05:06.7")
    (14, -3, 14706700000)
    """
    reader = _Reader(text, fields)
    iso = ISO.fullmatch(text)
    if iso is not None and len(text) > 1:
        reader.read_iso(iso["date"], ISO_DATE_UNITS)
        reader.read_iso(iso["time"] or "", ISO_TIME_UNITS)
    else:
        reader.read()
    months, days, micros = reader.months, reader.days, reader.micros
    if not -(2**31) <= months < 2**31 or not -(2**31) <= days < 2**31 or not -(2**63) <= micros < 2**63:
        raise DatetimeFieldOverflow(f'interval field value out of range: "{text}"')
    return int(months), int(days), int(micros.to_integral_value(ROUND_HALF_EVEN))


class _Reader:
    """Sums the parts of an interval's text."""

    def __init__(self, text: str, fields: str) -> None:
        self.text, self.fields = text, fields
        self.months = self.days = self.micros = Decimal(0)

    def _invalid(self) -> TailgateError:
        return InvalidDatetimeFormat(f'invalid input syntax for type interval: "{self.text}"')

    def _add(self, amount: Decimal, unit: Unit) -> None:
        """Adds an amount of a unit.

        A fraction of a month becomes days (30 each), and a fraction of a day becomes time.
        """
        if unit.months:
            exact = amount * unit.months
            self.months += int(exact)
            if unit.months == 1 and exact != int(exact):
                self._add((exact - int(exact)) * 30, UNITS["day"])
        elif unit.days:
            exact = amount * unit.days
            self.days += int(exact)
            self.micros += (exact - int(exact)) * DAY
        else:
            self.micros += amount * unit.micros

    def read_iso(self, parts: str, units: dict[str, str]) -> None:
        """Reads the date or time part of ISO 8601's format."""
        pairs = ISO_PART.findall(parts)
        if "".join(amount + letter for amount, letter in pairs) != parts:
            raise self._invalid()
        for amount, letter in pairs:
            if letter not in units:
                raise self._invalid()
            self._add(Decimal(amount), UNITS[units[letter]])

    def read(self) -> None:
        """Reads PostgreSQL's and the SQL standard's format."""
        stripped = self.text.strip(BLANKS)
        ago = stripped.lower().endswith("ago")
        body = stripped.removeprefix("@")[: -3 if ago else None]
        if not body.strip(BLANKS):
            raise self._invalid()
        at = 0
        names: set[object] = set()  # each field may occur once
        while at < len(body) and body[at:].strip(BLANKS):
            match = PART.match(body, at)
            if match is None or match.end() == at:
                raise self._invalid()
            unit_name = (match["unit"] or "").lower()
            name = "time" if match["hour"] is not None else "years" if match["years"] is not None else unit_name
            if UNITS.get(name, name) in names:
                raise self._invalid()
            names.add(UNITS.get(name, name))
            if match["hour"] is not None:
                self._add_time(match)
            elif match["years"] is not None:
                self._add_years_months(match)
            else:
                unit = UNITS.get(unit_name) if unit_name else self._default_unit(body, match.end())
                if unit is None:
                    raise self._invalid()
                self._add(Decimal(match["amount"]), unit)
            at = match.end()
        if ago:
            self.months, self.days, self.micros = -self.months, -self.days, -self.micros

    def _add_time(self, match: re.Match[str]) -> None:
        minutes_seconds = match["second"] is None and self.fields == "minute to second"
        first = int(match["hour"]) * 60 + int(match["minute"])
        seconds = first * (1 if minutes_seconds else 60) + Decimal(match["second"] or 0)
        self.micros += (-1 if match["sign"] == "-" else 1) * seconds * SECOND

    def _add_years_months(self, match: re.Match[str]) -> None:
        sign = -1 if match["years"].startswith("-") else 1
        self.months += int(match["years"]) * 12 + sign * int(match["months"])

    def _default_unit(self, body: str, at: int) -> Unit:
        """Returns the unit of a bare number: days before a time ("3 4:05"), else the last field."""
        following = PART.match(body, at)
        if following is not None and following["hour"] is not None:
            return UNITS["day"]
        return UNITS[self.fields.split()[-1]] if self.fields else UNITS["second"]
