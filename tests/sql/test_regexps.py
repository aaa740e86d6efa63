"""Random regular expressions match random texts where PostgreSQL's match."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import duckdb
import psycopg
import pytest

from tailgate.lake.catalog import Catalog, Change, Table
from tailgate.lake.errors import FeatureNotSupported, TailgateError
from tailgate.lake.types import TEXT, Field
from tailgate.sql.bind import bind_query
from tailgate.sql.compute.regexp import functions, likes, patterns, search
from tailgate.sql.compute.text import strings
from tailgate.sql.render.duckdb import render
from tailgate.sql.render.duckdb_functions import install

PATTERNS, TEXTS = 400, 25
TIMEOUT_S = 20  # enough for a busy machine; these tests could take exponential time
CALLS = {
    "regexp_match(t, %s)": lambda text, regexp: functions.regexp_match(text, regexp, ""),
    "regexp_split_to_array(t, %s)": lambda text, regexp: functions.regexp_split_to_array(text, regexp, ""),
    "regexp_count(t, %s)": lambda text, regexp: functions.regexp_count(text, regexp, 1, ""),
}


@pytest.fixture(scope="module")
def server(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        yield connection


def random_pattern(rng: random.Random, depth: int = 0) -> str:
    branches = ["".join(random_piece(rng, depth) for _ in range(rng.randint(1, 3))) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    return "|".join(branches) if depth else f"({branches[0]})" + "".join(f"({b})" for b in branches[1:])


def random_piece(rng: random.Random, depth: int) -> str:
    if depth < 3 and rng.random() < 0.35:
        atom = rng.choice(("(", "(", "(?:")) + random_pattern(rng, depth + 1) + ")"
    else:
        atom = rng.choice(("a", "b", "c", "ab", ".", "[ab]", "[^a]", "^", "$", "x"))
    if atom in "^$":
        return atom
    return atom + rng.choice(("", "", "", "*", "+", "?", "{2}", "{1,2}", "*?", "+?"))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("factor", [pytest.param(1, id="few"), pytest.param(30, id="many", marks=pytest.mark.long)])
def test_patterns_match_as_in_postgresql(
    call: str, factor: int, server: psycopg.Connection[Any], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "external_search", search.find_spans)
    rng = random.Random(seed)
    supported = 0
    differences = []
    for _ in range(PATTERNS * factor):
        regexp = random_pattern(rng)
        texts = ["".join(rng.choice("aabbcx") for _ in range(rng.randint(0, 7))) for _ in range(TEXTS)]
        try:
            results = [CALLS[call](text, regexp) for text in texts]
        except FeatureNotSupported:
            continue
        supported += 1
        rows = server.execute(f"SELECT {call} FROM unnest(%s::text[]) AS u(t)", (regexp, texts)).fetchall()
        for text, (expected,), result in zip(texts, rows, results, strict=True):
            if expected != result:
                differences.append(f"{regexp} of {text}: {expected}, not {result}")
                break
    assert not differences, f"{len(differences)} of {supported}\n" + "\n".join(sorted(differences, key=len)[:40])
    assert supported > PATTERNS * factor / 4


@pytest.mark.parametrize(
    ("regexp", "text"),
    [("(x+x+)+y", "x" * 40), ("(a|aa)+$", "a" * 60 + "b"), (".*.*.*.*=(.*)", "é" * 3000), (r"^(\w+\s?)*$", "word " * 30 + "!")],
)
def test_patterns_that_backtrack_finish(regexp: str, text: str) -> None:
    assert functions.regexp_like(text, regexp, "") is False


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize(
    ("regexp", "text"),
    [
        (r"(a|aa)+\1c", "a" * 60 + "b"),
        ("(((a*)*)*)*(?=b)", "a" * 20),
        ("(" * 30 + "a" + "*)" * 30 + "(?=b)", "a" * 5),
        ("(?=(a+)+b)x", "a" * 5000),
    ],
)
def test_unbounded_searches_raise_an_error(regexp: str, text: str) -> None:
    with pytest.raises(TailgateError) as error:
        functions.regexp_like(text, regexp, "")
    assert error.value.sqlstate == "54000"


@pytest.mark.timeout(TIMEOUT_S)
def test_similar_patterns_with_separators_are_bounded() -> None:
    """Tests SUBSTRING(text SIMILAR pattern ESCAPE '#')."""
    assert strings.substring_similar("the answer is 42", '%#"[0-9]+#"%', "#") == "42"
    assert strings.substring_similar("a" * 100, '((a*)*)*#"b#"%', "#") is None


def test_re_and_re2_return_the_same_matches(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "external_search", search.find_spans)
    rng = random.Random(seed)
    compared = 0
    for _ in range(PATTERNS):
        regexp, text = random_pattern(rng), "".join(rng.choice("aabbcxé😀") for _ in range(rng.randint(0, 12)))
        try:
            pattern = patterns.compiled(regexp, "")
        except FeatureNotSupported:
            continue
        matches = [pattern.search(text)]
        with monkeypatch.context() as patch:
            patch.setattr(search, "STEPS_MAX", -1)
            matches.append(pattern.search(text))
        compared += pattern.re2 is not None
        groups = [m and [(m.start(i), m.end(i), m[i]) for i in range(pattern.groups + 1)] for m in matches]
        assert groups[0] == groups[1], (regexp, text)
    assert compared > PATTERNS / 10


# --- LIKE ---------------------------------------------------------------------------------------


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("pattern", ["%a%a%a%a%a%a%a%a%b", "%a_%a_%a_%a_%b", r"%\a%a%a%a%a%a%b", "%" * 9_000 + "b"])
@pytest.mark.parametrize("is_literal", [True, False], ids=["literal", "column"])
def test_like_is_bounded(pattern: str, is_literal: bool) -> None:
    connection = duckdb.connect(config={"threads": 1})
    install(connection)
    connection.execute("CREATE TABLE r16384 AS SELECT repeat('a', 200) AS c0, $1 AS c1", [pattern])
    table = Table(16384, "t", (Field("x", TEXT), Field("p", TEXT)), None, stored=True)
    catalog = Catalog().apply(Change(put=(replace(table, key=(0,)),)))
    operand = f"'{pattern}'" if is_literal else "p"
    for operator in ("LIKE", "ILIKE", "NOT LIKE"):
        query = render(bind_query(f"SELECT x {operator} {operand} FROM t", catalog).plan)
        assert connection.execute(query).fetchall() == [(operator.startswith("NOT"),)]


def test_like_matches_as_in_postgresql(server: psycopg.Connection[Any], seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(1500):
        text = "".join(rng.choice("ab%_\\é") for _ in range(rng.randint(0, 8)))
        pattern = "".join(rng.choice("ab%%%_\\é") for _ in range(rng.randint(0, 7)))
        if (len(pattern) - len(pattern.rstrip("\\"))) % 2:
            with pytest.raises(TailgateError, match="must not end with escape character"):
                likes.like(text, pattern)
        else:
            row = server.execute("SELECT %s::text LIKE %s::text", (text, pattern)).fetchone()
            assert row == (likes.like(text, pattern),), (text, pattern)


@pytest.mark.parametrize(
    ("test", "answer"),
    [
        ("'abc' LIKE ANY (ARRAY['x%', 'a%'])", True),
        ("'abc' NOT LIKE ALL (ARRAY['x%', '%a%b%'])", False),
        ("'ABC' ILIKE ANY (ARRAY['x%', '%a%b%'])", True),
        ("'abc' ~ ANY (ARRAY['x', '^a.c'])", True),
        ("'abc' !~ ALL (ARRAY['x', '^a.c'])", False),
        ("'abC' ~* ALL (ARRAY['B', '^a.c'])", True),
        ("'abc' LIKE ANY (ARRAY['x%', NULL])", None),
    ],
)
def test_each_element_is_a_pattern(test: str, answer: bool | None) -> None:
    connection = duckdb.connect()
    install(connection)
    assert connection.execute(render(bind_query(f"SELECT {test}", Catalog()).plan)).fetchall() == [(answer,)]
