"""Views over numerics without a declared precision: PostgreSQL's values, display scales and errors."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.types import GENERAL, INT4, Type
from tests.engine.plan.comparison import Relation, compared

pytestmark = pytest.mark.spark

COLUMNS = {"k": INT4, "x": GENERAL, "y": GENERAL, "d": Type("numeric", (10, 2))}
NUMBERS = (
    *("0", "0.00", "1", "1.0", "1.00", "-1", "-1.50", "1.5", "2.500", "7", "99.95", "0.1", "1e-20", "-1e-30", "1e-16383"),
    *(
        "12345678901234567890.5",
        "1e17",
        "-1e17",
        "99999999999999999.99",
        "1e40",
        "-1e40",
        "1e300",
        "123456789012345678901234567890123456789.5",
    ),
    *("NaN", "Infinity", "-Infinity"),
)
POOLS: dict[str, tuple[str | None, ...]] = {
    "k": ("1", "2", "3"),
    "x": (None, *NUMBERS),
    "y": (None, *NUMBERS),
    "d": (None, "0.00", "1.00", "1.50", "-1.00", "99.95", "12345678.90"),
}
# `~`: any of several equal values may be returned
QUERIES = """
SELECT k, x, y, d FROM t
SELECT k, x FROM t WHERE x > 1 AND y <> 'NaN'
SELECT k, x FROM t WHERE x IN (1, 1.5, 'NaN') OR y BETWEEN d AND 1e30
SELECT k, x = y, x < y, x >= d, d < y, x IS DISTINCT FROM y, nullif(x, 1), (x, k) < (y, 2) FROM t
SELECT k, coalesce(x, 0), coalesce(x, d, 1.5), CASE WHEN x > 1 THEN x WHEN y > 1 THEN d ELSE 0.0 END FROM t
SELECT k, greatest(x, y, 1.50), least(x, d) FROM t
~ SELECT x, count(*), count(DISTINCT y) FROM t GROUP BY x
~ SELECT DISTINCT x, k FROM t
~ SELECT k, min(x), max(x), min(y) FILTER (WHERE k > 1), max(DISTINCT y) FROM t GROUP BY k
~ SELECT min(x), max(coalesce(x, d)) FROM t
~ SELECT x FROM t WHERE k = 1 UNION SELECT d FROM t WHERE k = 2
SELECT x FROM t WHERE k = 1 UNION ALL SELECT d FROM t WHERE k = 2
~ SELECT x FROM t WHERE k = 1 EXCEPT SELECT y FROM t WHERE k = 2
~ SELECT x FROM t WHERE k = 1 INTERSECT SELECT d FROM t
~ SELECT x FROM t WHERE k < 3 EXCEPT ALL SELECT y FROM t WHERE k = 1
~ SELECT x, k FROM t INTERSECT ALL SELECT d, k FROM t
SELECT a.k, a.x, b.x FROM t a JOIN t b ON a.x = b.x AND a.k < b.k
SELECT a.k, a.x, b.d FROM t a LEFT JOIN t b ON a.x = b.d AND b.k = 1
SELECT a.x, b.y FROM t a FULL JOIN t b ON a.x = b.y AND a.k = b.k
SELECT k, x FROM t WHERE x IN (SELECT y FROM t WHERE k = 2)
SELECT k, x FROM t a WHERE NOT EXISTS (SELECT FROM t b WHERE b.x = a.y)
~ SELECT * FROM (SELECT x FROM t ORDER BY x DESC LIMIT 5) q
~ SELECT DISTINCT ON (x) x FROM t ORDER BY x
SELECT k, x, rank() OVER (ORDER BY x), dense_rank() OVER (PARTITION BY x ORDER BY y DESC) FROM t
SELECT k, x, lag(x) OVER (ORDER BY x, x::text, y, y::text, d, k) FROM t
SELECT k, first_value(y) OVER (PARTITION BY k ORDER BY x, x::text, y, y::text) FROM t
SELECT k, x / nullif(d, 0), round(x, 3), trunc(y), x % 7, div(y, 3), - x, abs(x - y) FROM t WHERE abs(x) < 1e100 AND abs(y) < 1e100
SELECT k, power(abs(d), 2 + x * 0), sqrt(abs(x)), ln(abs(y) + 0.5), exp(x * 0), log(2, d * d + 30 + x * 0) FROM t WHERE abs(x) < 1e9
SELECT k, x::int8, y::float8, x::numeric(12, 3) FROM t WHERE abs(x) < 1e6 AND abs(y) BETWEEN 1e-99 AND 1e99
SELECT k, coalesce(k::numeric, x), width_bucket(x, 0, 10, 5) FROM t WHERE x <> 'NaN'
~ SELECT k, max(x) OVER (PARTITION BY k), min(y) OVER () FROM t
SELECT k FROM t WHERE x NOT IN (SELECT y FROM t WHERE y IS NOT NULL AND k = 1)
SELECT k, d FROM t WHERE x > ALL (SELECT d FROM t WHERE d IS NOT NULL)
SELECT count(DISTINCT (x, k)) FROM t
SELECT k, x = ANY(ARRAY[1, 1.5, d]), CASE x WHEN 1 THEN 'a' WHEN y THEN 'b' END FROM t
SELECT a.k, (SELECT sum(b.x) FROM t b WHERE b.d = a.d) FROM t a
SELECT k, sum(x) OVER (ORDER BY k, x, x::text, y, y::text, d ROWS 2 PRECEDING), ntile(2) OVER (ORDER BY x, x::text, y, y::text, d) FROM t
SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY y) FROM t WHERE abs(y) BETWEEN 1e-99 AND 1e9 GROUP BY k
~ SELECT k, percentile_disc(0.5) WITHIN GROUP (ORDER BY x) FROM t GROUP BY k
~ SELECT DISTINCT ON (k) k, x FROM t ORDER BY k, x DESC NULLS LAST
SELECT k, x::text, x || 'a', concat(x, y), to_jsonb(x), json_build_object('x', y) FROM t
SELECT k, jsonb_agg(x ORDER BY x, x::text), string_agg(x::text, ',' ORDER BY x, x::text) FROM t GROUP BY k
SELECT k, sum(x), avg(x), var_pop(y), stddev_samp(x), sum(x) FILTER (WHERE k > 1) FROM t GROUP BY k
SELECT sum(y), avg(x + y), variance(x) FROM t
SELECT k, sum(x) OVER (PARTITION BY k), avg(y) OVER (PARTITION BY k) FROM t
SELECT k, count(x), count(*) FILTER (WHERE x = y) FROM t GROUP BY k
SELECT ROW(x, y) = ROW(y, x), row_to_json(q) FROM (SELECT x, y FROM t) q
~ SELECT k, x, count(*), grouping(x) FROM t GROUP BY GROUPING SETS ((k, x), (k), ())
""".strip().splitlines()


@pytest.mark.parametrize("share", [pytest.param(4, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_views_of_general_numerics(share: int, session: Any, tmp_path: Path, seed: int, server: Any) -> None:
    """Tests one of every `share` queries, chosen by the seed."""
    chance = random.Random(seed)
    relation = Relation.of(COLUMNS, POOLS, server)
    compared(session, tmp_path, relation, chance.sample(QUERIES, len(QUERIES) // share), chance)
