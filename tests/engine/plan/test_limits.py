"""Tests views whose LIMIT and OFFSET are subqueries or depend on an outer query, compared with PostgreSQL."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.types import INT4
from tests.engine.plan.comparison import Relation, compared

pytestmark = pytest.mark.spark

COLUMNS = {"k": INT4, "n": INT4}
QUERIES = """
SELECT k, n FROM t ORDER BY k, n LIMIT (SELECT count(*) / 2 FROM t)
SELECT k, n FROM t ORDER BY k DESC, n OFFSET (SELECT count(*) / 3 FROM t WHERE n > 0)
SELECT k, n FROM t ORDER BY n, k OFFSET (SELECT min(k) FROM t) LIMIT (SELECT max(k) FROM t WHERE n < 2)
SELECT n FROM t ORDER BY n FETCH FIRST (SELECT count(DISTINCT k) FROM t) ROWS WITH TIES
SELECT k, (SELECT sum(x) FROM (SELECT u.n AS x FROM t u ORDER BY u.n, u.k LIMIT t.k) s) FROM t WHERE k >= 0
SELECT n, count(*) FROM t GROUP BY n ORDER BY 1 LIMIT (SELECT 2)
SELECT k, n FROM t ORDER BY k, n LIMIT 1 + 1 OFFSET abs(-1)
""".strip().splitlines()


def test_limits(session: Any, tmp_path: Path, seed: int, server: Any) -> None:
    server.execute("DROP TABLE IF EXISTS t; CREATE TEMPORARY TABLE t (k int, n int)")
    relation = Relation(COLUMNS, lambda c: (str(c.randrange(4)), c.choice([None, "-1", "0", "1", "2", "3"])), server)
    compared(session, tmp_path, relation, QUERIES, random.Random(seed))
