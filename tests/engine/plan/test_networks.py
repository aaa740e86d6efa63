"""Views of inet, cidr and macaddr, compared with PostgreSQL."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.types import INT4, Type
from tests.engine.plan.comparison import Relation, compared
from tests.sql.samples import SAMPLES

pytestmark = pytest.mark.spark

COLUMNS = {"k": INT4, "i": Type("inet"), "n": Type("cidr"), "m": Type("macaddr"), "o": Type("macaddr8"), "a": Type("inet", is_array=True)}
POOLS: dict[str, list[str | None]] = {
    "k": ["1", "2", "3"],
    **{c: SAMPLES[t] for c, t in (("i", "inet"), ("n", "cidr"), ("m", "macaddr"), ("o", "macaddr8"))},
    "a": [None, "{}", "{10.0.0.1,NULL}", "{192.168.1.5,10.0.0.0/8}", "{::1}"],
}
QUERIES = """
SELECT i, n, m, o, a, i::text, n::text, a::text, concat(i, n), i << n, i >>= n, i && n, i = n, i < n FROM t
SELECT k, min(i), max(i), count(DISTINCT i), count(DISTINCT n), min(n) FROM t GROUP BY k
SELECT network(i) AS x, count(*), array_agg(i ORDER BY i, k), string_agg(host(i), ',' ORDER BY i) FROM t GROUP BY network(i)
SELECT DISTINCT n, m FROM t
SELECT i FROM t WHERE k = 1 UNION SELECT n FROM t WHERE k = 2
SELECT i FROM t WHERE k = 1 EXCEPT SELECT n FROM t WHERE k = 2
SELECT count(*) FROM t l JOIN t r ON l.i = r.n AND l.k < r.k
SELECT l.k, r.k, l.n, r.i FROM t l LEFT JOIN t r ON l.n >>= r.i AND l.k = r.k
SELECT k, i, rank() OVER (PARTITION BY k ORDER BY i) FROM t
SELECT k, m, lag(m) OVER (PARTITION BY k ORDER BY m DESC) FROM t
SELECT * FROM (SELECT i FROM t ORDER BY i LIMIT 5) q
SELECT DISTINCT ON (n) n FROM t ORDER BY n
SELECT k, i + k, i - 1, ~ i, i & (i - 1), i | '0.0.0.255', i - inet '10.0.0.0' FROM t WHERE i << '128.0.0.0/1' AND i <> '255.255.255.255'
SELECT abbrev(i), abbrev(n), broadcast(i), hostmask(i), netmask(n), masklen(i), set_masklen(i, 24), set_masklen(n, 20), text(n) FROM t
SELECT inet_same_family(i, n), CASE WHEN inet_same_family(i, n) THEN inet_merge(i, n) END, coalesce(i, n), greatest(i, n), i::cidr FROM t
SELECT ~ m, m & '00:00:00:ff:ff:ff', m | '80:00:00:00:00:00', trunc(m), m::macaddr8 FROM t
SELECT macaddr8_set7bit(o), trunc(o), o > '08:00:2b:ff:fe:01:02:03' FROM t
SELECT k, jsonb_build_object('i', i, 'n', n, 'm', m, 'o', o, 'a', a), to_json(i), to_jsonb(n) FROM t
SELECT k, jsonb_agg(i ORDER BY i), json_agg(m ORDER BY m), jsonb_object_agg(k, n ORDER BY n) FROM t GROUP BY k
SELECT unnest(a) AS u, count(*) FROM t GROUP BY u
SELECT row_to_json(q), q::text FROM (SELECT k, i, m, a FROM t) q
SELECT k, i IN ('10.0.0.0/8', '::1'), i = ANY (a), i BETWEEN '10.0.0.0' AND '192.168.255.255', i IS DISTINCT FROM n FROM t
""".strip().splitlines()


@pytest.mark.parametrize("share", [pytest.param(4, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_views_and_queries(share: int, session: Any, tmp_path: Path, seed: int, server: Any) -> None:
    """Tests one of every `share` queries, chosen by the seed."""
    chance = random.Random(seed)
    server.execute("DROP TABLE IF EXISTS t; CREATE TEMPORARY TABLE t (k int, i inet, n cidr, m macaddr, o macaddr8, a inet[])")
    relation = Relation.of(COLUMNS, POOLS, server)
    compared(session, tmp_path, relation, chance.sample(QUERIES, len(QUERIES) // share), chance)
