"""to_date(text, pattern) and to_timestamp(text, pattern), in English.

Source: PostgreSQL 15, src/backend/utils/adt/formatting.c, DCH_from_char(), do_to_timestamp().
"""

from __future__ import annotations

from collections.abc import Sequence

from tailgate.lake.errors import DatetimeFieldOverflow, FeatureNotSupported, InvalidDatetimeFormat, TailgateError
from tailgate.sql.compute.numeric.numerals import roman
from tailgate.sql.compute.registry import udf
from tailgate.sql.compute.time.date_pattern import DAYS, MONTHS, SEPARATORS, Kind, Part, parse
from tailgate.sql.compute.time.interval_functions import remainder
from tailgate.values.times.calendar import JULIAN_DAY_1970, MICROS_TO_2000, civil, day_in_range, days, time_in_range, weekday
from tailgate.values.times.units import DAY, HOUR, MINUTE, SECOND

ROMAN_MONTHS = [roman(n) for n in range(1, 13)]
WIDTHS = {  # digits of the numeric fields
    field: width
    for width, fields in (
        (1, "Q D ID W Y I FF1"),
        (2, "HH24 HH12 HH MI SS TZH TZM CC MM DD WW IW YY IY FF2"),
        (3, "DDD IDDD YYY IYY MS FF3"),
        (4, "YYYY IYYY FF4"),
        (5, "SSSS SSSSS FF5"),
        (6, "US FF6"),
        (7, "J"),
    )
    for field in fields.split()
}


@udf("text", "text", to="date")
def to_date(text: str, pattern: str) -> int:
    return _date(_Reader(text, pattern).read(), text)


@udf("text", "text", to="timestamptz")
def to_timestamp_text(text: str, pattern: str) -> int:
    return parsed_timestamp(text, pattern)[0]


def parsed_timestamp(text: str, pattern: str) -> tuple[int, bool]:
    """Returns a timestamp, and whether its text has an offset from UTC; otherwise it is local."""
    fields = _Reader(text, pattern).read()
    hour, minute, second = fields.get("hour", 0), fields.get("MI", 0), fields.get("SS", 0)
    if "SSSS" in fields:
        second_of_day = fields["SSSS"]
        hour, minute, second = second_of_day // 3600, second_of_day // 60 % 60, second_of_day % 60
    if "hour12" in fields or "half" in fields:
        if not 1 <= hour <= 12:
            raise InvalidDatetimeFormat(
                f'hour "{hour}" is invalid for the 12-hour clock',
                hint="Use the 24-hour clock, or give an hour between 1 and 12.",
            )
        hour = hour % 12 + 12 * fields.get("half", 0)
    micros = fields.get("micros", 0)
    if not 0 <= hour <= 23 or not 0 <= minute <= 59 or not 0 <= second <= 59 or not 0 <= micros < 1_000_000:
        raise _out_of_range(text)
    offset = (fields.get("TZH", 0) * HOUR + fields.get("TZM", 0) * MINUTE) * fields.get("offset_sign", 1)
    time = hour * HOUR + minute * MINUTE + second * SECOND + micros
    return _rounded(time_in_range(_date(fields, text) * DAY + time - offset, text), fields.get("FF", 6)), "TZH" in fields


