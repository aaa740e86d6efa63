"""Views of time with time zone, compared with PostgreSQL."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.types import INT4, INTERVAL, TIME, Type
from tests.engine.plan.comparison import Relation, compared

pytestmark = pytest.mark.spark

COLUMNS = {
    "k": INT4,
    "t": Type("timetz"),
    "p": Type("timetz", (2,)),
    "l": TIME,
    "i": INTERVAL,
    "a": Type("timetz", is_array=True),
}
POOLS: dict[str, list[str | None]] = {
    "k": ["1", "2", "3"],
    "t": [None, "00:00+00", "01:00+01", "12:34:56.789-03:30", "24:00-15:59:59", "23:59:59.999999+14", "12:34:56.789Z"],
    "p": [None, "00:00+00", "12:34:56.78-03:30", "10:00+02", "08:00Z"],
    "l": [None, "00:00", "12:34:56.789", "08:00"],
    "i": [None, "1 day", "01:30", "-25:00:00.5", "1 mon"],
    "a": [None, "{}", "{10:00+02,NULL}", "{08:00Z,10:00+02}"],
}
QUERIES = """
SELECT t, p, a, t::text, a::text, concat(t, p), t = p, t < p, t > l, t = '01:00+01' FROM t
SELECT k, min(t), max(t), count(DISTINCT t), min(p) FROM t GROUP BY k
SELECT t, count(*) FROM t GROUP BY t
SELECT DISTINCT t, p FROM t
SELECT t FROM t WHERE k = 1 UNION SELECT p FROM t WHERE k = 2
SELECT count(*) FROM t x JOIN t y ON x.t = y.p AND x.k < y.k
SELECT k, t, rank() OVER (PARTITION BY k ORDER BY t), lag(t) OVER (PARTITION BY k ORDER BY t DESC, p, l, i, a) FROM t
SELECT * FROM (SELECT t FROM t ORDER BY t LIMIT 5) q
SELECT t + i, i + t, t - i FROM t
SELECT (date '2024-02-29' + k) + t, t + date '1969-12-31', t AT TIME ZONE interval '-03:30', timezone(interval '5 hours', p) FROM t
SELECT i::interval day, i::interval hour to minute, i::interval second(1), i::interval year, '1 2'::interval day to hour FROM t
SELECT t::time, l::timetz, t::timetz(1), p::timetz(0) FROM t
SELECT (date '2024-02-29' + t)::timetz, t::text::timetz FROM t
SELECT extract(epoch FROM t), extract(hour FROM t), extract(second FROM t), date_part('timezone_minute', t) FROM t
SELECT date_part('epoch', t), date_part('second', t), date_part('milliseconds', t), extract(timezone_hour FROM p) FROM t
SELECT k, jsonb_build_object('t', t, 'a', a), to_json(t) FROM t
SELECT unnest(a) AS u, count(*) FROM t GROUP BY u
SELECT k, t IN ('01:00+01', '08:00Z'), t = ANY (a), t BETWEEN '00:00+00' AND '12:00+00', t IS DISTINCT FROM p FROM t
SELECT greatest(t, p), least(t, l), coalesce(t, p), nullif(t, p), CASE WHEN k > 1 THEN t ELSE l END FROM t
SELECT k, array_agg(t ORDER BY t), string_agg(t::text, ',' ORDER BY t) FROM t GROUP BY k
SELECT (t, p) OVERLAPS (p, t) FROM t WHERE t IS NOT NULL AND p IS NOT NULL
""".strip().splitlines()


@pytest.mark.parametrize("share", [pytest.param(4, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_views_and_queries(share: int, session: Any, tmp_path: Path, seed: int, server: Any) -> None:
    """Tests one of every `share` queries, chosen by the seed."""
    chance = random.Random(seed)
    server.execute(
        "SET TimeZone = 'UTC'; DROP TABLE IF EXISTS t;"
        " CREATE TEMPORARY TABLE t (k int, t timetz, p timetz(2), l time, i interval, a timetz[])"
    )
    relation = Relation.of(COLUMNS, POOLS, server)
    compared(session, tmp_path, relation, chance.sample(QUERIES, len(QUERIES) // share), chance)
