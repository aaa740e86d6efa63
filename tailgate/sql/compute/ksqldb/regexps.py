"""ksqlDB's functions of regular expressions, which have Java's syntax.

Patterns that Java and Python read differently are refused: classes such as \\p{L}, possessive quantifiers, sets in sets and flags.

Source: ksqlDB 0.29, documentation, "Scalar functions", section "Strings"; documentation of java.util.regex.Pattern.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, InvalidRegularExpression
from tailgate.sql.compute.regexp.ambiguity import analyze
from tailgate.sql.compute.regexp.functions import all_matches
from tailgate.sql.compute.regexp.patterns import CACHE_MAX, PATTERN_MAX, for_re2
from tailgate.sql.compute.regexp.search import Match, Pattern
from tailgate.sql.compute.registry import udf
from tailgate.values.strings.jsonb import dump

DIFFERENT = re.compile(r"\\[pPQEGhHRXvVkzZxu0c]|[*+?}]\+|\[[^\]]*(?:\[|&&)|\(\?[a-zA-Z<]")
# an escape, a class, or a brace without numbers of repetitions, which Java refuses
BRACE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(\{(?![0-9]+(?:,[0-9]*)?\}))", re.DOTALL)
REFERENCE = re.compile(r"\\(.)|\$([0-9]+)|([$\\])", re.DOTALL)


@lru_cache(maxsize=CACHE_MAX)
def _compiled(pattern: str) -> Pattern:
    """Returns a pattern that can be searched for. Raises 0A000 or 2201B."""
    if len(pattern) > PATTERN_MAX or DIFFERENT.search(pattern):
        raise FeatureNotSupported(f'the regular expression "{pattern}" is not supported')
    if any(match[1] for match in BRACE.finditer(pattern)):
        raise InvalidRegularExpression(f"invalid regular expression pattern: {pattern}")
    text = "(?a)" + pattern  # \d, \w and \s are ASCII's
    has_anchors = "^" in pattern or "$" in pattern
    try:
        # RE2 needs flags here, and (?m) has no effect without anchors
        return Pattern(re.compile(text), None if has_anchors else for_re2("(?m)" + pattern), analyze(text).power)
    except re.error:
        raise InvalidRegularExpression(f"invalid regular expression pattern: {pattern}") from None


def _group(match: Match, group: int) -> str | None:
    if not 0 <= group <= len(match.groups()):
        raise InvalidParameterValue(f"no group {group}")
    return match[group]


@udf("text", "text", "int4", to="text")
def ksqldb_regexp_extract(pattern: str, text: str, group: int) -> str | None:
    """Returns the text of a group of the first match; group 0 is the whole match."""
    match = _compiled(pattern).search(text)
    return _group(match, group) if match else None


@udf("text", "text", "int4", to="jsonb")
def ksqldb_regexp_extract_all(pattern: str, text: str, group: int) -> str:
    return dump([_group(match, group) for match in all_matches(_compiled(pattern), text)])


@udf("text", "text", "text", to="text")
def ksqldb_regexp_replace(text: str, pattern: str, replacement: str) -> str:
    """Replaces all matches. In the replacement $n is a group, and a backslash precedes a literal character."""
    out, at = [], 0
    for match in all_matches(_compiled(pattern), text):
        out += [text[at : match.start()], _expanded(replacement, match)]
        at = match.end()
    return "".join([*out, text[at:]])


def _expanded(replacement: str, match: Match) -> str:
    """Returns the replacement of a match. Raises 22023 for a group that does not exist."""

    def text_of(reference: re.Match[str]) -> str:
        if reference[1] is not None:
            return reference[1]
        digits = reference[2]
        if digits is None or int(digits[0]) > len(match.groups()):
            raise InvalidParameterValue("illegal group reference")
        used = next(n for n in range(len(digits), 0, -1) if n == 1 or int(digits[:n]) <= len(match.groups()))
        return (match[int(digits[:used])] or "") + digits[used:]

    return REFERENCE.sub(text_of, replacement)


@udf("text", "text", to="jsonb")
def ksqldb_regexp_split(text: str, pattern: str) -> str:
    """Returns the parts between matches; the characters for an empty pattern."""
    if not pattern:
        return dump(list(text))
    parts, at = [], 0
    for match in all_matches(_compiled(pattern), text):
        if match.end() > match.start():
            parts.append(text[at : match.start()])
            at = match.end()
    return dump([*parts, text[at:]])
