"""A subscription survives restarts of engine and gateway.

Clients fetch from it and acknowledge while the engine is down.
"""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tailgate.lake.folder import Lake
from testing.engine_process import EngineProcess
from tests.tables.world import Served

pytestmark = [pytest.mark.long, pytest.mark.spark]

FETCH = "FETCH ALL FROM SUBSCRIPTION feed WITH (timeout = '1s')"


def test_engine_and_gateway_are_killed(tmp_path: Path) -> None:
    engine = EngineProcess(tmp_path / "lake")
    engine.start()
    lake = Lake(tmp_path / "lake")
    served = Served(lake)
    with psycopg.connect(served.dsn, autocommit=True) as sql:
        sql.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
        sql.execute("CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM t GROUP BY v")
        sql.execute("CREATE SUBSCRIPTION feed FROM m")
        sql.execute("INSERT INTO t VALUES (1, 10)")
        first = sql.execute(FETCH).fetchall()
        assert [row[1:] for row in first] == [(1, 10, 1)]
        sql.execute("INSERT INTO t VALUES (2, 20)")
        engine.kill()
        sql.execute("ACKNOWLEDGE feed UP TO %s", [first[-1][0]])
        assert [row[1:] for row in sql.execute(FETCH).fetchall()] == [(1, 20, 1)]
    served.close()
    engine.start()
    served = Served(lake)
    with psycopg.connect(served.dsn, autocommit=True) as sql:
        sql.execute("INSERT INTO t VALUES (3, 10)")
        rows = sql.execute(FETCH).fetchall()
        assert rows[0][1:] == (1, 20, 1)
        assert sorted(row[1:] for row in rows[1:]) == [(-1, 10, 1), (1, 10, 2)]
        sql.execute("ACKNOWLEDGE feed UP TO %s", [rows[-1][0]])
        assert sql.execute(FETCH).fetchall() == []
    served.close()
    engine.stop()
