"""to_timestamp and to_date: text read by a pattern.

Source: PostgreSQL 15, src/backend/utils/adt/formatting.c, DCH_from_char(), do_to_timestamp().
"""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

from lake.errors import DatetimeFieldOverflow, FeatureNotSupported, TailgateError, of
from sql.compute.formats import DAYS, MONTHS, ROMANS, SEPARATORS, YEAR_MAX, Piece, parsed
from sql.compute.registry import own

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
