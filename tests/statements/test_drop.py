"""DROP and dependent objects: answers and messages equal those of PostgreSQL 15."""

from __future__ import annotations

import psycopg
import pytest

pytestmark = pytest.mark.spark

MAKE = (
    "CREATE TABLE t (id int PRIMARY KEY)",
    "CREATE TABLE u (id int PRIMARY KEY)",
    "CREATE MATERIALIZED VIEW m AS SELECT id FROM t",
    "CREATE VIEW v AS SELECT id FROM m",
    "CREATE VIEW w AS SELECT u.id FROM u JOIN t ON u.id = t.id",
)
DROPS = (
    "DROP MATERIALIZED VIEW m",
    "DROP TABLE u",
    "DROP TABLE t, u",
    "DROP VIEW m",
    "DROP TABLE nothing",
    "DROP VIEW IF EXISTS nothing, v",
    "DROP MATERIALIZED VIEW m RESTRICT",
    "DROP TABLE t, u CASCADE",
)


def outcome(connection: psycopg.Connection, statement: str) -> list[object]:
    notices: list[object] = []

    def on_notice(notice: psycopg.errors.Diagnostic) -> None:
        notices.append((notice.message_primary, sorted((notice.message_detail or "").splitlines())))

    connection.add_notice_handler(on_notice)
    try:
        return [connection.execute(statement).statusmessage, *notices]  # type: ignore[call-overload]
    except psycopg.Error as e:
        return [e.sqlstate, e.diag.message_primary, sorted((e.diag.message_detail or "").splitlines()), e.diag.message_hint]
    finally:
        connection.remove_notice_handler(on_notice)


def test_as_postgresql(sql: psycopg.Connection, postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("CREATE SCHEMA dropping")
        server.execute("SET search_path = dropping")
        for statement in MAKE:
            sql.execute(statement)
            server.execute(statement)
        for statement in DROPS:
            assert outcome(sql, statement) == outcome(server, statement), statement
        server.execute("DROP SCHEMA dropping CASCADE")
