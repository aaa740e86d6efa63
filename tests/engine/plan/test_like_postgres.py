"""Values that are equal but look different, and aggregates of them, compared with PostgreSQL."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.types import FLOAT8, INT4, Type
from tests.engine.plan.comparison import Relation, compared
from tests.sql.samples import SAMPLES

pytestmark = pytest.mark.spark

COLUMNS = {
    "k": INT4,
    "i": Type("interval"),
    "c": Type("bpchar", (4,)),
    "a": Type("int4", is_array=True),
    "j": Type("jsonb"),
    "js": Type("jsonb", is_array=True),
    "x": FLOAT8,
}
JSON = [
    *[
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "1.0",
        "1.00",
        "-1",
        "-1.5",
        "-10",
        "10",
        "1e2",
        "100",
        "0.1",
        "0.10",
        "12345678901234567890.5",
    ],
    *[
        "12345678901234567890.5",
        '""',
        '"a"',
        '"ab"',
        '"b"',
        '"é"',
        '"😀"',
        "[]",
        "[[]]",
        "[1]",
        "[1.0]",
        "[2]",
        "[1, 2]",
        "[null]",
        "[[1]]",
        '["a"]',
        "{}",
        "[{}]",
    ],
    *['{"a": 1}', '{"a": 1.0}', '{"b": 1}', '{"aa": 1}', '{"a": 1, "b": 2}', '{"a": 1, "c": 0}', '{"a": [1.0]}', '{"a": [1]}'],
]
POOLS: dict[str, list[str | None]] = {
    "k": ["1", "2", "3"],
    "i": [*SAMPLES["interval"], "1 mon -1 day", "29 days 24:00:00", "-1 mon 31 days", "00:00:00.000001"],
    "c": [None, "", "a", "a ", "ab", "ab  ", "b"],
    "a": SAMPLES["int4[]"],
    "j": [None, *JSON],
    "js": [None, "{}", "{1,1.0}", "{1.0,1}", "{1}", "{1.00}", "{NULL}", '{"[1]"}', '{"[1.0]"}'],
    "x": [None, "0", "-0", "1.5", "NaN"],
}
# `~`: any of several equal values may be returned
QUERIES = """
SELECT k, sum(i), avg(i), count(i) FROM t GROUP BY k
SELECT sum(i), avg(i) FILTER (WHERE k > 1) FROM t
~ SELECT k, min(i), max(i), max(DISTINCT i), min(c), max(c) FROM t GROUP BY k
~ SELECT j, count(*) FROM t GROUP BY j
~ SELECT js, i, count(*) FROM t GROUP BY js, i
~ SELECT DISTINCT i, j FROM t
SELECT k, count(DISTINCT j), count(DISTINCT i), count(DISTINCT js) FROM t GROUP BY k
SELECT k, array_agg(j ORDER BY j, j::text), array_agg(i ORDER BY i DESC, i::text) FROM t GROUP BY k
SELECT j, rank() OVER (PARTITION BY k ORDER BY j), lag(j) OVER (PARTITION BY k ORDER BY j DESC, j::text) FROM t
SELECT k, dense_rank() OVER (PARTITION BY j ORDER BY i) FROM t
~ SELECT * FROM (SELECT j FROM t ORDER BY j LIMIT 5) q
~ SELECT DISTINCT ON (j) j FROM t ORDER BY j
~ SELECT j FROM t WHERE k = 1 UNION SELECT j FROM t WHERE k = 2
~ SELECT i, j FROM t WHERE k = 1 EXCEPT SELECT i, j FROM t WHERE k = 2
~ SELECT js FROM t WHERE k = 1 INTERSECT SELECT js FROM t WHERE k = 2
SELECT count(*) FROM t a JOIN t b ON a.j = b.j AND a.k < b.k
SELECT count(*) FROM t a LEFT JOIN t b ON a.i = b.i AND a.js = b.js
SELECT count(*) FROM t a WHERE j IN (SELECT b.j FROM t b WHERE b.k = 2)
SELECT k, j < '[1]', j >= '{"a": 1}', j <> '1', greatest(j, '10', '"a"'), least(i, '1 day'), greatest(a, '{2}') FROM t
SELECT k, js < '{1,2}', js = '{1.0}', js IS DISTINCT FROM '{1}', i IS DISTINCT FROM '1 day' FROM t
SELECT k, unnest(a), generate_series(1, k) * 2, jsonb_object_keys(CASE WHEN j @> '{}' THEN j ELSE '{"z": 1}' END) FROM t
SELECT unnest(a) AS u, count(*), sum(k) FROM t GROUP BY u
SELECT k, unnest(array_agg(k)) AS u, generate_series(1, 2) AS g FROM t GROUP BY k
SELECT k, regexp_split_to_table(c, 'a'), regexp_matches(c, '([ab])', 'g'), generate_subscripts(a, 1) FROM t
SELECT k, string_to_table(c, 'a') FROM t
SELECT k, min(a), max(a) FROM t GROUP BY k
SELECT k, sum(i) OVER (PARTITION BY k), avg(i) OVER (PARTITION BY k) FROM t
~ SELECT k, max(i) OVER (PARTITION BY k) FROM t
SELECT row_to_json(q), to_jsonb(q), q::text, (q).x, q IS NULL, q IS NOT NULL, ROW(q.k, q.*)::text FROM (SELECT k, i, j, x, a FROM t) q
SELECT k, count(DISTINCT (i, j, x)), jsonb_agg(ROW(k, x) ORDER BY ROW(c, i, j, x, a)) FROM t GROUP BY k
SELECT k, percentile_cont(ARRAY[0.5, 1]) WITHIN GROUP (ORDER BY -k), percentile_disc(ARRAY[0]) WITHIN GROUP (ORDER BY k) FROM t GROUP BY k
SELECT k, (jsonb_each(CASE WHEN j @> '{}' THEN j ELSE '{"z": 1}' END)).* FROM t
SELECT k, unnest(regexp_matches(c, '([ab])(.)', 'g')), generate_series(1, generate_series(1, k)) AS g FROM t
SELECT count(*), rank() OVER (ORDER BY (j, i) DESC) FROM (SELECT j, i FROM t) q GROUP BY q, (j, i)
SELECT l.k, row_to_json(r), count(r.k) OVER (PARTITION BY l) FROM t l LEFT JOIN (SELECT k, a, x FROM t) r ON l.k = r.k AND r.k > 1
SELECT k, (SELECT row_to_json(q) FROM (SELECT t.a, t.x) q), row_to_json((SELECT q FROM (SELECT t.a, t.k) q)) FROM t
SELECT l.k, l = r, l < r, l.x IS DISTINCT FROM r.x, ROW(l.c, l.i) >= ROW(r.c, r.i) FROM t l, (SELECT * FROM t WHERE k = 2) r
""".strip().splitlines()


OBJECTS = [None, '{"a": 1}', ' {"b" :[1,  2], "a": null}', '{"a": 1, "a": "x"}', "{}", '{"a": {"b": 1.50}, "é": "\\u00e4"}']
JSON_COLUMNS = {"k": INT4, "t": Type("json"), "a": Type("text", is_array=True), "x": FLOAT8}
JSON_POOLS: dict[str, list[str | None]] = {
    "k": ["1", "2", "3"], "t": OBJECTS, "a": [None, "{}", '{a,"b c",NULL}'], "x": [None, "1.5", "NaN", "1e20"],
}  # fmt: skip
JSON_QUERIES = """
SELECT t, t -> 'a', t ->> 'a', t #> '{b,1}', t #>> '{a,b}', json_typeof(t -> 'a'), json_strip_nulls(t), t::jsonb, t::text FROM t
SELECT k, json_build_object('k', k, 't', t, 'x', x, 'a', a), json_build_array(t, x, NULL), to_json(a), to_json(x) FROM t
SELECT k, json_agg(t ORDER BY k, t::text), json_object_agg(k, t ORDER BY t::text) FROM t GROUP BY k
SELECT k, e.key, e.value, json_object_keys(t) FROM t, json_each(t) e
SELECT k, e.* FROM t, json_each_text(t) e
SELECT k, json_array_elements(CASE WHEN k = 1 THEN t -> 'b' END), json_array_elements_text(json_build_array(k, a)) FROM t
SELECT count(*), jsonb_agg(t::jsonb ORDER BY t::text) FROM t GROUP BY t::text
SELECT jsonb_build_object('t', t), to_jsonb(x)::json FROM t
""".strip().splitlines()


def test_json(session: Any, tmp_path: Path, seed: int, server: Any) -> None:
    server.execute("DROP TABLE IF EXISTS t; CREATE TEMPORARY TABLE t (k int, t json, a text[], x float8)")
    relation = Relation(JSON_COLUMNS, lambda c: tuple(c.choice(JSON_POOLS[n]) for n in JSON_COLUMNS), server)
    compared(session, tmp_path, relation, JSON_QUERIES, random.Random(seed))


@pytest.mark.parametrize("share", [pytest.param(4, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_views_and_queries(share: int, session: Any, tmp_path: Path, seed: int, server: Any) -> None:
    """Tests one of every `share` queries, chosen by the seed."""
    chance = random.Random(seed)
    relation = Relation(COLUMNS, lambda c: tuple(c.choice(POOLS[n]) for n in COLUMNS), server)
    compared(session, tmp_path, relation, chance.sample(QUERIES, len(QUERIES) // share), chance)
