"""Compiled regular expressions: options, translation, and the choice of an engine.

Source: PostgreSQL 15, section "POSIX Regular Expressions"; src/backend/utils/adt/regexp.c.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, ProgramLimitExceeded
from tailgate.sql.compute.regexp.ambiguity import analyze
from tailgate.sql.compute.regexp.likes import EMPTY_GROUP
from tailgate.sql.compute.regexp.search import Pattern
from tailgate.sql.compute.regexp.translator import invalid, translate

OPTIONS = "bceimnpqstwxg"
UNSUPPORTED_OPTIONS = "be"
PATTERN_MAX = 10_000  # characters; Python compiles 100,000 in one second
CACHE_MAX = 256  # patterns: at most 100 MB
END_OF_TEXT = r"(?!.|\n)"  # in Python $ also matches before a last line feed


def options(flags: str, *, global_allowed: bool = False) -> tuple[str, bool]:
    """Returns flags without g, and whether g was among them. Raises 22023 or 0A000."""
    for flag in flags:
        if flag not in OPTIONS:
            raise InvalidParameterValue(f'invalid regular expression option: "{flag}"')
        if flag in UNSUPPORTED_OPTIONS:
            raise FeatureNotSupported(f'the regular expression option "{flag}" is not supported')
    if "g" in flags and not global_allowed:
        raise InvalidParameterValue("global option is not allowed here")
    return flags.replace("g", ""), "g" in flags


@lru_cache(maxsize=CACHE_MAX)
def translated(pattern: str, flags: str) -> str:
    """Returns a pattern in the syntax of Python and Java, after its flags. Raises 2201B or 54000."""
    if len(pattern) > PATTERN_MAX:
        raise ProgramLimitExceeded(f"a regular expression may have at most {PATTERN_MAX} characters")
    if pattern.startswith("***="):
        pattern, flags = pattern[4:], flags + "q"
    elif pattern.startswith("***:"):
        pattern = pattern[4:]
    elif pattern.startswith("***"):
        raise invalid("invalid regular expression")
    if match := re.match(r"\(\?([bceimnpqstwx]+)\)", pattern):
        flags, pattern = flags + match[1], pattern[match.end() :]
        options(match[1])
    ignore_case = "i" if _last_of(flags, "ic") == "i" else ""
    newlines = _last_of(flags, "nmspw")  # n: lines count for . and [^…], and for ^ and $; p: for the former; w: for the latter
    body = re.escape(pattern) if "q" in flags else translate(pattern, flags, within_lines=newlines in ("n", "m", "p"))
    if newlines in ("n", "m"):
        return f"(?{ignore_case}m){body}"
    if newlines == "p" and "q" not in flags:
        body = _replaced(body, {".": "[^\\n]"})
    return f"(?{ignore_case}ms){body}" if newlines == "w" else f"(?{ignore_case}s){_replaced(body, {'$': END_OF_TEXT})}"


def _last_of(flags: str, group: str) -> str:
    """Returns the last flag of a group, which overrides the others."""
    return next((f for f in reversed(flags) if f in group), "")


def _replaced(body: str, replacements: Mapping[str, str]) -> str:
    """Replaces characters outside of brackets, such as $."""
    parts, at, inside_brackets = [], 0, False
    while at < len(body):
        char = body[at]
        if char == "\\":
            parts.append(body[at : at + 2])
            at += 2
            continue
        if char == "[" and not inside_brackets:
            inside_brackets = True
        elif char == "]" and inside_brackets:
            inside_brackets = False
        parts.append(char if inside_brackets else replacements.get(char, char))
        at += 1
    return "".join(parts)


def for_java(pattern: str, flags: str, searching: bool) -> str:
    """Returns a pattern for Java. Without regard to case it compares letters of all languages. Only a line feed ends lines."""
    compiled(pattern, flags, searching)
    text = re.sub(r"^\(\?i", "(?iu", translated(pattern, flags))
    return re.sub(r"^\(\?(u?i?u?)m", r"(?d\1m", text)


def for_duckdb(pattern: str, flags: str) -> str | None:
    """Returns a pattern for DuckDB, which uses RE2, or None if RE2 does not support it."""
    re2 = compiled(pattern, flags, False).re2
    return None if re2 is None else re2 + EMPTY_GROUP


def for_re2(text: str) -> str | None:
    """Returns a translated pattern for RE2, or None if it needs look-around or back references."""
    re2 = text.replace(END_OF_TEXT, r"\z")
    return None if re.search(r"\(\?<?[=!]|\(\?:\\[1-9]\)", re2) else re2


@lru_cache(maxsize=CACHE_MAX)
def compiled(pattern: str, flags: str, searching: bool = True) -> Pattern:
    """Returns a pattern that can be searched for.

    `searching` tells whether the position of a match matters, not only its existence. Raises 0A000
    if the position may differ from PostgreSQL's.
    """
    text = translated(pattern, flags)
    try:
        python = re.compile(text)
    except re.error as error:
        if "look-behind" in str(error):
            raise FeatureNotSupported("a look-behind of variable length is not supported") from None
        raise invalid(str(error)) from None
    analysis = analyze(text)
    if searching and not analysis.first_is_longest:
        raise FeatureNotSupported(
            "a regular expression whose longest match may not be the first one is not supported",
            hint="PostgreSQL takes the longest match of all. One character must decide between alternatives and between repetitions.",
        )
    return Pattern(python, for_re2(text), analysis.power)
