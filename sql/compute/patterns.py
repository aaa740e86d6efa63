"""Functions of regular expressions, which regexps translates.

Source: PostgreSQL 15, src/backend/utils/adt/regexp.c.
"""

from __future__ import annotations

import re
from functools import lru_cache

from lake.errors import FeatureNotSupported, InvalidParameterValue, of
from sql.compute.likes import UNCHANGED
from sql.compute.regexpchoices import choices
from sql.compute.regexps import Translator, invalid
from sql.compute.regexpsearch import Match, Searched
from sql.compute.registry import own

FLAGS = "bceimnpqstwxg"
PATTERN_MAX = 10_000  # characters; compiling takes Python a second for 100,000
KEPT = 256  # patterns that are remembered: at most 100 MB


def options(flags: str, *, everywhere: bool = False) -> tuple[str, bool]:
    """Flags without g, and whether g was there. Raises 22023."""
    for flag in flags:
        if flag not in FLAGS:
            raise InvalidParameterValue(f'invalid regular expression option: "{flag}"')
        if flag in "bew" or flag == "p":
            raise FeatureNotSupported(f'the regular expression option "{flag}" is not supported')
    if "g" in flags and not everywhere:
        raise InvalidParameterValue("global option is not allowed here")
    return flags.replace("g", ""), "g" in flags


@lru_cache(maxsize=KEPT)
def translated(pattern: str, flags: str) -> str:
    """The pattern for Python's or Java's engine, with its flags in front. Raises 2201B, 54000."""
    if len(pattern) > PATTERN_MAX:
        raise of("54000", f"a regular expression may have at most {PATTERN_MAX} characters")
    if pattern.startswith("***="):
        pattern, flags = pattern[4:], flags + "q"
    elif pattern.startswith("***:"):
        pattern = pattern[4:]
    elif pattern.startswith("***"):
        raise invalid("invalid regular expression")
    if match := re.match(r"\(\?([bceimnpqstwx]+)\)", pattern):
        flags, pattern = flags + match[1], pattern[match.end() :]
        options(match[1])
    ignoring = _last(flags, "ic") == "i"
    lines = _last(flags, "nms") in ("n", "m")
    body = re.escape(pattern) if "q" in flags else Translator(pattern, flags).text
    if not lines:
        # $ is the very end, where Python's is also before a last line feed
        body = _ends(body)
        return f"(?{'i' if ignoring else ''}s){body}"
    return f"(?{'i' if ignoring else ''}m){body}"


def _ends(body: str) -> str:
    out, at, inside = [], 0, False
    while at < len(body):
        char = body[at]
        if char == "\\":
            out.append(body[at : at + 2])
            at += 2
            continue
        if char == "[" and not inside:
            inside = True
        elif char == "]" and inside:
            inside = False
        out.append(r"(?!.|\n)" if char == "$" and not inside else char)
        at += 1
    return "".join(out)


def _last(flags: str, wanted: str) -> str:
    return next((f for f in reversed(flags) if f in wanted), "")


def for_java(pattern: str, flags: str, searching: bool) -> str:
    """The translation, with letters of all languages compared where case is ignored."""
    compiled(pattern, flags, searching)
    return re.sub(r"^\(\?i", "(?iu", translated(pattern, flags))


def for_duckdb(pattern: str, flags: str) -> str | None:
    """The translation for a test by DuckDB's engine; None if that cannot."""
    linear = compiled(pattern, flags, False).linear
    return None if linear is None else linear + UNCHANGED


def for_re2(text: str) -> str | None:
    """A translation for RE2, which has neither look-around nor back references; None if it needs them."""
    made = text.replace(r"(?!.|\n)", r"\z")
    return None if re.search(r"\(\?<?[=!]|\(\?:\\[1-9]\)", made) else made


@lru_cache(maxsize=KEPT)
def compiled(pattern: str, flags: str, searching: bool = True) -> Searched:
    """`searching`: whether the place of a match matters. Raises 0A000 where that may not be PostgreSQL's."""
    text = translated(pattern, flags)
    try:
        made = re.compile(text)
    except re.error as error:
        if "look-behind" in str(error):
            raise FeatureNotSupported("a look-behind of variable length is not supported") from None
        raise invalid(str(error)) from None
    found = choices(text)
    if searching and not found.first_is_longest:
        raise FeatureNotSupported(
            "a regular expression whose longest match may not be the first one is not supported",
            hint="PostgreSQL takes the longest match of all. Let alternatives and repetitions be told apart by one character.",
        )
    return Searched(made, for_re2(text), found.power)


@own("text", "text", "text", to="bool")
def regexp_like(text: str, pattern: str, flags: str) -> bool:
    return compiled(pattern, options(flags)[0], False).search(text) is not None


def _groups(match: Match) -> list[str | None]:
    return list(match.groups()) or [match[0]]


@own("text", "text", "text", to="text[]")
def regexp_match(text: str, pattern: str, flags: str) -> list[str | None] | None:
    if "g" in flags:
        raise InvalidParameterValue('regexp_match() does not support the "global" option')
    match = compiled(pattern, options(flags)[0]).search(text)
    return _groups(match) if match else None