def _rounded(micros: int, digits: int) -> int:
    """Rounds to digits of a second, half away from the begin of 2000, as PostgreSQL does."""
    unit: int = 10 ** (6 - digits)
    since_2000 = micros - MICROS_TO_2000
    rounded = (abs(since_2000) + unit // 2) // unit * unit
    return MICROS_TO_2000 + (rounded if since_2000 > 0 else -rounded)


# --- dates ---------------------------------------------------------------------------------------


def _out_of_range(text: str) -> TailgateError:
    return DatetimeFieldOverflow(f'date/time field value out of range: "{text}"')


def _date(fields: dict[str, int], text: str) -> int:
    """Returns days since 1970. Without a year the date is in 1 BC."""
    if "J" in fields:
        return day_in_range(fields["J"] - JULIAN_DAY_1970, text)
    year = _year(fields)
    if "IYYY" in fields or "IW" in fields:
        return _iso_date(fields, text)
    if "DDD" in fields and "MM" not in fields:
        return _ordinal_date(year, fields, text)
    # A month or day of 0 counts as missing.
    month, day = fields.get("MM") or 1, fields.get("DD") or 1
    if "WW" in fields:
        return day_in_range(days(year, 1, 1) + (fields["WW"] - 1) * 7, text)
    if "W" in fields:
        day = (fields["W"] - 1) * 7 + 1
    if not 1 <= month <= 12 or not 1 <= day <= 31 or civil(days(year, month, day)) != (year, month, day):
        raise _out_of_range(text)
    return day_in_range(days(year, month, day), text)


def _year(fields: dict[str, int]) -> int:
    """Returns the astronomical year: 0 is 1 BC."""
    sign = -1 if fields.get("era") else 1
    year, century = fields.get("YYYY", 0), fields.get("CC", 0) * sign
    if year and century and fields.get("year_digits", 4) <= 2:
        year_of_century = remainder(year, 100)
        if year_of_century == 0:
            return century * 100 + (century < 0)
        return (century + 1 if century < 0 else century - 1) * 100 + year_of_century
    if year:
        return year * sign + (year * sign < 0)
    return 0 if century == 0 else (century - 1) * 100 + 1 if century > 0 else century * 100 + 1


def _ordinal_date(year: int, fields: dict[str, int], text: str) -> int:
    if year == 0 and not fields.get("era"):
        raise InvalidDatetimeFormat("cannot calculate day of year without year information")
    day = days(year, 1, 1) + fields["DDD"] - 1
    if not 1 <= fields["DDD"] <= 366 or civil(day)[0] != year:
        raise _out_of_range(text)
    return day_in_range(day, text)


def _iso_date(fields: dict[str, int], text: str) -> int:
    """Returns a date by its ISO 8601 year, week and day."""
    if fields.keys() & {"YYYY", "MM", "DD", "DDD", "WW", "W", "CC"}:
        raise InvalidDatetimeFormat(
            "invalid combination of date conventions",
            hint="Do not mix Gregorian and ISO week date conventions in a formatting template.",
        )
    year = fields.get("IYYY", 0) * (-1 if fields.get("era") else 1)
    year += year < 0
    fourth = days(year, 1, 4)  # always in the first week
    first = fourth - weekday(fourth)
    day_of_week = fields.get("ID") or ((fields["D"] - 2) % 7 + 1 if "D" in fields else 1)
    if "IDDD" in fields:
        return day_in_range(first + fields["IDDD"] - 1, text)
    week = fields.get("IW")
    if week is None:
        return day_in_range(days(year, 1, 1), text)
    if not 1 <= week <= 53:
        raise _out_of_range(text)
    return day_in_range(first + (week - 1) * 7 + day_of_week - 1, text)


def _completed_year(year: int) -> int:
    """Completes a year of fewer than four digits to the year nearest to 2020."""
    if year < 70:
        return year + 2000
    if year < 100:
        return year + 1900
    if year < 520:
        return year + 2000
    return year + 1000 if year < 1000 else year


# --- fields --------------------------------------------------------------------------------------


class _Reader:
    """Reads the fields of a text by a pattern.

    Besides the pattern's names, fields are: hour; hour12 (the hour is of the 12-hour clock); half
    (1 for pm); era (1 for BC); micros; FF (digits of a second);
    year_digits; offset_sign.
    """

    def __init__(self, text: str, pattern: str) -> None:
        self.text, self.parts, self.at = text, parse(pattern), 0
        self.exact = pattern.upper().startswith("FX")
        self.fields: dict[str, int] = {}

    def read(self) -> dict[str, int]:
        extra_blanks = 0
        for i, part in enumerate(self.parts):
            if self.at >= len(self.text):
                break
            if not self.exact and (part.kind == Kind.FIELD or i == 0):
                extra_blanks += self._skip_blanks()
            match part.kind:
                case Kind.SPACE | Kind.SEPARATOR:
                    if self.exact or self._peek_is_separator():
                        self.at += 1
                    else:
                        extra_blanks -= 1
                case Kind.TEXT:
                    if not self.exact and extra_blanks > 0:
                        extra_blanks -= 1
                    else:
                        self.at += 1
                case Kind.FIELD:
                    self._read_field(i, part, extra_blanks)
                    if not self.exact:
                        extra_blanks = self._skip_blanks()
        return self.fields

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _peek_is_separator(self) -> bool:
        char = self._peek()
        return char != "" and (char.isspace() or char in SEPARATORS)

    def _skip_blanks(self) -> int:
        start = self.at
        while self._peek().isspace():
            self.at += 1
        return self.at - start

    def _put(self, field: str, value: int) -> None:
        if self.fields.setdefault(field, value) != value:
            raise InvalidDatetimeFormat(f'conflicting values for "{field}" field in formatting string')

    def _read_field(self, i: int, p: Part, extra_blanks: int) -> None:
        """Reads a field. `extra_blanks`: how many more blanks and separators precede it than in the pattern."""
        match p.field:
            case "FX":
                pass
            case "AM" | "PM":
                self._put("half", self._read_name(p, ("am", "pm")))
            case "A.M." | "P.M.":
                self._put("half", self._read_name(p, ("a.m.", "p.m.")))
            case "AD" | "BC":
                self._put("era", self._read_name(p, ("ad", "bc")))
            case "A.D." | "B.C.":
                self._put("era", self._read_name(p, ("a.d.", "b.c.")))
            case "MONTH":
                self._put("MM", self._read_name(p, MONTHS) + 1)
            case "MON":
                self._put("MM", self._read_name(p, [m[:3] for m in MONTHS]) + 1)
            case "DAY":
                self._put("D", self._read_name(p, DAYS) + 1)
            case "DY":
                self._put("D", self._read_name(p, [d[:3] for d in DAYS]) + 1)
            case "RM":
                self._put("MM", self._read_name(p, ROMAN_MONTHS) + 1)
            case "TZ" | "OF":
                raise FeatureNotSupported(f'formatting field "{p.field}" is only supported in to_char')
            case "TZH":
                sign = self._peek()
                if sign in ("+", "-", " "):
                    self.at += 1
                elif extra_blanks > 0:
                    sign = self.text[self.at - 1]  # which was read as a separator
                self.fields["offset_sign"] = -1 if sign == "-" else 1
                self._read_numeric_field(i, p)
            case "Y,YYY":
                thousands = self._read_number(i, p, 99)
                if self._peek() != ",":
                    raise InvalidDatetimeFormat('invalid input string for "Y,YYY"')
                self.at += 1
                self._put("YYYY", thousands * 1000 + self._read_number(i, p, 3))
            case _:
                self._read_numeric_field(i, p)

    def _read_name(self, p: Part, names: Sequence[str]) -> int:
        """Reads the longest name that matches, in any case, and returns its index."""
        rest = self.text[self.at :].lower()
        matching = [i for i, name in enumerate(names) if rest.startswith(name.lower())]
        if not matching:
            words = rest.split()
            word = self.text[self.at :].split()[0] if words else ""
            raise InvalidDatetimeFormat(
                f'invalid value "{word}" for "{p.spelling}"',
                detail="The given value did not match any of the allowed values for this field.",
            )
        longest = max(matching, key=lambda i: len(names[i]))
        self.at += len(names[longest])
        return longest

    def _read_numeric_field(self, i: int, p: Part) -> None:
        start = self.at
        value = self._read_number(i, p, WIDTHS[p.field])
        length = self.at - start
        match p.field:
            case "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6":
                self._put("micros", _micros(p.field, value, len(self.text[start : self.at].strip())))
                if p.field.startswith("FF"):
                    self.fields["FF"] = int(p.field[2])
            case "HH12" | "HH":
                self._put("hour", value)
                self.fields["hour12"] = 1
            case "YYY" | "YY" | "Y" | "IYY" | "IY" | "I":
                self._put("IYYY" if p.field[0] == "I" else "YYYY", _completed_year(value) if length < 4 else value)
                self.fields["year_digits"] = len(p.field)
            case _:
                self._put({"HH24": "hour", "SSSSS": "SSSS"}.get(p.field, p.field), value)
        if p.suffix:
            self.at += 2

    def _read_number(self, i: int, p: Part, width: int) -> int:
        self._skip_blanks()
        start = self.at
        any_length = p.fill_mode or self._non_digit_follows(i, p)
        limit = len(self.text) if any_length else start + width
        if limit > len(self.text):
            raise InvalidDatetimeFormat(
                f'source string too short for "{p.spelling}" formatting field',
                detail=f"Field requires {width} characters, but only {len(self.text) - start} remain.",
                hint='If your source string is not fixed-width, try using the "FM" modifier.',
            )
        end = start + (self._peek() in ("+", "-"))
        while end < limit and self.text[end].isascii() and self.text[end].isdigit():
            end += 1
        digits = self.text[start:end]
        if not digits.lstrip("+-"):
            value = self.text[start : start + width]
            raise InvalidDatetimeFormat(f'invalid value "{value}" for "{p.spelling}"', detail="Value must be an integer.")
        if not any_length and end < limit:
            raise InvalidDatetimeFormat(
                f'invalid value "{self.text[start:limit]}" for "{p.spelling}"',
                detail=f"Field requires {width} characters, but only {end - start} could be parsed.",
            )
        self.at = end
        number = int(digits[:64])
        if not -(2**31) <= number < 2**31:
            raise DatetimeFieldOverflow(f'value for "{p.spelling}" in source string is out of range')
        return number

    def _non_digit_follows(self, i: int, p: Part) -> bool:
        """Returns whether no digit can follow, so that the number may have any length."""
        if p.suffix or i + 1 == len(self.parts):
            return True
        following = self.parts[i + 1]
        return not following.is_numeric if following.kind == Kind.FIELD else not following.spelling.isdigit()


def _micros(field: str, value: int, digits: int) -> int:
    """Returns a fraction of a second in microseconds, from its digits."""
    width = 3 if field == "MS" else 6
    scale: int = 10 ** (width - min(digits, 6 if field.startswith("FF") else WIDTHS[field]))
    return value * scale * (1000 if field == "MS" else 1)
