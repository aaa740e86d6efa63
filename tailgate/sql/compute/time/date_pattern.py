"""Parsed patterns of to_char(), to_date() and to_timestamp(), such as YYYY-MM-DD.

Source: PostgreSQL 15, src/backend/utils/adt/formatting.c, parse_format().
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tailgate.values.caching import cached

CACHE_MAX = 256  # patterns
MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split()
NUMERIC_FIELDS = """
    CC DDD DD D FF1 FF2 FF3 FF4 FF5 FF6 HH24 HH12 HH IDDD ID IW IYYY IYY IY I J MI MM MS Q
    SSSSS SSSS SS TZM US WW W Y,YYY YYYY YYY YY Y
""".split()
OTHER_FIELDS = "A.D. A.M. AD AM B.C. BC DAY DY FX MONTH MON OF P.M. PM RM TZH TZ".split()
MIXED_CASE_FIELDS = ("Day", "Dy", "Month", "Mon")
FIELDS = [*NUMERIC_FIELDS, *OTHER_FIELDS]
SPELLINGS = sorted([*FIELDS, *(f.lower() for f in FIELDS), *MIXED_CASE_FIELDS], key=lambda s: (-len(s), s))  # longest first
SEPARATORS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


class Kind(Enum):
    FIELD = "field"
    TEXT = "text"
    SPACE = "space"
    SEPARATOR = "separator"


@dataclass(frozen=True, slots=True)
class Part:
    """A field or one character of text.

    `spelling` is the field as in the pattern, or the character; `field` is the field in upper case,
    empty for a character; `fill_mode` tells whether FM precedes it; `suffix` is TH, th, or empty.
    """

    kind: Kind
    spelling: str
    field: str = ""
    fill_mode: bool = False
    suffix: str = ""

    @property
    def is_numeric(self) -> bool:
        return self.field in NUMERIC_FIELDS


@cached(CACHE_MAX)
def parse(text: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    at = 0
    while at < len(text):
        if text[at] == '"':
            at += 1
            while at < len(text) and text[at] != '"':
                at += text[at] == "\\" and at + 1 < len(text)
                parts.append(Part(Kind.TEXT, text[at]))
                at += 1
            at += 1
            continue
        fill_mode = False
        while text[at : at + 2] in ("FM", "fm", "TM", "tm"):
            fill_mode = fill_mode or text[at : at + 2] in ("FM", "fm")
            at += 2
        spelling = next((s for s in SPELLINGS if text.startswith(s, at)), None)
        if spelling is not None:
            at += len(spelling)
            suffix = text[at : at + 2] if text[at : at + 2] in ("TH", "th", "SP", "sp") else ""
            at += len(suffix)
            ending = "" if suffix in ("SP", "sp") else suffix
            parts.append(Part(Kind.FIELD, spelling, spelling.upper(), fill_mode, ending))
            continue
        if at >= len(text):
            break
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
            parts.append(Part(Kind.TEXT, text[at]))
        else:
            parts.append(Part(_kind(text[at]), text[at]))
        at += 1
    return tuple(parts)


def _kind(char: str) -> Kind:
    return Kind.SPACE if char.isspace() else Kind.SEPARATOR if char in SEPARATORS else Kind.TEXT
