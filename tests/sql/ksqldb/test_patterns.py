"""Regular expressions of Java in Python: patterns that take long to compile, and parts for which RE2 or Python have limits."""

from __future__ import annotations

import pytest

from tailgate.lake.errors import TailgateError
from tailgate.sql.compute.ksqldb.regexps import ksqldb_pattern_extract, ksqldb_pattern_replace
from tailgate.sql.compute.regexp import search

UNSUPPORTED, INVALID = "0A000", "2201B"


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    ("pattern", "sqlstate"),
    [
        pytest.param(r"\p{L}" * 2000, UNSUPPORTED, id="named sets"),
        pytest.param(r"[\p{L}" + "&&[^a]" * 1600 + "]", UNSUPPORTED, id="intersections"),
        pytest.param("(?iu)" + "[Ā-ᄀ]" * 1400, UNSUPPORTED, id="sets without case"),
        pytest.param("(" * 1000 + ")" * 1000, UNSUPPORTED, id="groups in groups"),
        pytest.param("[" * 1000 + "a" + "]" * 1000, UNSUPPORTED, id="sets in sets"),
        pytest.param("a{" + "9" * 5000 + "}", INVALID, id="repetitions"),
    ],
)
def test_a_pattern_that_takes_long_is_refused(pattern: str, sqlstate: str) -> None:
    with pytest.raises(TailgateError) as error:
        ksqldb_pattern_extract(pattern, "a", 0)
    assert error.value.sqlstate == sqlstate


@pytest.mark.timeout(5)
def test_nested_repetitions_of_named_sets_are_analyzed_in_a_bounded_time() -> None:
    assert ksqldb_pattern_extract("(" * 14 + r"\p{L}" + "+)" * 14, "1ab2", 0) == "ab"


def test_a_repetition_that_re2_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "external_search", search.find_spans)
    assert ksqldb_pattern_extract("a{1001}", "a" * 2000, 0) == "a" * 1001


def test_a_long_number_of_a_group() -> None:
    assert ksqldb_pattern_replace("ab", "(a)", "$1" + "2" * 5000) == "a" + "2" * 5000 + "b"
