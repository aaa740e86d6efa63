"""Tests the PostgreSQL server of the tests."""

from __future__ import annotations

import psycopg


def test_a_real_postgres_answers(postgres: str) -> None:
    with psycopg.connect(postgres) as connection:
        row = connection.execute("SELECT current_setting('server_version_num')::int, current_setting('TimeZone'), 7 / 2").fetchone()
    assert row is not None
    version, zone, half = row
    assert (version // 10000, zone, half) == (15, "UTC", 3)
