"""Views of functions with a column definition list, compared with PostgreSQL."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.types import INT4, JSON, JSONB, TEXT
from tests.engine.plan.comparison import Relation, compared

pytestmark = pytest.mark.spark

COLUMNS = {"k": INT4, "j": JSONB, "t": JSON, "w": TEXT.array()}
POOLS: dict[str, list[str | None]] = {
    "k": ["1", "2", "3"],
    "j": [None, "[]", '[{"a": 1, "b": "x"}]', '[{"a": 2, "c": ["p", null]}, {"b": null, "d": {"n": [1, 2]}}]', '[{"c": "{q}", "e": 1.50}]'],
    "t": ["{}", '{"a": 1, "b": true}', '{"a":  "5", "b": [1,  2], "c": [3], "d": [1]}', '{"c": null, "e": 2}'],
    "w": [None, "{}", "{a,NULL}", "{x,y}"],
}
QUERIES = """
SELECT k, x.a, x.b, x.c, x.d, x.e FROM t, jsonb_to_recordset(j) AS x (a int, b text, c text[], d jsonb, e float8)
SELECT k, x.a FROM t LEFT JOIN LATERAL jsonb_to_recordset(j) AS x (a int) ON true
SELECT k, x.a, x.b, x.c, x.d::text, x.e FROM t, json_to_record(t.t) AS x (a int, b text, c int[], d json, e numeric(5, 2))
SELECT x.b, count(*), sum(x.a) FROM t, jsonb_to_recordset(j) AS x (a bigint, b text) GROUP BY x.b
SELECT k, concat(VARIADIC w), concat_ws('-', VARIADIC w), jsonb_build_array(VARIADIC w), format('%s', VARIADIC w || ARRAY['z']) FROM t
SELECT k, jsonb_extract_path_text(j, VARIADIC ARRAY['0', 'b']), json_extract_path(t, VARIADIC ARRAY['b'])::text FROM t
SELECT k, make_interval(days => k) FROM t
SELECT k, num_nulls(VARIADIC w), num_nonnulls(VARIADIC w), jsonb_build_object(VARIADIC array_remove(w || w, NULL)) FROM t
SELECT k, json_build_object(VARIADIC ARRAY['a', k::text])::text, jsonb_build_object(VARIADIC ARRAY[k, k + 1]) FROM t
SELECT k, jsonb_build_object(VARIADIC ARRAY[k > 1, true]), jsonb_build_object(VARIADIC ARRAY[k * 1.50, 2]) FROM t
SELECT r.k, r.j, r.w FROM t AS x, jsonb_populate_record(x, jsonb_build_object('k', k + 1, 'j', x.w)) AS r
SELECT k, (jsonb_populate_record(x, jsonb_build_object('w', ARRAY['n']))).w, (json_populate_record(x, '{"k": 9}')).k AS n FROM t AS x
""".strip().splitlines()


def test_views_and_queries(session: Any, tmp_path: Path, seed: int, server: Any) -> None:
    chance = random.Random(seed)
    server.execute("DROP TABLE IF EXISTS t; CREATE TEMPORARY TABLE t (k int, j jsonb, t json, w text[])")
    relation = Relation.of(COLUMNS, POOLS, server)
    compared(session, tmp_path, relation, QUERIES, chance)
