"""Schemas, search_path and temporary views: the same statements on PostgreSQL 15 say the same."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

pytestmark = pytest.mark.spark

STATEMENTS = (Path(__file__).parent / "schemas.sql").read_text().rstrip().rstrip(";").split(";\n")


def said(connection: psycopg.Connection, statement: str) -> list[object]:
    notices: list[object] = []

    def on_notice(notice: psycopg.errors.Diagnostic) -> None:
        notices.append((notice.severity, notice.sqlstate, notice.message_primary, notice.message_detail))

    connection.add_notice_handler(on_notice)
    try:
        cursor = connection.execute(statement)  # type: ignore[call-overload]
        return [cursor.statusmessage, cursor.fetchall() if cursor.description else None, *notices]
    except psycopg.Error as e:
        return [e.sqlstate, e.diag.message_primary, e.diag.message_detail, e.diag.message_hint, *notices]
    finally:
        connection.remove_notice_handler(on_notice)


def test_as_postgresql(sql: psycopg.Connection, postgres: str) -> None:
    different: list[str] = []
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("DROP DATABASE IF EXISTS schemas")
        server.execute("CREATE DATABASE schemas")
    with psycopg.connect(postgres, dbname="schemas", autocommit=True) as there:
        for statement in STATEMENTS:
            ours, theirs = said(sql, statement), said(there, statement)
            if ours != theirs:
                different.append(f"{statement.strip()}\n  ours   {ours}\n  theirs {theirs}")
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("DROP DATABASE schemas")
    assert not different, "\n".join(different)
