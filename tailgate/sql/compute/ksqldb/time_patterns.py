"""Patterns of dates and times: those of Java's DateTimeFormatter.

    yyyy-MM-dd'T'HH:mm:ss.SSS[X]  ──► Literal, Field(letter, count), Optional

Source: documentation of java.time.format.DateTimeFormatter, "Patterns for Formatting and Parsing".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tailgate.lake.errors import InvalidParameterValue
from tailgate.values.caching import cached

# letters and how often each may occur in a row
LETTERS = {
    "y": 9,
    "u": 9,
    "G": 4,
    "Y": 9,
    "Q": 4,
    "q": 4,
    "M": 5,
    "L": 5,
    "w": 2,
    "W": 1,
    "d": 2,
    "D": 3,
    "E": 5,
    "a": 1,
    "H": 2,
    "k": 2,
    "K": 2,
    "h": 2,
    "m": 2,
    "s": 2,
    "S": 9,
    "n": 9,
    "A": 9,
    "N": 18,
    "O": 4,
    "X": 5,
    "x": 5,
    "Z": 5,
    "e": 5,
    "c": 5,
    "V": 2,
    "z": 4,
}
INVALID = ("cc", "V")  # counts that Java does not have
FORMATS_ONLY = ("Y", "Q", "q", "w", "W", "O")  # are not parsed, and neither are narrow names and GMT+1
FULL, NARROW = 4, 5  # letters of a full name, and of the first letter alone
OFFSETS = ("X", "x", "Z")
CACHE_MAX = 256  # patterns


@dataclass(frozen=True, slots=True)
class Literal:
    text: str


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a date or time. `count`: how often its letter occurs in a row. `adjacent`: a number follows without a delimiter."""

    letter: str
    count: int
    adjacent: bool = False


@dataclass(frozen=True, slots=True)
class Optional:
    """[…]: may be absent when a text is parsed."""

    parts: tuple[Part, ...]


Part: TypeAlias = Literal | Field | Optional


def check_parses(parts: tuple[Part, ...]) -> None:
    """Raises 22023 for a field that is only written."""
    for part in parts:
        if isinstance(part, Optional):
            check_parses(part.parts)
        elif isinstance(part, Field) and _formats_only(part):
            raise InvalidParameterValue(f'pattern letters "{part.letter * part.count}" are not supported when a text is parsed')


def _formats_only(field: Field) -> bool:
    is_narrow = field.count == NARROW and field.letter in ("M", "L", "E", "e", "c")
    return field.letter in FORMATS_ONLY or is_narrow or (field.letter == "Z" and field.count == FULL)


@cached(CACHE_MAX)
def parts_of(pattern: str) -> tuple[Part, ...]:
    """Returns the parts of a pattern. Raises 22023."""
    parts, end = _parts(pattern, 0)
    if end < len(pattern):
        raise InvalidParameterValue(f'invalid pattern "{pattern}": ] without [')
    return parts


def _parts(pattern: str, at: int) -> tuple[tuple[Part, ...], int]:
    """Returns the parts from an index to the end or the next ], and the index after them."""
    parts: list[Part] = []
    while at < len(pattern) and pattern[at] != "]":
        char = pattern[at]
        if char == "[":
            inner, at = _parts(pattern, at + 1)
            if at == len(pattern):
                raise InvalidParameterValue(f'invalid pattern "{pattern}": [ without ]')
            parts.append(Optional(inner))
            at += 1
        elif char == "'":
            text, at = _quoted(pattern, at)
            parts.append(Literal(text))
        elif char.isascii() and char.isalpha():
            count = len(pattern) - at - len(pattern[at:].lstrip(char))
            if count > LETTERS.get(char, 0) or char * count in INVALID:
                raise InvalidParameterValue(f'pattern letters "{char * count}" are not supported')
            at += count
            parts.append(Field(char, count, at < len(pattern) and pattern[at] in LETTERS))
        elif char in "{}#":
            raise InvalidParameterValue(f'pattern character "{char}" is reserved')
        else:
            parts.append(Literal(char))
            at += 1
    return tuple(parts), at


def _quoted(pattern: str, at: int) -> tuple[str, int]:
    """Returns a text in quotes at an index, in which '' is a quote, and the index after it; '' alone is a quote."""
    if pattern.startswith("''", at):
        return "'", at + 2
    text, at = "", at + 1
    while True:
        end = pattern.find("'", at)
        if end < 0:
            raise InvalidParameterValue(f'invalid pattern "{pattern}": a quote is not closed')
        text += pattern[at:end]
        if not pattern.startswith("''", end):
            return text, end + 1
        text, at = text + "'", end + 2
