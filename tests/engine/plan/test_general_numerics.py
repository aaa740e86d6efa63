"""Views over numerics without a declared precision: PostgreSQL's values, display scales and errors."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.lake.types import FLOAT8, GENERAL, INT2, INT4, INT8, TEXT, Type
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
SELECT k, sum(x) OVER (ORDER BY k, x, x::text, y, y::text, d ROWS 2 PRECEDING), ntile(2) OVER (ORDER BY x, x::text, y, y::text, d, k) FROM t
SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY y) FROM t WHERE abs(y) BETWEEN 1e-99 AND 1e9 GROUP BY k
~ SELECT k, percentile_disc(0.5) WITHIN GROUP (ORDER BY x) FROM t GROUP BY k
~ SELECT DISTINCT ON (k) k, x FROM t ORDER BY k, x DESC NULLS LAST
SELECT k, x::text, x || 'a', concat(x, y), to_jsonb(x), json_build_object('x', y) FROM t
SELECT k, jsonb_agg(x ORDER BY x, x::text), string_agg(x::text, ',' ORDER BY x, x::text) FROM t GROUP BY k
SELECT k, sum(x), avg(x), var_pop(y), stddev_samp(x), sum(x) FILTER (WHERE k > 1) FROM t GROUP BY k
SELECT sum(y), avg(x + y), variance(x) FROM t
~ SELECT k, sum(DISTINCT x), sum(DISTINCT y) FILTER (WHERE k > 1) FROM t GROUP BY k
SELECT k, avg(DISTINCT trim_scale(x)), var_pop(DISTINCT trim_scale(y)) FROM t GROUP BY k
SELECT k, sum(x) OVER (PARTITION BY k), avg(y) OVER (PARTITION BY k) FROM t
SELECT k, count(x), count(*) FILTER (WHERE x = y) FROM t GROUP BY k
SELECT ROW(x, y) = ROW(y, x), row_to_json(q) FROM (SELECT x, y FROM t) q
~ SELECT k, x, count(*), grouping(x) FROM t GROUP BY GROUPING SETS ((k, x), (k), ())
SELECT k, ARRAY[x, y, d, 1, 2.50], ARRAY[d / 3, x], ARRAY[d, 7], (ARRAY[x, y])[1], ARRAY[x, y] || d, array_append(ARRAY[x], y) FROM t
SELECT k, array_cat(ARRAY[x], ARRAY[d]), array_prepend(1.5, ARRAY[y, x]), cardinality(ARRAY[x, y]), trim_array(ARRAY[x, y], 1) FROM t
SELECT k, ARRAY[x, y] = ARRAY[y, x], ARRAY[x, 1] < ARRAY[y, 2], ARRAY[x, y] >= ARRAY[1, d], ARRAY[x] IS DISTINCT FROM ARRAY[y] FROM t
SELECT k, ARRAY[x, 1] @> ARRAY[y], ARRAY[y] <@ ARRAY[d, x], ARRAY[x, y] && ARRAY[d, 1], array_position(ARRAY[y, d], x) FROM t
SELECT k, array_positions(ARRAY[x, y, 1.50], 1.5), array_remove(ARRAY[x, y, d], 1), array_replace(ARRAY[x, y], 1, d) FROM t
SELECT k, width_bucket(x, ARRAY[0, 1.5, 10]), array_to_string(ARRAY[x, y], ','), ARRAY[x, y]::text, to_jsonb(ARRAY[x]) FROM t
SELECT k, u, '{1.10,2}'::numeric[], (x::text || ',1')::text FROM t, unnest(ARRAY[x, y, 1.000]) AS u
SELECT k, array_agg(x ORDER BY x, x::text), array_agg(y ORDER BY y DESC, y::text) FILTER (WHERE k > 1) FROM t GROUP BY k
SELECT k, array_agg(d ORDER BY d), array_agg(d / 7 ORDER BY d) FROM t GROUP BY k
SELECT k, array_agg(DISTINCT trim_scale(x)), array_agg(DISTINCT d / 2 ORDER BY d / 2 DESC) FROM t GROUP BY k
~ SELECT array_agg(DISTINCT x) FROM t
~ SELECT k, mode() WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY y DESC), mode() WITHIN GROUP (ORDER BY d) FROM t GROUP BY k
~ SELECT ARRAY[x], count(*) FROM t GROUP BY ARRAY[x]
~ SELECT DISTINCT ARRAY[x, d] FROM t
SELECT a.k, b.x FROM t a JOIN t b ON ARRAY[a.x] = ARRAY[b.y]
SELECT k, ARRAY(SELECT b.y FROM t b WHERE b.k = a.k ORDER BY b.y, b.y::text) FROM t a
SELECT k, array_fill(x, ARRAY[2])::text, array_fill(y, ARRAY[k, 2], ARRAY[0, 1])::text, (array_fill(d / 3, ARRAY[2], ARRAY[-1]))[-1] FROM t
SELECT k, rank() OVER (ORDER BY ARRAY[x, y]), first_value(ARRAY[x]) OVER (PARTITION BY k ORDER BY x, x::text) FROM t
~ WITH RECURSIVE r (v) AS (SELECT x FROM t WHERE k = 1 UNION SELECT y FROM t, r WHERE x = v) SELECT v FROM r
WITH RECURSIVE r (v) AS (SELECT trim_scale(x) FROM t UNION SELECT trim_scale(y + d) FROM t, r WHERE x = v AND k > 1) SELECT v FROM r
WITH RECURSIVE r (v, n) AS (SELECT d + 0, 1 FROM t UNION SELECT v / 3, n + 1 FROM r WHERE n < 4) SELECT v, n FROM r
SELECT k, to_char(x, '9990.00'), to_char(y, 'FM999G999D999'), to_char(x, '9.99EEEE'), to_char(y, '99V999') FROM t
SELECT k, to_char(d / 3, 'S0.0000000000000000000000') FROM t
SELECT k, to_char(x, 'RN') FROM t WHERE x BETWEEN -5000 AND 5000
SELECT k, s FROM t, generate_series(d, d + 2, 0.75) AS s
SELECT k, s FROM t, generate_series(CASE WHEN abs(x) < 1e30 THEN x END, x + 3) AS s
SELECT k, s FROM t, generate_series(k - 9223372036854775807, 9223372036854775807 - k, 4611686018427387904) AS s
SELECT k, s FROM t, generate_series(9223372036854775807 - k, -9223372036854775807, -9223372036854775807) AS s
SELECT k, factorial(20 * k), to_number(k || '.50', '99.999'), factorial(k) / 3 FROM t
SELECT k, greatest(ARRAY[x], ARRAY[y]), coalesce(ARRAY[x], ARRAY[1]), CASE WHEN k > 1 THEN ARRAY[x] ELSE ARRAY[1, d] END FROM t
SELECT k, sum(u) FROM (SELECT k, unnest(ARRAY[x, d]) AS u FROM t) q GROUP BY k
""".strip().splitlines()
TREE = "WITH RECURSIVE r (v) AS (SELECT x FROM t UNION ALL SELECT v / 2 FROM r WHERE v BETWEEN 1 AND 9)"
QUERIES += [f"{TREE} SEARCH {how} FIRST BY v SET o SELECT v, rank() OVER (ORDER BY o) FROM r" for how in ("DEPTH", "BREADTH")]
JOINED = "WITH RECURSIVE r (v, n) AS (SELECT x, 1 FROM t UNION ALL SELECT y, n + 1 FROM t, r WHERE x = v AND n < 3)"
QUERIES.append(f"{JOINED} CYCLE v SET c USING p SELECT v, n, c FROM r")


