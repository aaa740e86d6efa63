"""Conditions behind one that is not true are not evaluated, in views and in SELECT, also if a part of them occurs twice."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.types import INT4, Type
from tests.engine.plan.comparison import Relation, compared

pytestmark = pytest.mark.spark

COLUMNS = {"k": INT4, "n": INT4, "g": Type("numeric", (10, 2))}
POOLS: dict[str, list[str | None]] = {"k": [None, "0", "0", "1", "3"], "n": ["0", "5", "-7"], "g": [None, "0", "0", "2.5"]}
QUERIES = """
SELECT n FROM t WHERE k <> 0 AND (n / k > 1 OR n / k < -2)
SELECT q FROM (SELECT n % k AS q FROM t WHERE k <> 0) AS x WHERE q <> 1 AND q IS NOT NULL
SELECT p FROM (SELECT (n % g)::text AS p FROM t WHERE g <> 0) AS x WHERE p <> '0.00' AND p IS NOT NULL
SELECT CASE WHEN k = 0 THEN 0 WHEN n / k > 1 THEN n / k ELSE -(n / k) END AS q FROM t
SELECT sum(n) FROM t WHERE k = 0 OR n / k > 1 OR n / k < 0
SELECT k = 0 OR n / k > 1 OR n / k < 0 AS q, sum(n) FROM t GROUP BY 1
SELECT k <> 0 AND n / k > 1 AND n % k = 0 AS p, n FROM t
SELECT k = 0 OR n / k > 1 OR n / k < 0 AS q, k <> 0 AND n / k > 1 AND n % k = 0 AS p, sum(n) FROM t GROUP BY 1, 2
SELECT count(*) FILTER (WHERE k <> 0 AND (n / k > 1 OR n / k < -2)) AS c FROM t
""".strip().splitlines()


def test_views_and_queries(session: Any, tmp_path: Path, seed: int, server: Any) -> None:
    server.execute("DROP TABLE IF EXISTS t; CREATE TEMPORARY TABLE t (k int, n int, g numeric)")
    relation = Relation.of(COLUMNS, POOLS, server)
    compared(session, tmp_path, relation, QUERIES, random.Random(seed))
