"""Random regular expressions over random texts: what is not refused is found where PostgreSQL finds it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import duckdb
import psycopg
import pytest

from lake.catalog import Catalog, Change, Item
from lake.errors import FeatureNotSupported, TailgateError
from lake.types import TEXT, Field
from sql.bind import bind_query
from sql.compute import likes, patterns, regexpsearch, strings
from sql.duckdb import render
from sql.duckdb_functions import install
from tests.limited import limited

PATTERNS, TEXTS = 400, 25
ASKED = {
    "regexp_match(t, %s)": lambda text, made: patterns.regexp_match(text, made, ""),
    "regexp_split_to_array(t, %s)": lambda text, made: patterns.regexp_split_to_array(text, made, ""),
    "regexp_count(t, %s)": lambda text, made: patterns.regexp_count(text, made, 1, ""),
}


@pytest.fixture(scope="module")
def server(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        yield connection


def pattern(chance: random.Random, depth: int = 0) -> str:
    branches = ["".join(piece(chance, depth) for _ in range(chance.randint(1, 3))) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    return "|".join(branches) if depth else f"({branches[0]})" + "".join(f"({b})" for b in branches[1:])


def piece(chance: random.Random, depth: int) -> str:
    if depth < 3 and chance.random() < 0.35:
        atom = chance.choice(("(", "(", "(?:")) + pattern(chance, depth + 1) + ")"
    else:
        atom = chance.choice(("a", "b", "c", "ab", ".", "[ab]", "[^a]", "^", "$", "x"))
    if atom in "^$":
        return atom
    return atom + chance.choice(("", "", "", "*", "+", "?", "{2}", "{1,2}", "*?", "+?"))


@pytest.mark.parametrize("function", ASKED)
@pytest.mark.parametrize("times", [pytest.param(1, id="some"), pytest.param(30, id="many", marks=pytest.mark.long)])
def test_found_where_postgresql_finds_it(
    function: str, times: int, server: psycopg.Connection[Any], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regexpsearch, "elsewhere", regexpsearch.found)
    chance = random.Random(seed)
    asked = wrong = 0
    shown = []
    for _ in range(PATTERNS * times):
        made = pattern(chance)
        texts = ["".join(chance.choice("aabbcx") for _ in range(chance.randint(0, 7))) for _ in range(TEXTS)]
        try:
            found = [ASKED[function](t, made) for t in texts]
        except FeatureNotSupported:
            continue
        asked += 1
        expected = [r[0] for r in server.execute(f"SELECT {function} FROM unnest(%s::text[]) AS u(t)", (made, texts)).fetchall()]
        for text, theirs, ours in zip(texts, expected, found, strict=True):
            if theirs != ours:
                wrong += 1
                shown.append(f"{made} of {text}: {theirs}, not {ours}")
                break
    assert not wrong, f"{wrong} of {asked}\n" + "\n".join(sorted(shown, key=len)[:40])
    assert asked > PATTERNS * times / 4


@pytest.mark.parametrize(
    ("made", "text"),
    [("(x+x+)+y", "x" * 40), ("(a|aa)+$", "a" * 60 + "b"), (".*.*.*.*=(.*)", "é" * 3000), (r"^(\w+\s?)*$", "word " * 30 + "!")],
)
def test_a_test_ends(made: str, text: str) -> None:
    assert patterns.regexp_like(text, made, "") is False


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (r"(a|aa)+\1c", "a" * 60 + "b"),
        ("(((a*)*)*)*(?=b)", "a" * 20),
        ("(" * 30 + "a" + "*)" * 30 + "(?=b)", "a" * 5),
        ("(?=(a+)+b)x", "a" * 5000),
    ],
)
def test_without_bounds_is_refused(made: str, text: str) -> None:
    with limited(), pytest.raises(TailgateError) as error:
        patterns.regexp_like(text, made, "")
    assert error.value.sqlstate == "54000"


def test_a_pattern_with_quotes_has_bounds_too() -> None:
    """SUBSTRING(text SIMILAR pattern ESCAPE '#')"""
    assert strings.substring_similar("the answer is 42", '%#"[0-9]+#"%', "#") == "42"
    with limited():
        assert strings.substring_similar("a" * 100, '((a*)*)*#"b#"%', "#") is None


# --- LIKE ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["%a%a%a%a%a%a%a%a%b", "%a_%a_%a_%a_%b", r"%\a%a%a%a%a%a%b", "%" * 9_000 + "b"])
@pytest.mark.parametrize("known", [True, False], ids=["literal", "column"])
def test_like_takes_no_time(pattern: str, known: bool) -> None:
    connection = duckdb.connect(config={"threads": 1})
    install(connection)
    connection.execute("CREATE TABLE r16384 AS SELECT repeat('a', 200) AS c0, $1 AS c1", [pattern])
    table = Item(16384, "table", "t", (Field("x", TEXT), Field("p", TEXT)), None, stored=True)
    catalog = Catalog().apply(Change(put=(replace(table, key=(0,)),)))
    side = f"'{pattern}'" if known else "p"
    with limited():
        for words in ("LIKE", "ILIKE", "NOT LIKE"):
            found = connection.execute(render(bind_query(f"SELECT x {words} {side} FROM t", catalog).plan)).fetchall()
            assert found == [(words.startswith("NOT"),)]


def test_like_is_as_postgresqls(server: psycopg.Connection[Any], seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(1500):
        text = "".join(chance.choice("ab%_\\é") for _ in range(chance.randint(0, 8)))
        like = "".join(chance.choice("ab%%%_\\é") for _ in range(chance.randint(0, 7)))
        if (len(like) - len(like.rstrip("\\"))) % 2:
            with pytest.raises(TailgateError, match="must not end with escape character"):
                likes.like(text, like)
        else:
            row = server.execute("SELECT %s::text LIKE %s::text", (text, like)).fetchone()
            assert row == (likes.like(text, like),), (text, like)


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
