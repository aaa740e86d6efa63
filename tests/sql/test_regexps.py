"""Random regular expressions over random texts: what is not refused is found where PostgreSQL finds it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from lake.errors import FeatureNotSupported, TailgateError
from sql.compute import patterns, regexpsearch

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
def test_found_where_postgresql_finds_it(function: str, times: int, server: psycopg.Connection[Any], seed: int) -> None:
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


def test_without_bounds_is_refused() -> None:
    with pytest.raises(TailgateError) as error:
        patterns.regexp_like("a" * 60 + "b", r"(a|aa)+\1c", "")
    assert error.value.sqlstate == "54000"


def test_both_engines_find_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    for _ in range(PATTERNS):
        made, text = pattern(chance), "".join(chance.choice("aabbcxé😀") for _ in range(chance.randint(0, 12)))
        try:
            searched = patterns.compiled(made, "")
        except FeatureNotSupported:
            continue
        expected = searched.search(text)
        with monkeypatch.context() as patch:
            patch.setattr(regexpsearch, "SHORT_MAX", -1)
            patch.setattr(regexpsearch, "STEPS_MAX", -1)
            found = searched.search(text)
        shown = [m and [(m.start(i), m.end(i), m[i]) for i in range(searched.groups + 1)] for m in (expected, found)]
        assert shown[0] == shown[1], (made, text)
