"""Tests tailgate.statements: calls, rows, errors and durations by role, lane and template."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import errors

from tailgate.gateway.resources.budgets import Budget
from tailgate.gateway.session.statements.statistics import StatementStatistics
from tailgate.gateway.session.statements.templates import TEMPLATES_MAX, Call
from tailgate.lake.types import INT8, TEXT
from tests.wire.live import Live
from tests.wire.statements import Statements

FIGURES = "lane, calls, rows, errors FROM tailgate.statements WHERE statement = %s ORDER BY lane"


def figures(connection: psycopg.Connection, statement: str) -> list[Any]:
    return connection.execute(f"SELECT {FIGURES}", (statement,)).fetchall()


def test_statements_are_counted_by_template(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        for number in range(5):
            connection.pgconn.exec_(f"SELECT {number}, id FROM v".encode())
            connection.pgconn.exec_(f"SELECT {number}, id FROM v".encode())  # answered from memory
        rows = connection.execute("SELECT count(*)::int FROM v").fetchone()
        assert rows is not None
        counted = figures(connection, "SELECT ?, id FROM v")
        assert [(lane, calls, lines, failed) for lane, calls, lines, failed in counted] == [
            ("memory", 5, 5 * rows[0], 0),
            ("query", 5, 5 * rows[0], 0),
        ]
        for _ in range(2):
            with pytest.raises(errors.DivisionByZero):
                connection.execute("SELECT 1 / 0 FROM v")
        assert figures(connection, "SELECT ? / ? FROM v") == [("query", 2, 0, 2)]
        with pytest.raises(errors.SyntaxError):
            connection.execute("SELEC 'secret'")
        assert figures(connection, "SELEC ?") == [("unknown", 1, 0, 1)]
        with pytest.raises(errors.InvalidTextRepresentation):
            connection.execute("SELECT %s::int FROM v", ("word",), prepare=True)


def test_parts_of_a_text_are_counted_alone(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        connection.pgconn.exec_(b"BEGIN; SELECT id FROM v LIMIT 1; SET application_name = 'x'; COMMIT")
        assert figures(connection, "SELECT id FROM v LIMIT ?") == [("query", 1, 1, 0)]
        assert figures(connection, "SET application_name = ?") == [("session", 1, 0, 0)]
        assert figures(connection, "COMMIT") == [("session", 1, 0, 0)]


def test_durations_and_parameters(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        connection.execute("SELECT name FROM v WHERE id = %s AND name <> %s", (1, "Berlin"))
        found = connection.execute(
            "SELECT p50_ms <= p95_ms * 1.06 AND p95_ms <= max_ms * 1.06 AND 0 < p50_ms AND total_ms >= max_ms * 0.99,"
            " slowest_parameters, role, first_at <= last_at, gateway = pg_backend_pid() >> 16 OR gateway > 0"
            " FROM tailgate.statements WHERE statement = 'SELECT name FROM v WHERE id = $1 AND name <> $2'"
        ).fetchone()
        assert found == (True, "smallint, text of 6 characters", "tailgate", True, True)


def test_others_do_not_see_them(live: Live, statements: Statements) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as operator:
        operator.execute("CREATE ROLE bob LOGIN; CREATE SECRET s AS 'very secret'")
        operator.execute("SELECT 7 AS password")
        shown = [text for (text,) in operator.execute("SELECT statement FROM tailgate.statements").fetchall()]
        assert "SELECT ? AS password" in shown
        assert not any("very" in text or "7" in text for text in shown)
        with psycopg.connect(live.dsn + " user=bob", autocommit=True) as bob:
            bob.execute("SELECT 8 AS own")
            assert {role for (role,) in bob.execute("SELECT role FROM tailgate.statements")} == {"bob"}
            assert figures(bob, "SELECT ? AS password") == []
            assert figures(bob, "SELECT ? AS own") == [("query", 1, 1, 0)]
        assert figures(operator, "SELECT ? AS own") == [("query", 1, 1, 0)]


def test_the_number_of_templates_is_bounded() -> None:
    """The template that was used longest ago is removed; the slowest call gives the shape of its parameters."""
    templates = StatementStatistics(Budget("the gateway", 1 << 30))
    for number in range(2 * TEMPLATES_MAX):
        templates.ended(Call(1, "query", b"SELECT a FROM used", 0.002, rows=1, types=(INT8, TEXT), values=(number, "x" * 5)))
        templates.ended(Call(1, "query", f"SELECT c{number}".encode(), 0.001))
    templates.ended(Call(1, "query", b"SELECT a FROM used", 0.5, types=(INT8, TEXT), values=(None, "x" * 70)))
    rows = templates.rows(1, lambda role: "ann")
    assert 0.9 * TEMPLATES_MAX <= len(rows) <= TEMPLATES_MAX
    (used,) = [row for row in rows if row["statement"] == "SELECT a FROM used"]
    assert (used["calls"], used["rows"], used["slowest_parameters"]) == (
        2 * TEMPLATES_MAX + 1,
        2 * TEMPLATES_MAX,
        "NULL, text of 70 characters",
    )
    assert used["max_ms"] == pytest.approx(500) and used["p50_ms"] == pytest.approx(2, rel=0.06)


def test_the_number_of_sqlstates_is_bounded() -> None:
    statistics = StatementStatistics(Budget("the gateway", 1 << 30))
    for sqlstate in ("00000", "22012", "P0001", "01ABC", "01ABD"):
        statistics.ended(Call(10, "session", b"DO", 0.1, sqlstate))
    assert statistics.counts() == {
        ("session", "00000"): 1, ("session", "22012"): 1, ("session", "P0001"): 1, ("session", "other"): 2,
    }  # fmt: skip
