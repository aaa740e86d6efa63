"""Views over relations without rows."""

from __future__ import annotations

import psycopg
import pytest

pytestmark = pytest.mark.spark


def test_an_aggregate_without_groups_has_a_row(sql: psycopg.Connection) -> None:
    view = "CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n, sum(a) AS s FROM nothing"
    sql.execute(f"CREATE TABLE nothing (a int PRIMARY KEY); {view}".encode())  # one transaction
    assert sql.execute("SELECT * FROM counted").fetchall() == [(0, None)]
    sql.execute("CREATE MATERIALIZED VIEW grouped AS SELECT a, count(*) AS n FROM nothing GROUP BY a")
    assert sql.execute("SELECT * FROM grouped").fetchall() == []
