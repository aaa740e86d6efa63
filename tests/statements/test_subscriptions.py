"""Durable subscriptions with a real engine: of a table and of a view, across writes, and DROP."""

from __future__ import annotations

import psycopg
import pytest

from tailgate.lake.readers import subscriptions
from tests.statements.conftest import World

FETCH = "FETCH ALL FROM SUBSCRIPTION feed WITH (timeout = '0s')"


def test_a_view_is_followed_and_remembered(world: World, sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10), (2, 20)")
    sql.execute("CREATE MATERIALIZED VIEW m AS SELECT v / 10 AS g, count(*) AS n FROM t GROUP BY 1")
    sql.execute("CREATE SUBSCRIPTION feed FROM m")
    first = sql.execute(FETCH).fetchall()
    assert sorted(row[1:] for row in first) == [(1, 1, 1), (1, 2, 1)]
    sql.execute("ACKNOWLEDGE feed UP TO %s", [first[0][0]])
    sql.execute("INSERT INTO t VALUES (3, 15)")
    with world.connect() as other:
        rows = other.execute(FETCH).fetchall()
        assert sorted(row[1:] for row in rows) == [(-1, 1, 1), (1, 1, 2)]
        other.execute("ACKNOWLEDGE feed UP TO %s", [rows[-1][0]])
    assert sql.execute(FETCH).fetchall() == []
    item = world.lake.catalog().find("feed")
    assert item is not None
    assert (place := subscriptions.place(world.lake, item.id)) is not None
    assert place.time == rows[-1][0]


def test_invalid_subscriptions(sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE t (id int PRIMARY KEY); CREATE VIEW plain AS SELECT id FROM t")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match='view "plain" is not stored, so its changes are not kept'):
        sql.execute("CREATE SUBSCRIPTION feed FROM plain")
    sql.execute("CREATE SUBSCRIPTION feed FROM t")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        sql.execute("DROP TABLE t")
    assert sql.execute("SELECT count(*) FROM pg_class WHERE relname = 'feed'").fetchone() == (0,)
    with pytest.raises(psycopg.errors.ActiveSqlTransaction):
        sql.execute("BEGIN; DROP SUBSCRIPTION feed")
    sql.execute("ROLLBACK")
    sql.execute("DROP TABLE t CASCADE")
