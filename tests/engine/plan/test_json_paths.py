"""Views with jsonpath, compared with PostgreSQL."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.types import INT4, JSONB
from tests.engine.plan.comparison import Relation, compared

pytestmark = pytest.mark.spark

COLUMNS = {"k": INT4, "j": JSONB, "v": JSONB}
POOLS: dict[str, list[str | None]] = {
    "k": ["1", "2", "3"],
    "j": [
        None, "1", "null", '"abc"', "[]", "{}", '{"a": 1}', '{"a": [1, 2.50, "x", null, {"b": [true, -3]}], "b": {"c": {"a": 0}}}',
        '[{"a": 1, "b": 2}, {"a": 2}, 3, [4, [5]]]', '[0, 1.5, -2, "12", "ab\\nc", false]', '{"a": {"a": {"a": "abcd"}}}',
    ],
    "v": [None, '{"x": 1, "y": 0}', '{"x": "abc", "y": [1]}', '{"x": null, "y": "a"}'],
}  # fmt: skip
PATHS = """
$.a
strict $.a
$.a[*]
strict $[*].a
$[0 to last - 1]
$[last]
$.**{1 to 2}
$.**
$.**{last}
$.*
$[*].type()
$.size()
strict $.size()
$[*] ? (@ > 1)
$[*] ? (@.a >= 1 && exists(@.b))
$.** ? (@ starts with "ab")
$.** ? (@ like_regex "^a.*c")
$.** ? (@ like_regex "A.*C" flag "is")
$.** ? (@ like_regex "a.c" flag "m" || @ == $x)
$[*] ? ((@ < 2) is unknown)
strict $ ? (@[*] > 0)
$.a + 1
$[*] ? (@ / 0 > 1)
-$.a
$[*].double()
$.a.abs()
$[*] ? (@ != null && !(@ == false))
($[0] > 1).type()
($.a == 1 || $.a > 5) && !($.b.c.a == 1)
$ == $x
$.a[$y]
$[*] % 2
1.50 * $.a - 2 / 3
$.a.ceiling() + $.a.floor()
$.keyvalue()
$[*].keyvalue().value.keyvalue()
""".strip().splitlines()


@pytest.mark.parametrize("share", [pytest.param(4, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_views_and_queries(share: int, session: Any, tmp_path: Path, seed: int, server: Any) -> None:
    """Tests one of every `share` paths, chosen by the seed."""
    chance = random.Random(seed)
    server.execute("DROP TABLE IF EXISTS t; CREATE TEMPORARY TABLE t (k int, j jsonb, v jsonb)")
    relation = Relation.of(COLUMNS, POOLS, server)
    paths = ["'" + path.replace("'", "''") + "'" for path in chance.sample(PATHS, len(PATHS) // share)]
    calls = ["exists", "match", "query_array", "query_first"]
    queries = [f"SELECT {', '.join(f'jsonb_path_{call}(j, {path}, v, true)' for call in calls)} FROM t" for path in paths]
    queries += [f"SELECT k, q FROM t, jsonb_path_query(j, {path}, v, true) AS q" for path in paths]
    queries += [f"SELECT j @? {path}, j @@ {path} FROM t" for path in paths if "$x" not in path and "$y" not in path]
    compared(session, tmp_path, relation, queries, chance)
