r"""LIKE in time proportional to the product of the lengths of the text and the pattern.

DuckDB and Spark try every length of every `%`, so n of them take time proportional to the nth power
of the text's length. In DuckDB a pattern with more than one `%` becomes a regular expression for
RE2; in Spark the engine's Java library matches it.

Source: PostgreSQL 15, src/backend/utils/adt/like_match.c.
"""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake.errors import InvalidEscapeSequence, ProgramLimitExceeded
from tailgate.lake.keywords import quoted_text
from tailgate.sql.compute.registry import udf

# An empty group. Without it DuckDB's optimizer rewrites the regular expression .*a.*b to a LIKE.
EMPTY_GROUP = "()"
PATTERN_MAX = 10_000  # characters of a pattern for RE2, which refuses patterns of about 100,000

_PART = re.compile(r"\\(?P<escaped>.?)|(?P<any>%+)|(?P<one>_)|(?P<literal>[^\\%_]+)", re.DOTALL)


@lru_cache(256)
def regexp(pattern: str) -> str:
    r"""Returns RE2's regular expression of a pattern. Raises 22025 or 54000.

    >>> regexp(r"100\% of %%_")
    '(?s)\\A100% of .*.\\z'
    """
    if len(pattern) > PATTERN_MAX:
        raise ProgramLimitExceeded(f"a LIKE pattern may have at most {PATTERN_MAX} characters")
    result = []
    for part in _PART.finditer(pattern):
        match part.lastgroup:
            case "any":
                result.append(".*")
            case "one":
                result.append(".")
            case "literal":
                result.append(_quoted(part["literal"]))
            case _:
                if not part["escaped"]:
                    raise InvalidEscapeSequence("LIKE pattern must not end with escape character")
                result.append(_quoted(part["escaped"]))
    return rf"(?s)\A{''.join(result)}\z"


def _quoted(text: str) -> str:
    """Returns a regular expression that matches exactly the text."""
    return re.sub(r"[\\.+*?()|\[\]{}^$]", r"\\\g<0>", text)


def matches(texts: list[str], pattern: str) -> list[bool]:
    """Returns for each text whether it is LIKE the pattern."""
    result: list[bool] = pc.match_substring_regex(pa.array(texts, pa.string()), regexp(pattern)).to_pylist()
    return result


@udf("text", "text", to="bool")
def like(text: str, pattern: str) -> bool:
    return matches([text], pattern)[0]


def is_simple(pattern: str) -> bool:
    """Returns whether at most one `%` is followed by something else.

    Then the engines' own LIKE takes time proportional to the product of the lengths.

    >>> is_simple("%a_%"), is_simple("%a%b")
    (True, False)
    """
    return sum(part.lastgroup == "any" for part in _PART.finditer(pattern.rstrip("%"))) <= 1


def for_duckdb(text: str, pattern: str) -> str:
    r"""Returns DuckDB's SQL for `text LIKE pattern`, where `text` is SQL and the pattern a constant.

    >>> for_duckdb("x", "a%"), for_duckdb("x", "%a_%b")
    ("x LIKE 'a%'", "regexp_matches(x, '(?s)\\A.*a..*b\\z()')")
    """
    literal = quoted_text(pattern)
    if is_simple(pattern):
        return f"{text} LIKE {literal}" + (" ESCAPE '\\'" if "\\" in pattern else "")
    if len(pattern) > PATTERN_MAX:
        return f"tg_like({text}, {literal})"
    re2 = quoted_text(regexp(pattern) + EMPTY_GROUP)
    return f"regexp_matches({text}, {re2})"
