"""to_char, to_timestamp and to_date: dates and times by a pattern, in English.

Source: PostgreSQL 15, src/backend/utils/adt/formatting.c, DCH_to_char(), DCH_from_char(), do_to_timestamp().
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from functools import lru_cache

from lake.errors import DatetimeFieldOverflow, FeatureNotSupported, TailgateError, of
from sql.compute.numberformats import ordinal, roman
from sql.compute.registry import own
from sql.compute.times import Interval, truncated

MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split()
ROMANS = [roman(n) for n in range(1, 13)]
DIGITS = """
    CC DDD DD D FF1 FF2 FF3 FF4 FF5 FF6 HH24 HH12 HH IDDD ID IW IYYY IYY IY I J MI MM MS Q SSSSS SSSS SS US WW W Y,YYY YYYY YYY YY Y
""".split()
LETTERS = "A.D. A.M. AD AM B.C. BC DAY DY FX MONTH MON OF P.M. PM RM TZH TZM TZ".split()
MIXED = ("Day", "Dy", "Month", "Mon")
WORDS = sorted([*DIGITS, *LETTERS, *(w.lower() for w in DIGITS + LETTERS), *MIXED], key=lambda w: (-len(w), w))
YEAR_MAX = 5_874_897  # of PostgreSQL's dates
SEPARATORS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


@dataclass(frozen=True)
class Piece:
    """A field (`word` as in the pattern, `name` in upper case), or a text."""

    word: str
    name: str
    fill: bool = False
    suffix: str = ""
    kind: str = "field"  # or text, space, separator

    @property
    def digits(self) -> bool:
        return self.kind == "field" and self.name in DIGITS


@lru_cache(maxsize=256)
def parsed(text: str) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    at = 0
    while at < len(text):
        if text[at] == '"':
            at += 1
            while at < len(text) and text[at] != '"':
                at += text[at] == "\\" and at + 1 < len(text)
                pieces.append(Piece(text[at], "", kind="text"))
                at += 1
            at += 1
            continue
        start, fill = at, False
        while text[at : at + 2] in ("FM", "fm", "TM", "tm"):
            fill = fill or text[at : at + 2] in ("FM", "fm")
            at += 2
        word = next((w for w in WORDS if text.startswith(w, at)), None)
        if word is not None:
            at += len(word)
            suffix = text[at : at + 2] if text[at : at + 2] in ("TH", "th", "SP", "sp") else ""
            at += len(suffix)
            pieces.append(Piece(word, word.upper(), fill, "" if suffix in ("SP", "sp") else suffix))
            continue
        at = start if at == start else at  # a prefix with nothing behind it is nothing
        if at >= len(text):
            break
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
            pieces.append(Piece(text[at], "", kind="text"))
        else:
            kind = "space" if text[at].isspace() else "separator" if text[at] in SEPARATORS else "text"
            pieces.append(Piece(text[at], "", kind=kind))
        at += 1
    return tuple(pieces)


# --- to text ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fields:
    """What a pattern may name; `day` is None for an interval."""

    year: int
    month: int
    mday: int
    micros: int
    day: date | None
    zone: str


@own("timestamp", "text", to="text", name="to_char_timestamp")
def of_timestamp(value: datetime, pattern: str) -> str | None:
    return _shown(value, pattern, "")


@own("timestamptz", "text", to="text", name="to_char_timestamptz")
def of_timestamptz(value: datetime, pattern: str) -> str | None:
    return _shown(value.astimezone(timezone.utc), pattern, "UTC")


def _shown(value: datetime, pattern: str, zone: str) -> str | None:
    micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    return _written(_Fields(value.year, value.month, value.day, micros, value.date(), zone), pattern)


@own("interval", "text", to="text", name="to_char_interval")
def of_interval(value: Interval, pattern: str) -> str | None:
    months, days, micros = value
    years = truncated(months, 12)
    return _written(_Fields(years, months - 12 * years, days, micros, None, ""), pattern)


def _written(fields: _Fields, pattern: str) -> str | None:
    if not pattern:
        return None
    return "".join(p.word if p.kind != "field" else _field(fields, p) for p in parsed(pattern))


def _number(p: Piece, value: int, width: int) -> str:
    text = str(value) if p.fill else f"{value:0{width + (value < 0)}d}"
    if p.suffix:
        ending = ordinal(text)
        text += ending.upper() if p.suffix == "TH" else ending
    return text


def _case(p: Piece, text: str) -> str:
    return text.upper() if p.word.isupper() else text.lower() if p.word.islower() else text


def _field(f: _Fields, p: Piece) -> str:
    hours = truncated(f.micros, 3_600_000_000)
    rest = f.micros - hours * 3_600_000_000
    minutes = truncated(rest, 60_000_000)
    rest -= minutes * 60_000_000
    seconds = truncated(rest, 1_000_000)
    part = rest - seconds * 1_000_000
    day = f.day
    match p.name:
        case "HH24":
            return _number(p, hours, 2)
        case "HH" | "HH12":
            half = hours - 12 * truncated(hours, 12)
            return _number(p, half or 12, 2)
        case "MI":
            return _number(p, minutes, 2)
        case "SS":
            return _number(p, seconds, 2)
        case "MS" | "FF3":
            return _part(p, truncated(part, 1000), 3)
        case "US" | "FF6":
            return _part(p, part, 6)
        case "FF1" | "FF2" | "FF4" | "FF5":
            digits = int(p.name[2])
            return _part(p, truncated(part, 10 ** (6 - digits)), digits)
        case "SSSS" | "SSSSS":
            return _number(p, hours * 3600 + minutes * 60 + seconds, 0)
        case "AM" | "PM" | "A.M." | "P.M.":
            words = "pm" if hours % 24 >= 12 else "am"
            return _case(p, ".".join(words) + "." if "." in p.name else words)
        case "TZ":
            return _case(p, f.zone) if day else _invalid()
        case "TZH":
            return "+00" if day else _invalid()
        case "TZM":
            return "00" if day else _invalid()
        case "OF":
            return "+00" if day else _invalid()
        case "Q":
            return _number(p, (f.month - 1) // 3 + 1, 1) if f.month else ""
        case "MM":
            return _number(p, f.month, 2)
        case "DD":
            return _number(p, f.mday, 2)
        case "DDD":
            return _number(p, day.timetuple().tm_yday if day else (f.year * 12 + f.month) * 30 + f.mday, 3)
        case "RM":
            if not f.month:
                return ""
            text = _case(p, ROMANS[f.month - 1])
            return text if p.fill else text.ljust(4)
        case "CC":
            century = truncated(f.year, 100) if day is None else (f.year - 1) // 100 + 1
            return _number(p, century, 2 if abs(century) < 100 else 0)
        case "Y,YYY":
            return _number_text(p, f"{truncated(f.year, 1000)},{abs(f.year) % 1000:03d}")
        case "YYYY":
            return _number(p, f.year, 4)
        case "YYY":
            return _number(p, f.year % 1000, 3)
        case "YY":
            return _number(p, f.year % 100, 2)
        case "Y":
            return _number(p, f.year % 10, 1)
    if day is None:
        days = (f.year * 12 + f.month) * 30 + f.mday
        if p.name in ("WW", "W"):
            return _number(p, truncated((days if p.name == "WW" else f.mday) - 1, 7) + 1, 2 if p.name == "WW" else 1)
        return _number(p, julian(f.year, f.month, f.mday), 0) if p.name == "J" else _invalid()
    iso = day.isocalendar()
    match p.name:
        case "AD" | "BC" | "A.D." | "B.C.":
            return _case(p, "A.D." if "." in p.name else "AD")
        case "MONTH" | "DAY":
            text = _case(p, MONTHS[f.month - 1] if p.name == "MONTH" else DAYS[iso.weekday % 7])
            return text if p.fill else text.ljust(9)
        case "MON":
            return _case(p, MONTHS[f.month - 1][:3])
        case "DY":
            return _case(p, DAYS[iso.weekday % 7][:3])
        case "D":
            return _number(p, iso.weekday % 7 + 1, 1)
        case "ID":
            return _number(p, iso.weekday, 1)
        case "IDDD":
            return _number(p, (iso.week - 1) * 7 + iso.weekday, 3)
        case "WW":
            return _number(p, (day.timetuple().tm_yday - 1) // 7 + 1, 2)
        case "W":
            return _number(p, (f.mday - 1) // 7 + 1, 1)
        case "IW":
            return _number(p, iso.week, 2)
        case "IYYY" | "IYY" | "IY" | "I":
            width = len(p.name)
            return _number(p, iso.year % 10**width if width < 4 else iso.year, width)
        case "J":
            return _number(p, day.toordinal() + 1_721_425, 0)
    return ""  # FX


def julian(year: int, month: int, day: int) -> int:
    """date2j()"""
    year, month = (year + 4800, month + 1) if month > 2 else (year + 4799, month + 13)
    century = truncated(year, 100)
    return year * 365 - 32167 + truncated(year, 4) - century + truncated(century, 4) + truncated(7834 * month, 256) + day


def _number_text(p: Piece, text: str) -> str:
    ending = ordinal(text) if p.suffix else ""
    return text + (ending.upper() if p.suffix == "TH" else ending)


def _part(p: Piece, value: int, width: int) -> str:
    return _number_text(p, f"{value:0{width}d}")


def _invalid() -> str:
    raise of("22007", "invalid format specification for an interval value", hint="Intervals are not tied to specific calendar dates.")


# --- from text -------------------------------------------------------------------------------------------------------------------

LENGTHS = {
    "HH24": 2, "HH12": 2, "HH": 2, "MI": 2, "SS": 2, "SSSS": 5, "SSSSS": 5, "TZH": 2, "TZM": 2, "Q": 1, "CC": 2, "MM": 2, "DDD": 3,
    "IDDD": 3,
    "DD": 2, "D": 1, "ID": 1, "WW": 2, "IW": 2, "W": 1, "J": 7, "YYYY": 4, "IYYY": 4, "YYY": 3, "IYY": 3, "YY": 2, "IY": 2, "Y": 1, "I": 1,
    "MS": 3, "US": 6, "FF1": 1, "FF2": 2, "FF3": 3, "FF4": 4, "FF5": 5, "FF6": 6,
}  # fmt: skip


class _Reader:
    """DCH_from_char: `at` is the place in the text, `found` the fields by name."""

    def __init__(self, text: str, pattern: str) -> None:
        self.text, self.pieces, self.at = text, parsed(pattern), 0
        self.exact = pattern.upper().startswith("FX")
        self.found: dict[str, int] = {}

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def spaces(self) -> int:
        start = self.at
        while self.peek().isspace():
            self.at += 1
        return self.at - start

    def read(self) -> dict[str, int]:
        extra = 0
        for i, piece in enumerate(self.pieces):
            if self.at >= len(self.text):
                break
            if not self.exact and (piece.kind == "field" or i == 0):
                extra += self.spaces()
            if piece.kind in ("space", "separator"):
                if self.exact:
                    self.at += 1
                    continue
                extra -= 1
                if self.peek() and (self.peek().isspace() or self.peek() in SEPARATORS):
                    self.at += 1
                    extra += 1
                continue
            if piece.kind == "text":
                if not self.exact and extra > 0:
                    extra -= 1
                else:
                    self.at += 1
                continue
            self.field(i, piece)
            if not self.exact:
                extra = self.spaces()
        return self.found

    def put(self, name: str, value: int) -> None:
        if self.found.setdefault(name, value) != value:
            raise of("22007", f'conflicting values for "{name}" field in formatting string')

    def field(self, i: int, p: Piece) -> None:
        match p.name:
            case "FX":
                return
            case "AM" | "PM" | "A.M." | "P.M." | "AD" | "BC" | "A.D." | "B.C.":
                words = ("am", "pm") if "M" in p.name else ("ad", "bc")
                texts = [".".join(w) + "." for w in words] if "." in p.name else words
                self.put("half" if "M" in p.name else "era", self.word(p, texts))
                return
            case "MONTH" | "MON":
                names = MONTHS if p.name == "MONTH" else [m[:3] for m in MONTHS]
                self.put("MM", self.word(p, names) + 1)
                return
            case "DAY" | "DY":
                self.put("D", self.word(p, DAYS if p.name == "DAY" else [d[:3] for d in DAYS]) + 1)
                return
            case "RM":
                self.put("MM", self.word(p, sorted(ROMANS, key=lambda r: -len(r)), ROMANS) + 1)
                return
            case "TZ" | "OF":
                raise of("0A000", f'formatting field "{p.name}" is only supported in to_char')
            case "TZH":
                sign = self.peek()
                if sign in ("+", "-", " "):
                    self.found["zone_sign"] = -1 if sign == "-" else 1
                    self.at += 1
            case "Y,YYY":
                thousands = self.number(i, p, 99)
                if self.peek() != ",":
                    raise of("22007", 'invalid input string for "Y,YYY"')
                self.at += 1
                self.put("YYYY", thousands * 1000 + self.number(i, p, 3))
                return
        start = self.at
        value = self.number(i, p, LENGTHS[p.name])
        length = self.at - start
        name = p.name
        if name in ("MS", "US") or name.startswith("FF"):
            width = LENGTHS[name]
            digits = len(self.text[start : self.at].strip())
            scale = 10 ** ((3 if name == "MS" else 6) - min(digits, width)) if name in ("MS", "US") else 10 ** (6 - min(digits, 6))
            self.put("micros", value * scale * (1000 if name == "MS" else 1))
        elif name in ("HH12", "HH"):
            self.put("hour", value)
            self.found["twelve"] = 1
        elif name in ("YYY", "YY", "Y", "IYY", "IY", "I"):
            self.put("IYYY" if name[0] == "I" else "YYYY", _century(value) if length < 4 else value)
            self.found["short"] = len(name)
        elif name in ("YYYY", "IYYY"):
            self.put(name, value)
        else:
            self.put({"HH24": "hour", "SSSSS": "SSSS"}.get(name, name), value)
        if p.suffix:
            self.at += 2

    def word(self, p: Piece, names: list[str] | tuple[str, ...], order: list[str] | None = None) -> int:
        rest = self.text[self.at :].lower()
        for name in names:
            if rest.startswith(name.lower()):
                self.at += len(name)
                return list(order or names).index(name)
        shown = self.text[self.at :].split()[0] if self.text[self.at :].split() else ""
        detail = "The given value did not match any of the allowed values for this field."
        raise of("22007", f'invalid value "{shown}" for "{p.word}"', detail=detail)

    def number(self, i: int, p: Piece, length: int) -> int:
        self.spaces()
        start = self.at
        open_ended = p.fill or self.separated(i, p)
        limit = len(self.text) if open_ended else self.at + length
        if not open_ended and limit > len(self.text):
            raise of(
                "22007",
                f'source string too short for "{p.word}" formatting field',
                detail=f"Field requires {length} characters, but only {len(self.text) - start} remain.",
                hint='If your source string is not fixed-width, try using the "FM" modifier.',
            )
        end = self.at + (self.text[self.at : self.at + 1] in ("+", "-") and self.at < len(self.text))
        while end < limit and self.text[end].isascii() and self.text[end].isdigit():
            end += 1
        digits = self.text[self.at : end]
        if not digits.lstrip("+-"):
            shown = self.text[start : start + length]
            raise of("22007", f'invalid value "{shown}" for "{p.word}"', detail="Value must be an integer.")
        if not open_ended and end < limit:
            shown = self.text[start:limit]
            detail = f"Field requires {length} characters, but only {end - start} could be parsed."
            raise of("22007", f'invalid value "{shown}" for "{p.word}"', detail=detail)
        self.at = end
        value = int(digits)
        if not -(2**31) <= value < 2**31:
            raise DatetimeFieldOverflow(f'value for "{p.word}" in source string is out of range')
        return value

    def separated(self, i: int, p: Piece) -> bool:
        """Whether what follows is no digit, so that a number may be as long as it is."""
        if p.suffix:
            return True
        if i + 1 == len(self.pieces):
            return True
        following = self.pieces[i + 1]
        return not following.digits if following.kind == "field" else not following.word.isdigit()


def _century(year: int) -> int:
    """The one nearest to 2020."""
    return year + 2000 if year < 70 else year + 1900 if year < 100 else year + 2000 if year < 520 else year + 1000 if year < 1000 else year


def _out_of_range(text: str) -> TailgateError:
    return DatetimeFieldOverflow(f'date/time field value out of range: "{text}"')


def _day(found: dict[str, int], text: str) -> date:
    if "J" in found:
        try:
            return date.fromordinal(found["J"] - 1_721_425)
        except (ValueError, OverflowError):
            raise FeatureNotSupported("years before 1 and beyond 9999 are not supported") from None
    year = found.get("YYYY", 0)
    if "CC" in found:
        if "YYYY" in found and found.get("short", 4) <= 2:
            short = found["YYYY"] % 100
            year = found["CC"] * 100 if short == 0 else (found["CC"] - 1) * 100 + short
        elif "YYYY" not in found:
            year = (found["CC"] - 1) * 100 + 1
    if found.get("era"):
        raise FeatureNotSupported("years before 1 are not supported")
    try:
        if "IYYY" in found or "IW" in found:
            return _iso(found, text)
        if "DDD" in found and "MM" not in found:
            if not 1 <= found["DDD"] <= 366 or year == 0:
                raise _out_of_range(text)
            made = date(year, 1, 1) + timedelta(days=found["DDD"] - 1)
            if made.year != year:
                raise _out_of_range(text)
            return made
        month, mday = found.get("MM") or 1, found.get("DD") or 1  # what is 0 was not given
        if "WW" in found:
            return date(year, 1, 1) + timedelta(days=(found["WW"] - 1) * 7)
        if "W" in found:
            mday = (found["W"] - 1) * 7 + 1
        if not 1 <= month <= 12 or not 1 <= mday <= 31:
            raise _out_of_range(text)
        if year == 0:
            raise FeatureNotSupported("years before 1 are not supported")
        return date(year, month, mday)
    except (ValueError, OverflowError):
        if 9999 < year <= YEAR_MAX:
            raise FeatureNotSupported("years beyond 9999 are not supported") from None
        raise _out_of_range(text) from None


def _iso(found: dict[str, int], text: str) -> date:
    if found.keys() & {"YYYY", "MM", "DD", "DDD", "WW", "W", "CC"}:
        raise of(
            "22007",
            "invalid combination of date conventions",
            hint="Do not mix Gregorian and ISO week date conventions in a formatting template.",
        )
    year = found.get("IYYY", 0)
    weekday = found.get("ID") or ((found["D"] - 2) % 7 + 1 if "D" in found else 1)
    if "IDDD" in found:
        return date.fromisocalendar(year, 1, 1) + timedelta(days=found["IDDD"] - 1)
    week = found.get("IW")
    if week is None:
        return date(year, 1, 1)
    if not 1 <= week <= 53:
        raise _out_of_range(text)
    return date.fromisocalendar(year, 1, 1) + timedelta(days=(week - 1) * 7 + weekday - 1)


@own("text", "text", to="date")
def to_date(text: str, pattern: str) -> date:
    return _day(_Reader(text, pattern).read(), text)


@own("text", "text", to="timestamptz", name="to_timestamp_text")
def to_timestamp(text: str, pattern: str) -> datetime:
    found = _Reader(text, pattern).read()
    hour, minute, second = found.get("hour", 0), found.get("MI", 0), found.get("SS", 0)
    if "SSSS" in found:
        hour, minute, second = found["SSSS"] // 3600, found["SSSS"] // 60 % 60, found["SSSS"] % 60
    if "twelve" in found or "half" in found:
        if not 1 <= hour <= 12:
            raise of(
                "22007",
                f'hour "{hour}" is invalid for the 12-hour clock',
                hint="Use the 24-hour clock, or give an hour between 1 and 12.",
            )
        hour = hour % 12 + 12 * found.get("half", 0)
    micros = found.get("micros", 0)
    if not 0 <= hour <= 23 or not 0 <= minute <= 59 or not 0 <= second <= 59 or not 0 <= micros < 1_000_000:
        raise _out_of_range(text)
    day = _day(found, text)
    made = datetime(day.year, day.month, day.day, hour, minute, second, micros, timezone.utc)
    if "TZH" in found or "TZM" in found:
        offset = timedelta(hours=found.get("TZH", 0), minutes=found.get("TZM", 0)) * found.get("zone_sign", 1)
        made -= offset
    return made
