"""The tokens of a date, time or interval, and the words that stand for fields of a date.

Source: PostgreSQL 15, src/backend/utils/adt/datetime.c, ParseDateTime, datetktbl.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TOKENS_MAX = 25
LENGTH_MAX = 128  # bytes of the text
WORD_LENGTH = 10  # characters of a word that count

# Kinds of tokens. A date may also be the name of a zone or a run-together time with a zone; a sign
# with digits may be a zone, a number, or years and months.
DATE, TIME, NUMBER, STRING, SIGNED, SPECIAL = "date", "time", "number", "string", "signed", "special"


class Token(NamedTuple):
    kind: str
    text: str  # in lower case


class BadFormat(Exception):
    """The text is not a date, time or interval (22007)."""


class FieldOverflow(Exception):
    """A field is out of range (22008; 22015 for intervals)."""


class MonthOverflow(FieldOverflow):
    """A month or day is out of range, perhaps because the order of the fields is wrong (22008)."""


class ZoneOverflow(Exception):
    """The offset of a zone is out of range (22009)."""


_TOKEN = re.compile(
    r"[ \t\n\r\f\v]*(?:"
    r"(?P<time>\d+:[\d:.]*)"
    r"|(?P<numeric>\d+(?P<delimiter>[-/.])\d+)(?P<third>(?P=delimiter)(?:\d|(?P=delimiter))*)?"
    r"|(?P<mixed>\d+(?P<between>[-/.])(?:[A-Za-z0-9]|(?P=between))*)"
    r"|(?P<number>\d+|\.\d*)"
    r"|(?P<word>[A-Za-z]+)"
    r"|(?P<sign>[-+])[ \t\n\r\f\v]*(?:(?P<signed>\d[\d:.-]*)|(?P<special>[A-Za-z]+))"
    r"|(?P<ignored>[!-*,/:-@\[-`{-~])"
    r")"
    r"|[ \t\n\r\f\v]+$",
    re.ASCII,
)
_AFTER_WORD = re.compile(r"[-+/_.:A-Za-z0-9]*", re.ASCII)


def tokens(text: str) -> list[Token]:
    """Splits a text into tokens. Raises `BadFormat`."""
    result: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or len(result) > TOKENS_MAX:
            raise BadFormat
        at = match.end()
        group = match.lastgroup
        if group == "ignored" or group is None:
            continue
        if match["word"] is not None:
            token, at = _word(text, match["word"].lower(), at)
        elif match["numeric"] is not None:
            kind = DATE if match["third"] is not None or match["delimiter"] != "." else NUMBER
            token = Token(kind, match["numeric"] + (match["third"] or ""))
        elif match["mixed"] is not None:
            token = Token(DATE, match["mixed"].lower())
        elif match["signed"] is not None:
            token = Token(SIGNED, match["sign"] + match["signed"])
        elif match["special"] is not None:
            token = Token(SPECIAL, match["sign"] + match["special"].lower())
        else:
            token = Token(TIME, match["time"]) if match["time"] is not None else Token(NUMBER, match["number"])
        result.append(token)
    if len(result) > TOKENS_MAX or sum(len(token.text) + 1 for token in result) > LENGTH_MAX + TOKENS_MAX:
        raise BadFormat
    return result


def _word(text: str, word: str, at: int) -> tuple[Token, int]:
    """Returns the token that begins with a word, and its end. Punctuation inside makes it a date or the name of a zone."""
    following = text[at : at + 1]
    if following and (following in "-/." or ((following == "+" or following in "0123456789") and word[:WORD_LENGTH] not in WORDS)):
        rest = _AFTER_WORD.match(text, at)
        assert rest is not None
        return Token(DATE, word + rest[0].lower()), rest.end()
    return Token(STRING, word), at


def integer(text: str) -> tuple[int, str]:
    """Returns the number at the beginning of a text, 0 if there is none, and the rest. Raises `FieldOverflow` beyond 32 bits."""
    value, rest = long_integer(text)
    if not -(2**31) <= value < 2**31:
        raise FieldOverflow
    return value, rest


def long_integer(text: str) -> tuple[int, str]:
    """Does the same for 64 bits."""
    match = _INTEGER.match(text)
    if match is None:
        return 0, text
    if match.end() > 30 and len(match[0].lstrip("+-0")) > 20:
        raise FieldOverflow
    value = int(match[0])
    if not -(2**63) <= value < 2**63:
        raise FieldOverflow
    return value, text[match.end() :]


def wrapped_integer(digits: str) -> int:
    """Returns the 32 bits that C's atoi makes of digits: 64 bits at most, of which the upper half is lost."""
    return (min(int(digits[:64]), 2**63 - 1) + 2**31) % 2**32 - 2**31


_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_FRACTION = re.compile(r"\.\d*", re.ASCII)


def fraction(text: str) -> float:
    """Returns the value of a text such as `.25`. Raises `BadFormat`."""
    if not _FRACTION.fullmatch(text):
        raise BadFormat
    return float(text) if len(text) > 1 else 0.0


# --- words ---------------------------------------------------------------------------------------

# Kinds of words.
MONTH, WEEKDAY, HALF, ERA, UNIT, RESERVED, IGNORED, SUMMER_TIME, ISO_TIME = (
    "month", "weekday", "half", "era", "unit", "reserved", "ignored", "summer time", "ISO time"
)  # fmt: skip
MONTHS = "january february march april may june july august september october november december".split()
WEEKDAYS = "sunday monday tuesday wednesday thursday friday saturday".split()

WORDS: dict[str, tuple[str, str | int]] = {
    **{spelling: (MONTH, number) for number, name in enumerate(MONTHS, 1) for spelling in (name, name[:3])},
    "sept": (MONTH, 9),
    **{spelling: (WEEKDAY, number) for number, name in enumerate(WEEKDAYS) for spelling in (name, name[:3])},
    **dict.fromkeys(("tues",), (WEEKDAY, 2)),
    **dict.fromkeys(("weds",), (WEEKDAY, 3)),
    **dict.fromkeys(("thur", "thurs"), (WEEKDAY, 4)),
    "am": (HALF, "am"),
    "pm": (HALF, "pm"),
    "ad": (ERA, "ad"),
    "bc": (ERA, "bc"),
    **dict.fromkeys(("j", "jd", "julian"), (UNIT, "julian")),
    "y": (UNIT, "year"),
    "m": (UNIT, "month"),
    "d": (UNIT, "day"),
    "h": (UNIT, "hour"),
    "mm": (UNIT, "minute"),
    "s": (UNIT, "second"),
    **{name: (UNIT, name) for name in ("dow", "doy", "isodow", "isoyear")},
    "t": (ISO_TIME, "time"),
    **{name: (RESERVED, name) for name in ("epoch", "now", "today", "tomorrow", "yesterday", "allballs", "infinity", "-infinity")},
    "+infinity": (RESERVED, "infinity"),
    **dict.fromkeys(("at", "on"), (IGNORED, 0)),
    "dst": (SUMMER_TIME, 3600),
}
