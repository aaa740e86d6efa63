"""Every window function, and aggregates over windows of every form, compared with PostgreSQL."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.types import INT4, Type
from tailgate.sql.functions.entry import Function
from tailgate.sql.functions.windows import FRAMED, ROWS
from tests.engine.plan.comparison import Relation, compared
from tests.sql.generated import random_value
from tests.sql.samples import SAMPLES

pytestmark = pytest.mark.spark

TOGETHER = 4  # calls per view
EACH = 6  # cases per function
# `n` is unique, so an order that ends with it is total
COLUMNS = {
    "n": INT4, "k": INT4, "i": INT4, "d": Type("date"), "m": Type("numeric", (14, 2)), "h": Type("time"), "v": Type("interval"),
    "x": Type("text"), "u": Type("interval"),
}  # fmt: skip
VALUES = ("i", "d", "m", "x", "u")
AGGREGATES = ("count(*)", "count({a})", "sum(i)", "avg(i::float8)", "min({a})", "max({a})", "array_agg({a})", "sum(m)", "bool_or(i > 0)")
SHOWING = ("", "ROWS")  # functions that depend on the order of rows need a total order
MODES = (*SHOWING, "RANGE", "GROUPS")
ROW_BOUNDS = ("UNBOUNDED PRECEDING", "2 PRECEDING", "CURRENT ROW", "1 FOLLOWING", "3 FOLLOWING", "UNBOUNDED FOLLOWING")
RANGES = {  # offsets for each ordering column
    "i": ("3", "0"), "d": ("'1 mon'", "'1 day'"), "m": ("2.5", "0"), "h": ("'90 min'", "'1 day'"), "v": ("'24:00'", "'1 mon -3 days'"),
}  # fmt: skip
EXCLUDED = ("", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES")


def row(chance: random.Random, numbers: itertools.count[int]) -> tuple[str | None, ...]:
    few = {
        "k": "123",
        "i": ["0", "1", "3", "7", "-2", None],
        "d": ["2024-01-31", "2024-02-29", "2024-03-01", None],
        "m": ["1.5", "4", "-2.25", None],
        "h": ["00:00", "00:30", "01:45", "23:15", "24:00", None],
        "v": ["1 day", "24:00", "1 mon", "30 days -1 sec", "-2 days 5 hours", "0", None],
    }
    rest = [chance.choice(SAMPLES[t]) if chance.random() < 0.5 else random_value(t, chance) for t in ("text", "interval")]
    return (str(next(numbers)), *(chance.choice(values) for values in few.values()), *rest)


def call(function: Function, chance: random.Random) -> str:
    kinds = {"any": chance.choice(VALUES), "int4": "k" if function.name != "ntile" else "3"}
    arguments = [kinds[a] for a in function.arguments]
    return f"{function.name}({', '.join(arguments)})"


def over(modes: tuple[str, ...], chance: random.Random) -> str:
    parts = ["PARTITION BY k"] if chance.random() < 0.6 else []
    mode = chance.choice(modes)
    column = chance.choice(tuple(RANGES))
    direction = chance.choice(("", " DESC", " NULLS FIRST", " DESC NULLS LAST"))
    if mode == "RANGE":
        offsets = [f"{o} {way}" for o in RANGES[column] for way in ("PRECEDING", "FOLLOWING")]
        bounds = ["UNBOUNDED PRECEDING", "CURRENT ROW", *offsets, "UNBOUNDED FOLLOWING"]
        order = f"{column}{direction}"
    else:
        bounds = list(ROW_BOUNDS)
        order = f"{column}{direction}" if mode == "GROUPS" else f"{column}{direction}, n"
    parts.append(f"ORDER BY {order}")
    if mode:
        start, end = frame(bounds, chance)
        parts.append(f"{mode} BETWEEN {start} AND {end}{chance.choice(EXCLUDED)}")
    return f"OVER ({' '.join(parts)})"


def frame(bounds: list[str], chance: random.Random) -> tuple[str, str]:
    """Returns two frame bounds that PostgreSQL allows together."""

    def place(bound: str) -> int:
        return 2 if bound == "CURRENT ROW" else 1 if bound.endswith("PRECEDING") else 3

    while True:
        start, end = chance.choice(bounds), chance.choice(bounds)
        if start != "UNBOUNDED FOLLOWING" and end != "UNBOUNDED PRECEDING" and place(start) <= place(end):
            return start, end


def calls(chance: random.Random) -> list[str]:
    texts = []
    for function in ROWS:
        modes = SHOWING if function.name in FRAMED else ("",)
        texts += [f"{call(function, chance)} {over(modes, chance)}" for _ in range(EACH)]
    for aggregate in AGGREGATES:
        modes = SHOWING if aggregate.startswith("array_agg") else MODES
        for _ in range(EACH):
            filter_clause = " FILTER (WHERE k <> 2)" if chance.random() < 0.3 else ""
            texts.append(f"{aggregate.format(a=chance.choice(VALUES))}{filter_clause} {over(modes, chance)}")
    chance.shuffle(texts)
    return texts


@pytest.mark.parametrize("share", [pytest.param(12, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_every_window(share: int, session: Any, tmp_path: Path, seed: int, server: Any) -> None:
    """Tests one of every `share` calls, chosen by the seed."""
    chance = random.Random(seed)
    numbers = itertools.count()
    relation = Relation(COLUMNS, lambda c: row(c, numbers), server)
    window_calls = calls(chance)
    window_calls = window_calls[: len(window_calls) // share]
    queries = [f"~ SELECT n, {', '.join(window_calls[at : at + TOGETHER])} FROM t" for at in range(0, len(window_calls), TOGETHER)]
    compared(session, tmp_path, relation, queries, chance)
