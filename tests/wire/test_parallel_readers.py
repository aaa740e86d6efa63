"""Tests what clients need to copy one table over several connections.

All connections read one snapshot, and each reads a range of ctid's pages.
"""

from __future__ import annotations

import psycopg
import pytest

from tailgate.gateway.session import transactions
from tests.wire.answers import answer, same
from tests.wire.live import Live

REPEATABLE = "BEGIN ISOLATION LEVEL REPEATABLE READ"


def exported(connection: psycopg.Connection) -> str:
    row = connection.execute("SELECT pg_export_snapshot()").fetchone()
    assert row is not None
    return str(row[0])


def count(connection: psycopg.Connection) -> int:
    row = connection.execute("SELECT count(*) FROM v").fetchone()
    assert row is not None
    return int(row[0])


def test_all_read_at_one_time(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as first, psycopg.connect(live.dsn, autocommit=True) as second:
        first.execute(REPEATABLE)
        name = exported(first)
        assert exported(first) != name
        second.execute(REPEATABLE)
        second.execute(f"SET TRANSACTION SNAPSHOT '{name}'".encode())  # the snapshot has the newest time
        live.tick([((9, "nine", 9.0), 1)])
        assert (count(first), count(second)) == (4, 4)
        second.execute("COMMIT")
        assert count(second) == 5
        second.execute(REPEATABLE)
        second.execute(f"SET TRANSACTION SNAPSHOT '{name}'".encode())  # the snapshot has an older time
        assert count(second) == 4
        second.execute("COMMIT")
        first.execute("COMMIT")
        second.execute(REPEATABLE)
        assert answer(second, f"SET TRANSACTION SNAPSHOT '{name}'")[0] == "22023"  # the exporting transaction has ended


def test_exported_snapshots_are_limited(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "EXPORTS_MAX", 2)
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        connection.execute(REPEATABLE)
        exported(connection), exported(connection)
        assert answer(connection, "SELECT pg_export_snapshot()")[0] == "54000"


def test_as_postgresql(live: Live, postgres: str) -> None:
    same(
        live.dsn,
        postgres,
        "BEGIN",
        "SET TRANSACTION SNAPSHOT '00000003-00000001-1'",
        "ROLLBACK",
        REPEATABLE,
        "SET TRANSACTION SNAPSHOT 'nonsense'",
        "ROLLBACK",
        REPEATABLE,
        "SET TRANSACTION SNAPSHOT '0FFFFFFF-00000001-1'",
        "ROLLBACK",
        "BEGIN ISOLATION LEVEL SERIALIZABLE",
        "SET LOCAL TRANSACTION SNAPSHOT '00000003-00000001-1'",
        "ROLLBACK",
        "SET TRANSACTION SNAPSHOT '00000003-00000001-1'",
    )


def test_not_after_a_query(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        connection.execute(REPEATABLE)
        assert count(connection) == 4
        assert answer(connection, "SET TRANSACTION SNAPSHOT '00000003-00000001-1'")[0] == "25001"


def test_ranges_of_pages_have_each_row_once(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        ranges = [(0, 10), (10, 20), (20, 4294967295)]
        pages = [
            connection.execute(f"SELECT id FROM public.v WHERE ctid BETWEEN '({a},0)'::tid AND '({b},0)'::tid".encode()).fetchall()
            for a, b in ranges
        ]
        assert [len(rows) for rows in pages] == [4, 0, 0]
        assert answer(connection, "SELECT id FROM v WHERE v.ctid BETWEEN '(0,1)' AND '(7,0)' AND id < 2")[1] == [(0,), (1,)]


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SELECT ctid FROM v", "0A000"),
        ("SELECT q.xmin FROM v AS q", "0A000"),
        ("SELECT id FROM v WHERE ctid = '(0,1)'", "0A000"),
        ("SELECT id FROM v WHERE ctid BETWEEN '(0,2)' AND '(1,0)'", "0A000"),
        ("SELECT id FROM v WHERE ctid BETWEEN '(0,0)' AND '(0,5)'", "0A000"),
        ("SELECT id FROM v WHERE ctid BETWEEN 1 AND 2", "0A000"),
        ("SELECT 1 FROM (SELECT id FROM v) AS q WHERE ctid BETWEEN '(0,0)' AND '(1,0)'", "42703"),
    ],
)
def test_other_conditions_on_ctid(live: Live, text: str, sqlstate: str) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        assert answer(connection, text)[0] == sqlstate
