"""Functions of regular expressions.

Parameters `start` count characters from 1, `nth` counts matches from 1, and `group` is 0 for the
whole match.

Source: PostgreSQL 15, src/backend/utils/adt/regexp.c.
"""

from __future__ import annotations

from tailgate.lake.errors import InvalidParameterValue
from tailgate.sql.compute.regexp.patterns import compiled, options
from tailgate.sql.compute.regexp.search import Match, Pattern
from tailgate.sql.compute.registry import udf


def _groups(match: Match) -> list[str | None]:
    """Returns the texts of a match's groups, or of the whole match if it has none."""
    return list(match.groups()) or [match[0]]


def all_matches(pattern: Pattern, text: str, start: int = 0) -> list[Match]:
    """Returns all matches from a character on; after an empty match, from the next character on."""
    matches: list[Match] = []
    at = start
    while at <= len(text):
        match = pattern.search(text, at)
        if match is None:
            break
        matches.append(match)
        at = match.end() + (match.end() == match.start())
    return matches


def _check_minimum(name: str, value: int, minimum: int = 1) -> None:
    if value < minimum:
        raise InvalidParameterValue(f'invalid value for parameter "{name}": {value}')


def _options_without_global(function: str, flags: str) -> str:
    if "g" in flags:
        raise InvalidParameterValue(f'{function}() does not support the "global" option')
    return options(flags)[0]


# --- tests, groups and parts ---------------------------------------------------------------------


@udf("text", "text", "text", to="bool")
def regexp_like(text: str, pattern: str, flags: str) -> bool:
    return compiled(pattern, options(flags)[0], False).search(text) is not None


@udf("text", "text", "text", to="text[]")
def regexp_match(text: str, pattern: str, flags: str) -> list[str | None] | None:
    match = compiled(pattern, _options_without_global("regexp_match", flags)).search(text)
    return _groups(match) if match else None


@udf("text", "text", "text", to="text[][]")
def regexp_matches(text: str, pattern: str, flags: str) -> list[list[str | None]]:
    plain_flags, is_global = options(flags, global_allowed=True)
    matches = all_matches(compiled(pattern, plain_flags), text)
    return [_groups(match) for match in (matches if is_global else matches[:1])]


@udf("text", "text", to="text")
def regexp_part(text: str, pattern: str) -> str | None:
    """Computes substring(text FROM pattern)."""
    match = compiled(pattern, "").search(text)
    return None if match is None else match[1] if match.groups() else match[0]


@udf("text", "text", "text", to="text[]")
def regexp_split_to_array(text: str, pattern: str, flags: str) -> list[str]:
    parts, part_start, last_end = [], 0, 0
    plain_flags = _options_without_global("regexp_split_to_array", flags)
    for match in all_matches(compiled(pattern, plain_flags), text):
        # An empty match at the end, or directly after another match, separates nothing.
        if match.start() < len(text) and match.end() > last_end:
            parts.append(text[part_start : match.start()])
            part_start = match.end()
        last_end = match.end()
    return [*parts, text[part_start:]]


# --- replacement ---------------------------------------------------------------------------------


def _replacement_parts(replacement: str) -> list[str | int]:
    r"""Returns the texts of a replacement, and the group numbers of \1 to \9 and \&."""
    parts: list[str | int] = []
    at = 0
    while at < len(replacement):
        char, following = replacement[at], replacement[at + 1 : at + 2]
        if char != "\\" or not following:
            parts.append(char)
            at += 1
            continue
        if following == "&":
            parts.append(0)
        elif following in "123456789":
            parts.append(int(following))
        else:
            parts.append("\\" if following == "\\" else "\\" + following)
        at += 2
    return parts


def _replace(text: str, pattern: Pattern, replacement: str, start: int, nth: int) -> str:
    """Replaces the nth match, or all matches if `nth` is 0."""
    parts, result, copied = _replacement_parts(replacement), [], 0
    for n, match in enumerate(all_matches(pattern, text, start), 1):
        if nth and n != nth:
            continue
        result.append(text[copied : match.start()])
        for part in parts:
            if isinstance(part, str):
                result.append(part)
            elif part <= pattern.groups:
                result.append(match[part] or "")
        copied = match.end()
        if nth:
            break
    return "".join(result) + text[copied:]


@udf("text", "text", "text", "text", to="text")
def regexp_replace(text: str, pattern: str, replacement: str, flags: str) -> str:
    if flags[:1].isdigit():
        raise InvalidParameterValue(
            f'invalid regular expression option: "{flags[0]}"',
            hint="If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.",
        )
    plain_flags, all_matches = options(flags, global_allowed=True)
    return _replace(text, compiled(pattern, plain_flags), replacement, 0, 0 if all_matches else 1)


@udf("text", "text", "text", "int4", "int4", "text", to="text")
def regexp_replace_nth(text: str, pattern: str, replacement: str, start: int, nth: int, flags: str) -> str:
    _check_minimum("start", start)
    _check_minimum("n", nth, 0)
    plain_flags, _ = options(flags, global_allowed=True)
    return _replace(text, compiled(pattern, plain_flags), replacement, start - 1, nth)


# --- counts and positions ------------------------------------------------------------------------


@udf("text", "text", "int4", "text", to="int4")
def regexp_count(text: str, pattern: str, start: int, flags: str) -> int:
    _check_minimum("start", start)
    return len(all_matches(compiled(pattern, _options_without_global("regexp_count", flags)), text, start - 1))


def _nth_match(text: str, pattern: Pattern, start: int, nth: int) -> Match | None:
    matches = all_matches(pattern, text, start - 1)
    return matches[nth - 1] if nth <= len(matches) else None


def _group_number(match: Match | None, group: int) -> int:
    """Returns the group that an argument means: without groups, group 1 is the whole match."""
    return 0 if match is not None and group == 1 and not match.groups() else group


@udf("text", "text", "int4", "int4", "int4", "text", "int4", to="int4")
def regexp_instr(text: str, pattern: str, start: int, nth: int, end_option: int, flags: str, group: int) -> int:
    _check_minimum("start", start)
    _check_minimum("n", nth)
    if end_option not in (0, 1):
        raise InvalidParameterValue(f'invalid value for parameter "endoption": {end_option}')
    _check_minimum("subexpr", group, 0)
    match = _nth_match(text, compiled(pattern, _options_without_global("regexp_instr", flags)), start, nth)
    number = _group_number(match, group)
    if match is None or number > len(match.groups()) or match.start(number) < 0:
        return 0
    return (match.end(number) if end_option else match.start(number)) + 1


@udf("text", "text", "int4", "int4", "text", "int4", to="text")
def regexp_substr(text: str, pattern: str, start: int, nth: int, flags: str, group: int) -> str | None:
    _check_minimum("start", start)
    _check_minimum("n", nth)
    _check_minimum("subexpr", group, 0)
    match = _nth_match(text, compiled(pattern, _options_without_global("regexp_substr", flags)), start, nth)
    number = _group_number(match, group)
    return None if match is None or number > len(match.groups()) else match[number]
