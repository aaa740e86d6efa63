"""Internal errors of gateway and engine are counted by statement template, and logged.

The client's error asks for a report.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.engine import ddl
from tailgate.gateway.execute import show
from tailgate.lake.errors import SystemError_, UndefinedTable
from tailgate.lake.host.internal_errors import ISSUES, KINDS_MAX, InternalErrors, version
from tailgate.sql.lexer.literal_masking import mask_literals
from tests.tables.world import World

SECRET = "a value that nobody may see"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "lake", gateways=2)
    yield world
    world.close()


def broken(*arguments: Any, **words: Any) -> Any:
    raise ValueError(SECRET)


def listed(connection: psycopg.Connection) -> list[tuple[Any, ...]]:
    query = "SELECT process, sqlstate, error, statement, version, count, first_at <= last_at FROM tailgate.internal_errors"
    return sorted(connection.execute(query).fetchall())


def test_the_gateway_counts_and_logs_them(world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(show, "answer", broken)
    connections = [psycopg.connect(gateway.dsn, autocommit=True) for gateway in world.gateways]
    for n, sql in enumerate((connections[0], connections[0], connections[1])):
        with caplog.at_level(logging.ERROR, "tailgate.internal"), pytest.raises(psycopg.errors.InternalError_) as failed:
            sql.execute(f"SHOW TABLES /* {SECRET} */ LIKE 'x{n}'", prepare=n == 1)
        assert failed.value.sqlstate == "XX000"
        assert ISSUES in failed.value.diag.message_hint
    assert "SHOW TABLES LIKE ?; version: " + version() in caplog.text
    rows = listed(connections[0])
    assert [(*row[:2], row[3], *row[4:]) for row in rows] == [
        ("gateway", "XX000", "SHOW TABLES LIKE ?", version(), 1, True),
        ("gateway", "XX000", "SHOW TABLES LIKE ?", version(), 2, True),
    ]
    assert {row[2].partition(":")[0] for row in rows} == {"ValueError at tests/tables/test_internal_errors.py"}
    for connection in connections:
        connection.close()


def test_the_engine_counts_them_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ddl, "create_table", broken)
    with psycopg.connect(world.dsn, autocommit=True) as sql:
        with pytest.raises(psycopg.errors.InternalError_) as failed:
            sql.execute("CREATE TABLE t (a varchar(17))")
        assert failed.value.diag.message_hint.count(ISSUES) == 1
        assert [(*row[:2], row[3]) for row in listed(sql)] == [
            ("engine", "XX000", "CREATE TABLE t (a varchar(?))"),
            ("gateway", "XX000", "CREATE TABLE t (a varchar(?))"),
        ]


def test_without_an_engine(world: World) -> None:
    (world.lake.path / "engine.json").unlink()
    with psycopg.connect(world.dsn, autocommit=True) as sql:
        with pytest.raises(psycopg.errors.SystemError) as failed:
            sql.execute("CREATE TABLE t (a int)")
        assert failed.value.diag.message_hint.startswith("Views can be read; ")
        assert ISSUES in failed.value.diag.message_hint
        assert [row[:2] for row in listed(sql)] == [("gateway", "58000")]


def test_an_error_that_is_its_own_cause() -> None:
    error = ValueError()
    error.__cause__ = error
    errors = InternalErrors(mask_literals)
    assert errors.reported(error, "SELECT 1").sqlstate == "XX000"


def test_an_error_after_the_crash_of_a_process_is_not_internal() -> None:
    errors = InternalErrors(mask_literals, crashed=lambda: True)
    assert errors.reported(ConnectionRefusedError(111, "Connection refused"), "SELECT 1").sqlstate == "57P02"
    assert errors.rows() == []


def test_other_errors_stay_as_they_are() -> None:
    errors = InternalErrors(mask_literals)
    error = UndefinedTable("no such relation", hint="Look again.")
    assert errors.reported(error, "SELECT 1") is error
    assert error.hint == "Look again."
    assert errors.reported(RecursionError(), "SELECT 1").sqlstate == "54001"
    assert errors.rows() == []


def test_there_is_room_for_so_many_kinds() -> None:
    errors = InternalErrors(mask_literals)
    for n in range(KINDS_MAX + 10):
        errors.reported(SystemError_("gone"), f"SELECT a{n}")
        errors.reported(SystemError_("gone"), "SELECT a0")
    rows = errors.rows()
    assert len(rows) == KINDS_MAX
    assert rows[0]["count"] == KINDS_MAX + 11
    json.dumps(rows)
