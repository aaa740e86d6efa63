r"""LIKE in a time in proportion to the text and the pattern.

DuckDB and Spark match `%` by trying each length: k of them take the text's length to the power of k. So a pattern with more than one
becomes a regular expression of RE2's, which takes no longer for them.

Source: PostgreSQL 15, src/backend/utils/adt/like_match.c.
"""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import of
from sql.compute.registry import own

UNCHANGED = "()"  # a group, behind which DuckDB's optimizer does not make a LIKE of .*a.*b
PATTERN_MAX = 10_000  # characters of a pattern that RE2 is given; it would refuse some 100,000

_PART = re.compile(r"\\(?P<escaped>.?)|(?P<any>%+)|(?P<one>_)|(?P<plain>[^\\%_]+)", re.DOTALL)


@lru_cache(256)
def regex(pattern: str) -> str:
    r"""The pattern as a regular expression of RE2's, which matches the whole text. Raises 22025, 54000.

    >>> regex(r"100\% of %%_")
    '(?s)\\A100% of .*.\\z'
    """
    if len(pattern) > PATTERN_MAX:
        raise of("54000", f"a LIKE pattern may have at most {PATTERN_MAX} characters")
    out = []
    for part in _PART.finditer(pattern):
        match part.lastgroup:
            case "any":
                out.append(".*")
            case "one":
                out.append(".")
            case "plain":
                out.append(quoted(part["plain"]))
            case _:
                if not part["escaped"]:
                    raise of("22025", "LIKE pattern must not end with escape character")
                out.append(quoted(part["escaped"]))
    return rf"(?s)\A{''.join(out)}\z"


def quoted(text: str) -> str:
    """The text as a regular expression that matches nothing else."""
    return re.sub(r"[\\.+*?()|\[\]{}^$]", r"\\\g<0>", text)


def fitting(texts: list[str], pattern: str) -> list[bool]:
    """Which of the texts are LIKE the pattern."""
    found: list[bool] = pc.match_substring_regex(pa.array(texts, pa.string()), regex(pattern)).to_pylist()
    return found


@own("text", "text", to="bool")
def like(text: str, pattern: str) -> bool:
    return fitting([text], pattern)[0]


def is_plain(pattern: str) -> bool:
    """Whether at most one `%` stands before something else: then trying each of its lengths is all that there is to try.

    >>> is_plain("%a_%"), is_plain("%a%b")
    (True, False)
    """
    return sum(part.lastgroup == "any" for part in _PART.finditer(pattern.rstrip("%"))) <= 1


def for_duckdb(text: str, pattern: str) -> str:
    r"""DuckDB's test of the SQL `text` for a pattern that is known.

    >>> for_duckdb("x", "a%"), for_duckdb("x", "%a_%b")
    ("x LIKE 'a%'", "regexp_matches(x, '(?s)\\A.*a..*b\\z()')")
    """
    plain = pattern.replace("'", "''")
    if is_plain(pattern):
        return f"{text} LIKE '{plain}'" + (" ESCAPE '\\'" if "\\" in pattern else "")
    if len(pattern) > PATTERN_MAX:
        return f"tg_like({text}, '{plain}')"
    made = regex(pattern).replace("'", "''")
    return f"regexp_matches({text}, '{made}{UNCHANGED}')"
