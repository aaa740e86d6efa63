"""Views of bit and bit varying, compared with PostgreSQL."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.types import INT4, Type
from tests.engine.plan.comparison import Relation, compared

pytestmark = pytest.mark.spark

COLUMNS = {"k": INT4, "b": Type("bit", (3,)), "v": Type("varbit"), "a": Type("bit", (3,), is_array=True)}
POOLS: dict[str, list[str | None]] = {
    "k": ["1", "2", "3"],
    "b": [None, "000", "001", "010", "101", "111"],
    "v": [None, "", "0", "1", "10", "101", "0101", "11111111111111111"],
    "a": [None, "{}", "{101,NULL}", "{000,010}"],
}
QUERIES = """
SELECT b, v, a, b::text, a::text, concat(b, v), b = v, b < v, b || v, ~ v, b << k, v >> 1 FROM t
SELECT k, bit_and(b), bit_or(b), bit_xor(b), count(DISTINCT v) FROM t GROUP BY k
SELECT bit_and(v), bit_or(v), bit_xor(v) FROM t WHERE length(v) = 3
SELECT k, bit_and(b) FILTER (WHERE k > 1), bit_xor(DISTINCT b), array_agg(v ORDER BY v) FROM t GROUP BY k
SELECT length(v), octet_length(v), bit_length(b), bit_count(v), count(*) FROM t GROUP BY v, b
SELECT DISTINCT b, v FROM t
SELECT b FROM t WHERE k = 1 UNION SELECT v FROM t WHERE k = 2
SELECT count(*) FROM t l JOIN t r ON l.b = r.v AND l.k < r.k
SELECT k, b, rank() OVER (PARTITION BY k ORDER BY b), lag(v) OVER (PARTITION BY k ORDER BY v DESC, b) FROM t
SELECT * FROM (SELECT v FROM t ORDER BY v LIMIT 5) q
SELECT b & B'101', b | B'010', b # B'110', get_bit(b, k - 1), set_bit(b, 0, 1) FROM t
SELECT substring(v FROM 2), substring(v FROM k FOR 2) FROM t
SELECT position(B'1' IN v), overlay(v PLACING b FROM 2), overlay(v PLACING b FROM k FOR 1) FROM t
SELECT b::int, v::bit(5), v::varbit(2), k::bit(4), (- k)::bigint::bit(70), b::bigint, v::text::bit(2), coalesce(b, v) FROM t
SELECT k, jsonb_build_object('b', b, 'v', v, 'a', a), to_json(v) FROM t
SELECT unnest(a) AS u, count(*) FROM t GROUP BY u
SELECT k, b IN ('101', '000'), b = ANY (a), b BETWEEN '001' AND '110', b IS DISTINCT FROM v FROM t
""".strip().splitlines()


@pytest.mark.parametrize("share", [pytest.param(4, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_views_and_queries(share: int, session: Any, tmp_path: Path, seed: int, server: Any) -> None:
    """Tests one of every `share` queries, chosen by the seed."""
    chance = random.Random(seed)
    server.execute("DROP TABLE IF EXISTS t; CREATE TEMPORARY TABLE t (k int, b bit(3), v bit varying, a bit(3)[])")
    relation = Relation.of(COLUMNS, POOLS, server)
    compared(session, tmp_path, relation, chance.sample(QUERIES, len(QUERIES) // share), chance)
