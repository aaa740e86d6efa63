"""Views of ranges and multiranges, compared with PostgreSQL."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.ranges import MULTIRANGE_OF, RANGES
from tailgate.lake.types import GENERAL, INT4, Type
from tests.engine.plan.comparison import Relation, compared
from tests.sql.generated import random_value
from tests.sql.samples import SAMPLES

pytestmark = pytest.mark.spark

RANGE_COLUMNS = dict(zip("ilndtz", RANGES, strict=True))  # with their types
NAMES = RANGE_COLUMNS | {f"{c}m": MULTIRANGE_OF[name] for c, name in RANGE_COLUMNS.items()}
COLUMNS = {"k": INT4, "g": GENERAL, **{c: Type(name) for c, name in NAMES.items()}, "a": Type("int4range", is_array=True)}
ARRAYS: list[str | None] = [None, "{}", '{"[1,2)",NULL}', '{empty,"[1,5)"}']
QUERIES = """
SELECT i, l, n, d, t, z, a, i::text, n::text, z::text, a::text, concat(i, d) FROM t
SELECT i, count(*), array_agg(k ORDER BY k), count(DISTINCT d) FROM t GROUP BY i
SELECT n = numrange(1, 5), n < '[1.0,5.00)', n IS DISTINCT FROM '[1,5]', n IN ('[1,5)', 'empty'), n BETWEEN '(,1)' AND '(5,)' FROM t
SELECT count(*), min(k) FROM t GROUP BY n
SELECT count(*) FROM (SELECT n FROM t WHERE k = 1 UNION SELECT n FROM t WHERE k = 2) q
SELECT DISTINCT d, i FROM t
SELECT i FROM t WHERE k = 1 EXCEPT SELECT i FROM t WHERE k = 2
SELECT count(*) FROM t x JOIN t y ON x.n = y.n AND x.k < y.k
SELECT x.k, y.k, x.i, y.i FROM t x LEFT JOIN t y ON x.i && y.i AND x.k = y.k
SELECT k, i, rank() OVER (PARTITION BY k ORDER BY i), dense_rank() OVER (PARTITION BY k ORDER BY d DESC), max(k) OVER (ORDER BY n) FROM t
SELECT * FROM (SELECT t FROM t ORDER BY t LIMIT 5) q
SELECT DISTINCT ON (d) d FROM t ORDER BY d
SELECT lower(i), upper(i), lower(l), upper(d)::text, lower(t)::text, upper(z)::text, isempty(n) FROM t
SELECT lower(n), upper(n), lower(n) = 1.5 FROM t WHERE n && '(-1e40,1e40)'
SELECT lower_inc(n), upper_inc(n), lower_inf(n), upper_inf(d), lower_inc(t), upper_inf(z) FROM t
SELECT i @> k, k <@ i, n @> 1.5, n @> g, d @> date '2024-02-25', t @> timestamp '2024-02-25 12:00', i @> '[2,3)', i <@ '[0,6)' FROM t
SELECT i << '[4,6)', i >> '[4,6)', i &< '[4,6)', i &> '[4,6)', i -|- '[5,6)', d -|- '[2024-02-25,2024-02-26)', n -|- '(1,5]' FROM t
SELECT i * '[2,6)', n * numrange(0, 3), d * '[2024-02-22,2024-02-25]', range_merge(l, '[7,9)'), range_merge(z, 'empty') FROM t
SELECT i + '[0,9)', i - '(,4)' FROM t WHERE i && '[0,9)'
SELECT n - '[2,)', t - '(,2024-02-24]' FROM t
SELECT int4range(k, k + 3), int8range(k, NULL, '()'), numrange(k, k + 1.50, '[]'), daterange('2024-01-01', '2024-01-09', '(]') FROM t
SELECT tsrange(lower(t), upper(t), '[]'), tstzrange(NULL, upper(z), '(]'), numrange(lower(n), NULL), numrange(NULL, g) FROM t
SELECT i::text::int4range, d::text::daterange, n::text::numrange, t::text::tsrange, z::varchar::tstzrange FROM t
SELECT k, jsonb_build_object('i', i, 'n', n, 't', t, 'a', a), to_json(d), to_jsonb(z) FROM t
SELECT k, jsonb_agg(i ORDER BY i, k), string_agg(d::text, ',' ORDER BY d, k) FROM t GROUP BY k
SELECT unnest(a) AS u, count(*) FROM t GROUP BY u
SELECT row_to_json(q), q::text FROM (SELECT k, i, n, a FROM t) q
SELECT coalesce(i, '[1,2)'), greatest(i, '[2,3)'), nullif(d, 'empty'), i = ANY (a), CASE WHEN k > 1 THEN t ELSE 'empty' END FROM t
SELECT im, lm, nm, dm, tm, zm, im::text, nm::text, zm::text, concat(im, dm) FROM t
SELECT im, count(*), array_agg(k ORDER BY k), count(DISTINCT dm) FROM t GROUP BY im
SELECT nm = '{[1,5)}', nm < '{[1.0,5.00)}', nm IS DISTINCT FROM '{[1,5]}', nm IN ('{[1,5)}', '{}'), nm BETWEEN '{(,1)}' AND '{(5,)}' FROM t
SELECT count(*), min(k) FROM t GROUP BY nm
SELECT DISTINCT dm, im FROM t
SELECT count(*) FROM t x JOIN t y ON x.nm = y.nm AND x.k < y.k
SELECT x.k, y.k, x.im, y.i FROM t x LEFT JOIN t y ON x.im && y.i AND x.k = y.k
SELECT k, im, rank() OVER (PARTITION BY k ORDER BY im), dense_rank() OVER (ORDER BY dm DESC), max(k) OVER (ORDER BY nm) FROM t
SELECT lower(im), upper(lm), lower(nm), upper(dm)::text, lower(tm)::text, upper(zm)::text, isempty(nm) FROM t
SELECT lower_inc(nm), upper_inc(nm), lower_inf(im), upper_inf(dm), lower_inc(tm), upper_inf(zm), range_merge(im), range_merge(nm) FROM t
SELECT im @> k, k <@ im, nm @> 1.5, nm @> g, dm @> date '2024-02-25', tm @> timestamp '2024-02-25 12:00' FROM t
SELECT im @> i, i <@ im, i @> im, im <@ i, im @> '{[2,3),[4,5)}'::int4multirange, nm @> n, n @> nm, zm <@ '{(,)}'::tstzmultirange FROM t
SELECT im && i, i && im, im && '{(,0),[4,5)}'::int4multirange, nm && n, dm && d, tm && t FROM t
SELECT im << i, i << im, im >> i, i >> im, im << '{[4,6)}'::int4multirange FROM t
SELECT im &< i, i &< im, im &> i, i &> im, nm &> '{[2,)}'::nummultirange FROM t
SELECT im -|- i, i -|- im, im -|- '{[5,6),[7,8)}'::int4multirange, nm -|- n, dm -|- d FROM t
SELECT im + '{[2,6)}', im * '{[2,6),[8,)}', im - '{(,0),[3,5)}', nm + '{(1.5,2]}', nm * '{[0,1.50],(3,)}', nm - '{[1,1.5),[2,2]}' FROM t
SELECT dm - '{[2024-02-22,2024-02-25]}', tm * '{(,2024-02-24]}', zm + '{[2024-02-24Z,2024-02-25Z)}', lm - lm, dm - multirange(d) FROM t
SELECT multirange(i), i::int4multirange, int4multirange(i, '[2,6)', int4range(k, k + 1)) FROM t WHERE i IS NOT NULL
SELECT nummultirange(), datemultirange(d), tsmultirange(VARIADIC ARRAY[t, t]), int8multirange() FROM t WHERE t IS NOT NULL
SELECT unnest(im) AS u, count(*) FROM t GROUP BY u
SELECT k, u FROM t, unnest(nm) AS u
SELECT k, range_agg(i), range_agg(d), range_intersect_agg(i), range_agg(im), range_intersect_agg(im) FROM t GROUP BY k
SELECT range_agg(t) FILTER (WHERE k > 1), range_agg(DISTINCT d), range_intersect_agg(tm) FILTER (WHERE k = 1) FROM t
SELECT range_agg(z) FILTER (WHERE k > 5), range_agg(n) @> 1.5, range_intersect_agg(nm) <@ range_agg(nm) FROM t
SELECT k, i, range_agg(i) OVER (PARTITION BY k ORDER BY i), range_intersect_agg(im) OVER (PARTITION BY k) FROM t
SELECT im::text::int4multirange, dm::text::datemultirange, nm::text::nummultirange, tm::text::tsmultirange FROM t
SELECT zm::varchar::tstzmultirange FROM t
SELECT k, jsonb_build_object('i', im, 'n', nm, 't', tm), to_json(dm), to_jsonb(zm) FROM t
SELECT coalesce(im, '{[1,2)}'), greatest(im, '{[2,3)}'), nullif(dm, '{}'), CASE WHEN k > 1 THEN tm ELSE '{}' END FROM t
""".strip().splitlines()


@pytest.mark.parametrize("share", [pytest.param(4, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_views_and_queries(share: int, session: Any, tmp_path: Path, seed: int, server: Any) -> None:
    """Tests one of every `share` queries, chosen by the seed."""
    chance = random.Random(seed)
    columns = ", ".join(f"{c} {name}" for c, name in NAMES.items())
    server.execute(f"DROP TABLE IF EXISTS t; CREATE TEMPORARY TABLE t (k int, g numeric, {columns}, a int4range[])")
    values = {c: [*SAMPLES[name], *(random_value(name, chance) for _ in range(8))] for c, name in NAMES.items()}
    relation = Relation.of(COLUMNS, {"k": ["1", "2", "3"], "g": ["1.50", "NaN", "1e40", None], **values, "a": ARRAYS}, server)
    compared(session, tmp_path, relation, chance.sample(QUERIES, len(QUERIES) // share), chance)