DECLARED = {
    "k": INT4, "a": Type("numeric", (15, 2)), "b": Type("numeric", (6, 4)), "e": Type("numeric", (38, 10)), "i": INT2, "j": INT8,
    "f": FLOAT8, "s": TEXT,
}  # fmt: skip
DECLARED_POOLS: dict[str, tuple[str | None, ...]] = {
    "k": ("1", "2", "3"),
    "a": (None, "0.00", "1.00", "1.50", "-1.00", "99.95", "3.33", "9999999999999.99", "0.01"),
    "b": (None, "0.0500", "1.0000", "-2.5000", "0.0001", "99.9999"),
    "e": (None, "0.0000000000", "1.5000000000", "1234567890123456789012345678.0123456789", "-0.0000000001"),
    "i": (None, "0", "1", "-3", "7", "32767"),
    "j": (None, "0", "1", "2", "-7", "9223372036854775807"),
    "f": (None, "0.1", "2.5", "1e15", "-3e-7"),
    "s": (None, "1.10", "7", "1e3", "-0.005", "NaN"),
}
# results whose digits or display scale differ from row to row
DECLARED_QUERIES = """
SELECT k, a / nullif(b, 0), a / 3, 1 / nullif(i, 0)::numeric, i / 7.0, j / 3.0, a / nullif(j, 0), e / nullif(a, 0) FROM t
SELECT k, a, b FROM t WHERE a / 3 > 0.5 AND b / 7 < 0.1
SELECT k, a / 2 = 0.75, a / 2 > b, nullif(a / 2, 0.75), a / 2 IN (0.5, 0.75), (a / 2, k) < (b, 2), a / 2 IS DISTINCT FROM 0.5 FROM t
SELECT k, avg(a), avg(b), avg(e), avg(i), avg(j), avg(a * b), avg(a / 3) FROM t GROUP BY k
SELECT avg(i), avg(a) FILTER (WHERE k > 1), avg(DISTINCT i), avg(DISTINCT a), count(*) FROM t
SELECT k, var_pop(a), var_samp(b), stddev_pop(i), stddev_samp(j), variance(a), stddev(e) FROM t GROUP BY k
SELECT variance(DISTINCT b), stddev(DISTINCT i), var_pop(i) FILTER (WHERE k = 1) FROM t
SELECT k, sum(DISTINCT a / 3), avg(DISTINCT a / 3) FILTER (WHERE k > 1), stddev(DISTINCT b / 2) FROM t GROUP BY k
SELECT k, sqrt(abs(a)), exp(b / 100), ln(abs(a) + 1), log(abs(a) + 1), log(2.0, abs(b) + 1), power(abs(b), 1.5), abs(b) ^ 2.5 FROM t
SELECT k, coalesce(a, 0), coalesce(a, b, 1), CASE WHEN i > 0 THEN a WHEN i < 0 THEN b ELSE 0 END, greatest(a, b), least(a, i, 0.005) FROM t
SELECT k, coalesce(a, '0.005'), CASE k WHEN 1 THEN a ELSE '7' END, a + '0.1234', a = '1.500', '5' / nullif(a, 0) FROM t
SELECT a FROM t WHERE k = 1 UNION ALL SELECT b FROM t WHERE k = 2
~ SELECT a FROM t WHERE k = 1 UNION SELECT b FROM t
~ SELECT a FROM t EXCEPT SELECT b / 2 FROM t
SELECT k, v.x FROM t, (VALUES (1), (2.50)) AS v (x)
SELECT k, a * b * e, e * e, e * e * j, e + e, sum(e * e), avg(e * e) FROM t GROUP BY k, a, b, e, j
SELECT k, round(a / 3, 2), round(a / 3, i % 5), trunc(a / 7, 3), ceil(a / 7), floor(a / 7), abs(a / 7), sign(a / 7), - (a / 7) FROM t
SELECT k, f::numeric, f::numeric / 3, s::numeric, s::numeric * a, (f * 2)::numeric(20, 3) FROM t
SELECT k, trim_scale(a), scale(a / 3), min_scale(a / 2), (a / 3)::text, 'x' || a / 3, (a / 3)::float8, (a / 3)::numeric(20, 4) FROM t
SELECT k, (a / 1e9)::int, sum(a / 3), max(a / 3), min(a / 3), count(DISTINCT a / 2), sum(i / 2.0) FROM t GROUP BY k, a
~ SELECT a / 2, count(*) FROM t GROUP BY a / 2
SELECT k, a / 3, rank() OVER (PARTITION BY k ORDER BY a / 3), avg(a) OVER (PARTITION BY k), avg(i) OVER () FROM t
SELECT x.k, x.a, y.b FROM t x JOIN t y ON x.a / 2 = y.b * 2 AND x.k = y.k
SELECT x.k, x.a FROM t x WHERE x.a > (SELECT avg(y.a) FROM t y WHERE y.k = x.k)
SELECT x.k, avg(y.a), sum(y.a) / count(*), count(*) FROM t x JOIN t y ON x.k = y.k GROUP BY x.k
SELECT k, sum(CASE WHEN i > 0 THEN a ELSE 0 END), coalesce(sum(a), 0), 100.0 * sum(i) / nullif(count(*), 0) FROM t GROUP BY k
SELECT k, sum(a) / sum(b), sum(a) / count(*), min(a) * 1.10, avg(a) * 2 - 1, avg(a) > 5 FROM t GROUP BY k HAVING sum(b) <> 0
SELECT k, to_jsonb(a / 3), json_build_object('x', a / 3), jsonb_agg(a / 3 ORDER BY a, b, e, i, j) FROM t GROUP BY k, a
WITH RECURSIVE r (n, x) AS (SELECT k, a / 2 FROM t UNION ALL SELECT n + 1, x / 3 + 0.5 FROM r WHERE n < 5) SELECT n, x FROM r
WITH RECURSIVE r (n, x) AS (SELECT k, 1 + b FROM t UNION ALL SELECT n + 1, x * x * x FROM r WHERE n < 4) SELECT n, sum(x) FROM r GROUP BY n
SELECT k, array_agg(a ORDER BY a), array_agg(a / 2 ORDER BY a), array_agg((a / 2)::numeric(20, 4) ORDER BY a) FROM t GROUP BY k
SELECT k, ARRAY[a, b], ARRAY[a, i, j], ARRAY[a / 3, 1], array_agg(b / 3 ORDER BY b) FILTER (WHERE i > 0) FROM t GROUP BY k, a, b, i, j
""".strip().splitlines()


@pytest.mark.parametrize("share", [pytest.param(4, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_views_of_declared_numerics(share: int, session: Any, tmp_path: Path, seed: int, postgres: str) -> None:
    chance = random.Random(seed)
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute(f"CREATE TEMPORARY TABLE t ({', '.join(f'{name} {type}' for name, type in DECLARED.items())})")
        relation = Relation.of(DECLARED, DECLARED_POOLS, server)
        compared(session, tmp_path, relation, chance.sample(DECLARED_QUERIES, len(DECLARED_QUERIES) // share), chance)


@pytest.mark.parametrize("share", [pytest.param(4, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_views_of_general_numerics(share: int, session: Any, tmp_path: Path, seed: int, server: Any) -> None:
    """Tests one of every `share` queries, chosen by the seed."""
    chance = random.Random(seed)
    relation = Relation.of(COLUMNS, POOLS, server)
    compared(session, tmp_path, relation, chance.sample(QUERIES, len(QUERIES) // share), chance)
