"""Views of money and "char", compared with PostgreSQL."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.types import FLOAT8, GENERAL, INT4, Type
from tests.engine.plan.comparison import Relation, compared

pytestmark = pytest.mark.spark

COLUMNS = {
    "k": INT4, "m": Type("money"), "o": Type("money"), "n": Type("numeric", (10, 3)), "f": FLOAT8, "c": Type("char"),
    "a": Type("money", is_array=True), "g": GENERAL,
}  # fmt: skip
POOLS: dict[str, list[str | None]] = {
    "k": ["1", "2", "3"],
    "m": [None, "0", "1", "-0.05", "12.34", "-1234567.89", "92233720368547.07"],
    "o": [None, "1", "12.34", "-7.77"],
    "n": [None, "0.005", "-12.345", "99999.999"],
    "f": [None, "0.5", "-1.1", "3"],
    "c": [None, "", "a", "B", "~"],
    "a": [None, "{}", "{1,NULL}", "{12.34,-0.05}"],
    "g": [None, "1.005", "-2.5", "1e3"],
}
QUERIES = """
SELECT m, a, m::text, a::text, concat(m, o), m = o, m < o, m > '1' FROM t
SELECT k, sum(m), min(m), max(o), count(DISTINCT m), sum(DISTINCT o), sum(m) FILTER (WHERE k > 1) FROM t GROUP BY k
SELECT m + o, m - o, m * k, k * m, m * f, f * m, m / k, m / f FROM t WHERE abs(m::numeric) < 1000000
SELECT m / o, cash_words(m), cashlarger(m, o), cashsmaller(m, o) FROM t
SELECT m::numeric, n::money, k::money, k::bigint::money, o::numeric(10, 1), o::numeric * n FROM t
SELECT g::money, m::numeric + g FROM t
SELECT DISTINCT m, o FROM t
SELECT m FROM t WHERE k = 1 UNION SELECT o FROM t WHERE k = 2
SELECT count(*) FROM t x JOIN t y ON x.m = y.o AND x.k < y.k
SELECT k, m, rank() OVER (PARTITION BY k ORDER BY m) FROM t
SELECT * FROM (SELECT m FROM t ORDER BY m LIMIT 5) q
SELECT k, jsonb_build_object('m', m, 'a', a, 'c', c), to_json(m) FROM t
SELECT unnest(a) AS u, count(*) FROM t GROUP BY u
SELECT greatest(m, o), coalesce(m, o), nullif(m, o), m IN ('1', '12.34'), m = ANY (a) FROM t
SELECT c, c::text, c::int, c::text || 'x', c = 'a', c < 'B', upper(c), k::"char", n::text::"char", coalesce(c, 'q') FROM t
SELECT c, count(*), min(c), max(c) FROM t GROUP BY c
SELECT string_agg(c, ',' ORDER BY c), array_agg(c ORDER BY c) FROM t
""".strip().splitlines()


@pytest.mark.parametrize("share", [pytest.param(4, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_views_and_queries(share: int, session: Any, tmp_path: Path, seed: int, server: Any) -> None:
    """Tests one of every `share` queries, chosen by the seed."""
    chance = random.Random(seed)
    columns = 'k int, m money, o money, n numeric(10, 3), f float8, c "char", a money[], g numeric'
    server.execute(f"DROP TABLE IF EXISTS t; CREATE TEMPORARY TABLE t ({columns})")
    relation = Relation.of(COLUMNS, POOLS, server)
    compared(session, tmp_path, relation, chance.sample(QUERIES, len(QUERIES) // share), chance)
