"""Parsed number patterns of to_char() and to_number(), such as FM999.00.

Source: PostgreSQL 15, src/backend/utils/adt/formatting.c, NUMDesc and NUMDesc_prepare().
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tailgate.lake.errors import SyntaxError_, TailgateError
from tailgate.values.caching import cached

CACHE_MAX = 256  # patterns
SPELLINGS = "EEEE FM MI PL PR RN SG SP TH fm mi pl pr rn sg sp th 0 9 . , B C D G L S V b c d g l s v eeee".split()
KEYWORDS = {s: s if s in ("th", "rn") else s.upper() for s in SPELLINGS}


@dataclass(frozen=True, slots=True)
class Part:
    """A keyword or one character of text.

    `keyword` is in upper case, except th and rn, whose case matters; it is empty for text.
    """

    keyword: str
    text: str


@dataclass
class Pattern:
    """A pattern's parts, and what follows from all of them."""

    parts: list[Part] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)  # FM . S MI PL PR RN V EEEE 0
    integer_digits: int = 0
    fraction_digits: int = 0
    shift_digits: int = 0  # the number of 9s after V
    zero_start: int = -1  # the integer digits before the first 0; -1 without one
    zero_end: int = 0  # the digits up to the last 0
    sign_first: bool = False  # S comes before the number
    digits_before_sign: int = 0


@cached(CACHE_MAX)
def parse(text: str) -> Pattern:
    pattern, at = Pattern(), 0
    while at < len(text):
        if text[at] == '"':
            at += 1
            while at < len(text) and text[at] != '"':
                at += text[at] == "\\" and at + 1 < len(text)
                pattern.parts.append(Part("", text[at]))
                at += 1
            at += 1
            continue
        spelling = next((s for s in SPELLINGS if text.startswith(s, at)), None)
        if spelling is None:
            at += text[at] == "\\" and text[at + 1 : at + 2] == '"'
            pattern.parts.append(Part("", text[at]))
            at += 1
            continue
        _apply(pattern, KEYWORDS[spelling])
        pattern.parts.append(Part(KEYWORDS[spelling], spelling))
        at += len(spelling)
    return pattern


def _error(message: str) -> TailgateError:
    return SyntaxError_(message)


def _apply(p: Pattern, keyword: str) -> None:
    """Adds a keyword to the pattern's flags and counts. Raises 42601 for conflicts."""
    flags = p.flags
    if "EEEE" in flags:
        raise _error('"EEEE" must be the last pattern used')
    match keyword:
        case "9" | "0":
            _add_digit(p, keyword)
        case "." | "D":
            if "." in flags:
                raise _error("multiple decimal points")
            if "V" in flags:
                raise _error('cannot use "V" and decimal point together')
            flags.add(".")
        case "FM" | "RN" | "rn":
            flags.add(keyword.upper())
        case "S":
            if "S" in flags:
                raise _error('cannot use "S" twice')
            if flags & {"PL", "MI", "PR"}:
                raise _error('cannot use "S" and "PL"/"MI"/"SG"/"PR" together')
            flags.add("S")
            p.sign_first = "." not in flags
            p.digits_before_sign = p.integer_digits
        case "MI" | "PL" | "SG":
            if "S" in flags:
                raise _error(f'cannot use "S" and "{keyword}" together')
            flags |= {"MI", "PL"} if keyword == "SG" else {keyword}
        case "PR":
            if flags & {"S", "PL", "MI"}:
                raise _error('cannot use "PR" and "S"/"PL"/"MI"/"SG" together')
            flags.add("PR")
        case "V":
            if "." in flags:
                raise _error('cannot use "V" and decimal point together')
            flags.add("V")
        case "EEEE":
            if flags & {"FM", "S", "PR", "MI", "PL", "RN", "V"}:
                raise _error('"EEEE" is incompatible with other formats')
            flags.add("EEEE")


def _add_digit(p: Pattern, keyword: str) -> None:
    if "PR" in p.flags:
        raise _error(f'"{keyword}" must be ahead of "PR"')
    if keyword == "9" and "V" in p.flags:
        p.shift_digits += 1
        return
    if keyword == "0" and not p.flags & {"0", "."}:
        p.flags.add("0")
        p.zero_start = p.integer_digits
    if "." in p.flags:
        p.fraction_digits += 1
    else:
        p.integer_digits += 1
    if keyword == "0":
        p.zero_end = p.integer_digits + p.fraction_digits
