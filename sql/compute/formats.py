"""to_char: dates and times by a pattern, in English.

Source: PostgreSQL 15, src/backend/utils/adt/formatting.c, DCH_to_char().
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timezone
from functools import lru_cache

from lake.errors import of
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
    signed = value < 0 and p.name not in ("DD", "DDD", "WW")  # in these a minus takes a digit's place
    text = str(value) if p.fill else f"{value:0{width + signed}d}"
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
            return _number(p, truncated(f.month - 1, 3) + 1, 1) if f.month else ""
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
            thousands = truncated(f.year, 1000)
            return _number_text(p, f"{thousands},{f.year - 1000 * thousands:03d}")
        case "YYYY":
            return _number(p, f.year, 4)
        case "YYY" | "YY" | "Y":
            size = 10 ** len(p.name)
            return _number(p, f.year - size * truncated(f.year, size), len(p.name))
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