@own("text", "text", "text", to="text[][]")
def regexp_matches(text: str, pattern: str, flags: str) -> list[list[str | None]]:
    rest, everywhere = options(flags, everywhere=True)
    found = matches(compiled(pattern, rest), text)
    return [_groups(match) for match in (found if everywhere else found[:1])]


@own("text", "text", to="text")
def regexp_part(text: str, pattern: str) -> str | None:
    """substring(text FROM pattern)"""
    match = compiled(pattern, "").search(text)
    return None if match is None else match[1] if match.groups() else match[0]


def replacement(text: str) -> list[str | int]:
    """Pieces of a replacement: texts, and numbers of groups."""
    out: list[str | int] = []
    at = 0
    while at < len(text):
        char, following = text[at], text[at + 1 : at + 2]
        if char == "\\" and following:
            out.append(0 if following == "&" else int(following) if following in "123456789" else "\\" * (following != "\\") + following)
            at += 2
        else:
            out.append(char)
            at += 1
    return out


def matches(pattern: Searched, text: str, start: int = 0) -> list[Match]:
    """All matches as PostgreSQL finds them: after an empty one it goes on one character later, and none is empty where the last ended."""
    found: list[Match] = []
    at = start
    while at <= len(text):
        match = pattern.search(text, at)
        if match is None:
            break
        found.append(match)
        at = match.end() + (match.end() == match.start())
    return found


def _replaced(text: str, pattern: Searched, new: str, start: int, nth: int) -> str:
    """`nth`: which match, 0 for all."""
    pieces, out, last = replacement(new), [], 0
    for n, match in enumerate(matches(pattern, text, start), 1):
        if nth and n != nth:
            continue
        out.append(text[last : match.start()])
        out += [p if isinstance(p, str) else (match[p] or "") if p <= pattern.groups else "" for p in pieces]
        last = match.end()
        if nth:
            break
    return "".join(out) + text[last:]


@own("text", "text", "text", "text", to="text")
def regexp_replace(text: str, pattern: str, new: str, flags: str) -> str:
    if flags[:1].isdigit():
        hint = "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly."
        raise of("22023", f'invalid regular expression option: "{flags[0]}"', hint=hint)
    rest, everywhere = options(flags, everywhere=True)
    return _replaced(text, compiled(pattern, rest), new, 0, 0 if everywhere else 1)


def _positive(name: str, value: int, least: int = 1) -> int:
    if value < least:
        raise InvalidParameterValue(f'invalid value for parameter "{name}": {value}')
    return value


@own("text", "text", "text", "int4", "int4", "text", to="text")
def regexp_replace_nth(text: str, pattern: str, new: str, start: int, nth: int, flags: str) -> str:
    _positive("start", start), _positive("n", nth, 0)
    return _replaced(text, compiled(pattern, options(flags, everywhere=True)[0]), new, start - 1, nth)


@own("text", "text", "text", to="text[]")
def regexp_split_to_array(text: str, pattern: str, flags: str) -> list[str]:
    if "g" in flags:
        raise InvalidParameterValue('regexp_split_to_array() does not support the "global" option')
    out, last, before = [], 0, 0
    for match in matches(compiled(pattern, options(flags)[0]), text):
        # what is empty at an end, or right behind another match, splits nothing
        if match.start() < len(text) and match.end() > before:
            out.append(text[last : match.start()])
            last = match.end()
        before = match.end()
    return [*out, text[last:]]


@own("text", "text", "int4", "text", to="int4")
def regexp_count(text: str, pattern: str, start: int, flags: str) -> int:
    _positive("start", start)
    return len(matches(compiled(pattern, _no_global("regexp_count", flags)), text, start - 1))


def _no_global(name: str, flags: str) -> str:
    if "g" in flags:
        raise InvalidParameterValue(f'{name}() does not support the "global" option')
    return options(flags)[0]


def _nth(text: str, pattern: Searched, start: int, nth: int) -> Match | None:
    _positive("start", start), _positive("n", nth)
    found = matches(pattern, text, start - 1)
    return found[nth - 1] if nth <= len(found) else None


def _group(match: Match | None, group: int) -> int:
    """Without groups the whole is the first."""
    return 0 if match is not None and group == 1 and not match.groups() else group


@own("text", "text", "int4", "int4", "int4", "text", "int4", to="int4")
def regexp_instr(text: str, pattern: str, start: int, nth: int, end: int, flags: str, group: int) -> int:
    _positive("start", start), _positive("n", nth)
    if end not in (0, 1):
        raise InvalidParameterValue(f'invalid value for parameter "endoption": {end}')
    _positive("subexpr", group, 0)
    match = _nth(text, compiled(pattern, _no_global("regexp_instr", flags)), start, nth)
    group = _group(match, group)
    if match is None or group > len(match.groups()) or match.start(group) < 0:
        return 0
    return (match.end(group) if end else match.start(group)) + 1


@own("text", "text", "int4", "int4", "text", "int4", to="text")
def regexp_substr(text: str, pattern: str, start: int, nth: int, flags: str, group: int) -> str | None:
    _positive("start", start), _positive("n", nth), _positive("subexpr", group, 0)
    match = _nth(text, compiled(pattern, _no_global("regexp_substr", flags)), start, nth)
    group = _group(match, group)
    return None if match is None or group > len(match.groups()) else match[group]
