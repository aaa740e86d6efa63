"""ksqlDB's functions of regular expressions, which have Java's syntax.

Views search with Java. Here a pattern that Python cannot express is refused: \\G, \\X, scripts, and a look-behind of variable length.

Source: ksqlDB 0.29, documentation, "Scalar functions", section "Strings"; documentation of java.util.regex.Pattern.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, InvalidRegularExpression
from tailgate.sql.compute.ksqldb.java_patterns import JavaPattern, group_number, translated
from tailgate.sql.compute.regexp.ambiguity import analyze
from tailgate.sql.compute.regexp.functions import all_matches
from tailgate.sql.compute.regexp.patterns import CACHE_MAX, PATTERN_MAX
from tailgate.sql.compute.regexp.search import Match, Pattern
from tailgate.sql.compute.registry import udf
from tailgate.values.strings.jsonb import dump

# constructs that earlier versions refused, so that their queries have NULL for them
REFUSED = re.compile(r"\\[pPQEGhHRXvVkzZxu0c]|[*+?}]\+|\[[^\]]*(?:\[|&&)|\(\?[a-zA-Z<]")
REFERENCE = re.compile(r"\\(.)|\$([0-9]+)|\$\{([A-Za-z][A-Za-z0-9]*)\}|([$\\])", re.DOTALL)


@lru_cache(maxsize=CACHE_MAX)
def _compiled(pattern: str) -> tuple[Pattern, Mapping[str, int]]:
    """Returns a pattern that can be searched for, and the numbers of its named groups. Raises 0A000 or 2201B."""
    if len(pattern) > PATTERN_MAX:
        raise FeatureNotSupported(f"a regular expression of more than {PATTERN_MAX} characters is not supported")
    try:
        python = translated(pattern)
        power = analyze(python.backtracking).power
        # RE2 needs flags here, and (?m) has no effect without anchors
        return Pattern(re.compile(python.text), "(?m)" + python.text if _has_re2(python) else None, power), python.names
    except re.error as error:
        if "look-behind" in str(error) or "open group" in str(error):
            raise FeatureNotSupported(f'the regular expression "{pattern}" is not supported') from None
        raise InvalidRegularExpression(f"invalid regular expression pattern: {pattern}") from None
    except RecursionError:
        raise FeatureNotSupported("a regular expression that is nested too deeply is not supported") from None


def _has_re2(pattern: JavaPattern) -> bool:
    """Returns whether RE2 can search for a pattern, which it reads as UTF-8."""
    return pattern.linear and not any("\ud800" <= char <= "\udfff" for char in pattern.text)


def _group(match: Match, group: int) -> str | None:
    if not 0 <= group <= len(match.groups()):
        raise InvalidParameterValue(f"no group {group}")
    return match[group]


@udf("text", "text", "int4", to="text")
def ksqldb_pattern_extract(pattern: str, text: str, group: int) -> str | None:
    """Returns the text of a group of the first match; group 0 is the whole match."""
    match = _compiled(pattern)[0].search(text)
    return _group(match, group) if match else None


@udf("text", "text", "int4", to="jsonb")
def ksqldb_pattern_extract_all(pattern: str, text: str, group: int) -> str:
    return dump([_group(match, group) for match in all_matches(_compiled(pattern)[0], text)])


@udf("text", "text", "text", to="text")
def ksqldb_pattern_replace(text: str, pattern: str, replacement: str) -> str:
    """Replaces all matches. In the replacement $n and ${name} are groups, and a backslash precedes a literal character."""
    out, at = [], 0
    compiled, names = _compiled(pattern)
    for match in all_matches(compiled, text):
        out += [text[at : match.start()], _expanded(replacement, match, names)]
        at = match.end()
    return "".join([*out, text[at:]])


def _expanded(replacement: str, match: Match, names: Mapping[str, int]) -> str:
    """Returns the replacement of a match. Raises 22023 for a group that does not exist."""

    def text_of(reference: re.Match[str]) -> str:
        if reference[1] is not None:
            return reference[1]
        if reference[3] in names:
            return match[names[reference[3]]] or ""
        digits, groups = reference[2], len(match.groups())
        if digits is None or int(digits[0]) > groups:
            raise InvalidParameterValue("illegal group reference")
        number, end = group_number(digits, 0, groups)
        return (match[number] or "") + digits[end:]

    return REFERENCE.sub(text_of, replacement)


@udf("text", "text", to="jsonb")
def ksqldb_pattern_split(text: str, pattern: str) -> str:
    """Returns the parts between matches; the characters for an empty pattern. An empty text is its only part."""
    if not pattern:
        return dump(list(text) or [""])
    parts, at = [], 0
    for match in all_matches(_compiled(pattern)[0], text):
        if match.end() > match.start():
            parts.append(text[at : match.start()])
            at = match.end()
    return dump([*parts, text[at:]])


# --- in queries of earlier versions: a row of a table that leaves must have the values with which it came


def _check_earlier(pattern: str) -> None:
    """Raises 0A000 for a pattern that earlier versions refused."""
    if REFUSED.search(pattern):
        raise FeatureNotSupported(f'the regular expression "{pattern}" is not supported')


@udf("text", "text", "int4", to="text")
def ksqldb_regexp_extract(pattern: str, text: str, group: int) -> str | None:
    _check_earlier(pattern)
    return ksqldb_pattern_extract(pattern, text, group)


@udf("text", "text", "int4", to="jsonb")
def ksqldb_regexp_extract_all(pattern: str, text: str, group: int) -> str:
    _check_earlier(pattern)
    return ksqldb_pattern_extract_all(pattern, text, group)


@udf("text", "text", "text", to="text")
def ksqldb_regexp_replace(text: str, pattern: str, replacement: str) -> str:
    _check_earlier(pattern)
    return ksqldb_pattern_replace(text, pattern, replacement)


@udf("text", "text", to="jsonb")
def ksqldb_regexp_split(text: str, pattern: str) -> str:
    _check_earlier(pattern)
    return ksqldb_pattern_split(text, pattern) if text or pattern else "[]"
