"""Tests transaction modes against PostgreSQL 15: defaults, changes, and how long these last."""

from __future__ import annotations

from itertools import product

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tailgate.gateway.settings.settings import CUSTOM_MAX
from tests.wire.answers import same
from tests.wire.live import Live


def test_a_transaction_begins_with_the_defaults(live: Live, postgres: str) -> None:
    same(
        live.dsn,
        postgres,
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        "SHOW transaction_isolation",
        "SHOW default_transaction_isolation",
        "SHOW default_transaction_read_only",
        "SHOW transaction_read_only",
        "BEGIN",
        "SHOW transaction_isolation",
        "SHOW transaction_read_only",
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SHOW transaction_isolation",
        "COMMIT",
        "SHOW transaction_isolation",
        "BEGIN READ WRITE ISOLATION LEVEL READ COMMITTED",
        "SHOW transaction_isolation",
        "SHOW transaction_read_only",
        "SET default_transaction_isolation = 'serializable'",
        "SHOW transaction_isolation",
        "COMMIT",
        "SHOW transaction_isolation",
        "BEGIN",
        "SHOW transaction_isolation",
        "SET default_transaction_isolation = 'read committed'",
        "ROLLBACK",
        "SHOW transaction_isolation",
        "RESET ALL",
        "SHOW transaction_isolation",
        "SHOW transaction_read_only",
    )


def test_modes_outside_of_a_block_have_no_effect(live: Live, postgres: str) -> None:
    """The transaction of the statement has the modes, and ends with it."""
    same(
        live.dsn,
        postgres,
        "SET transaction_read_only = on",
        "SHOW transaction_read_only",
        "SET transaction_isolation = 'serializable'",
        "SHOW transaction_isolation",
        "SET transaction_isolation = 'nothing'",
        "SET default_transaction_read_only = on",
        "SET transaction_read_only = off",
        "SHOW transaction_read_only",
        "BEGIN",
        "SET transaction_read_only = off",
        "SHOW transaction_read_only",
        "COMMIT",
        "SHOW transaction_read_only",
    )


def test_of_the_start_up(live: Live, postgres: str) -> None:
    options = "-c default_transaction_isolation=serializable -c default_transaction_read_only=on"
    steps = ("SHOW transaction_isolation", "BEGIN", "SHOW transaction_isolation", "SHOW transaction_read_only", "ROLLBACK")
    ours, theirs = (make_conninfo(dsn, options=options) for dsn in (live.dsn, postgres))
    same(ours, theirs, *steps, "SET default_transaction_read_only = off", *steps)


def test_savepoints_bring_settings_back(live: Live, postgres: str) -> None:
    shown = ("SHOW transaction_isolation", "SHOW application_name", "SHOW my.own")
    same(
        live.dsn,
        postgres,
        "SET my.own = 'before'",
        "BEGIN ISOLATION LEVEL SERIALIZABLE",
        "SET application_name = 'one'",
        "SAVEPOINT a",
        "SET application_name = 'two'",
        "SET LOCAL my.own = 'local'",
        "SAVEPOINT b",
        "SET application_name = 'three'",
        "SELECT 1/0",
        "ROLLBACK TO b",
        *shown,
        "ROLLBACK TO a",
        *shown,
        "SET LOCAL application_name = 'four'",
        "RELEASE a",
        *shown,
        "COMMIT",
        *shown,
        "BEGIN",
        "SET application_name = 'five'",
        "SAVEPOINT a",
        "SELECT 1/0",
        "ROLLBACK",
        *shown,
    )


def test_reset_keeps_the_modes_of_a_block(live: Live, postgres: str) -> None:
    same(
        live.dsn,
        postgres,
        "BEGIN READ ONLY",
        "RESET ALL",
        "SHOW transaction_read_only",
        "COMMIT",
        "SET default_transaction_read_only = on",
        "RESET transaction_read_only",
        "SHOW transaction_read_only",
        "SET transaction_read_only TO DEFAULT",
        "SHOW transaction_read_only",
    )


def test_of_several_statements(live: Live, postgres: str) -> None:
    """A Query of several statements is one transaction, also for its settings."""
    same(
        live.dsn,
        postgres,
        "SET transaction_read_only = on; SHOW transaction_read_only",
        "SHOW transaction_read_only",
        "SET application_name = 'before'",
        "SET application_name = 'undone'; SELECT 1/0",
        "SHOW application_name",
        "SET application_name = 'also undone'; BEGIN; SET application_name = 'inside'; ROLLBACK",
        "SHOW application_name",
        "SET application_name = 'kept'; SELECT 1",
        "SHOW application_name",
        "SET application_name = 'first'; COMMIT; SET application_name = 'second'; SELECT 1/0",
        "SHOW application_name",
        "SET application_name = 'first'; ROLLBACK; SELECT 1",
        "SHOW application_name",
        "BEGIN; SET application_name = 'own'; COMMIT; SHOW application_name",
        "BEGIN; SET my.own = 'x'; ROLLBACK",
    )


QUERIES = (
    "SELECT 1",
    "SHOW work_mem",
    "SET CONSTRAINTS ALL DEFERRED",
    "SAVEPOINT s",
    "SET application_name = 'x'",
    "EXPLAIN SELECT 1",
    "PREPARE p AS SELECT 1",
)
CHANGES = (
    "SET TRANSACTION READ ONLY",
    "SET TRANSACTION READ WRITE",
    "SET transaction_read_only = off",
    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET TRANSACTION NOT DEFERRABLE",
    "SET transaction_deferrable = on",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
)


def refusals(dsn: str) -> list[object]:
    """Returns the error of each change of a mode after each query, in blocks of two modes."""
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        out: list[object] = []
        for begin, query, change in product(("BEGIN", "BEGIN READ ONLY"), QUERIES, CHANGES):
            connection.execute(begin.encode())
            connection.execute(query.encode())
            try:
                connection.execute(change.encode())
            except psycopg.Error as error:
                out.append((begin, query, change, error.sqlstate, error.diag.message_primary))
            connection.execute("ROLLBACK")
            connection.execute("DEALLOCATE ALL")
        return out


def test_modes_that_must_come_before_a_query(live: Live, postgres: str) -> None:
    assert refusals(live.dsn) == refusals(postgres)


def test_modes_of_subtransactions(live: Live, postgres: str) -> None:
    same(
        live.dsn,
        postgres,
        "BEGIN",
        "SAVEPOINT a",
        "SET TRANSACTION READ ONLY",
        "SELECT 1",
        "SET TRANSACTION READ WRITE",
        "ROLLBACK TO a",
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "ROLLBACK",
        "SELECT 1; BEGIN ISOLATION LEVEL SERIALIZABLE",
        "BEGIN READ ONLY",
        "SELECT 1",
        "COMMIT AND CHAIN",
        "SHOW transaction_read_only",
        "SET TRANSACTION READ WRITE",
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SELECT 1",
        "ROLLBACK AND CHAIN",
        "SHOW transaction_read_only",
        "SHOW transaction_isolation",
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "COMMIT",
        "SHOW transaction_read_only",
    )


def test_a_setting_that_begins_in_a_block_ends_with_rollback(live: Live, postgres: str) -> None:
    same(
        live.dsn,
        postgres,
        "BEGIN",
        "SET own.a = 'x'",
        "SHOW own.a",
        "ROLLBACK",
        "SHOW own.a",
        "BEGIN",
        "SET LOCAL own.b = 'x'",
        "COMMIT",
        "SHOW own.b",
        "BEGIN",
        "SAVEPOINT s",
        "SET own.c = 'x'",
        "ROLLBACK TO s",
        "SHOW own.c",
        "COMMIT",
        "SHOW own.c",
        "SET own.d = 'x'; SELECT 1/0",
        "SHOW own.d",
        "SELECT current_setting('own.d', true)",
    )


def test_ranges_of_numbers(live: Live, postgres: str) -> None:
    """Each setting of a number accepts PostgreSQL's values at its limits, and none outside."""
    with psycopg.connect(live.dsn) as ours:
        settings = {name.lower() for name, *_ in ours.execute("SHOW ALL").fetchall()}
    with psycopg.connect(postgres, autocommit=True) as theirs:
        rows = theirs.execute(
            "SELECT name, vartype, min_val::float8, max_val::float8 FROM pg_settings WHERE vartype IN ('integer', 'real')"
        )
        limits = [row for row in rows if row[0] in settings]
    assert len(limits) > 8
    for name, kind, low, high in limits:
        step = 1 if kind == "integer" else 0.5
        values = [low, low - step, high, *([high + step] if high < 1e300 else ())]
        shown = [format(value, ".17g") for value in values]
        same(live.dsn, postgres, *(f"SET {name} = {value}" for value in (*shown, "'x'", "'inf'", "'nan'")))


def test_reset_in_a_block(live: Live, postgres: str) -> None:
    """RESET replaces SET LOCAL, and ROLLBACK undoes it."""
    same(
        live.dsn,
        postgres,
        "SET own.a = 'before'",
        "SET work_mem = '8MB'",
        "BEGIN",
        "RESET ALL",
        "SHOW own.a",
        "ROLLBACK",
        "SHOW own.a",
        "SHOW work_mem",
        "BEGIN",
        "SET LOCAL work_mem = '16MB'",
        "RESET work_mem",
        "COMMIT",
        "SHOW work_mem",
        "SET work_mem = '8MB'",
        "BEGIN",
        "SET LOCAL work_mem = '16MB'",
        "SET LOCAL own.a = 'local'",
        "RESET ALL",
        "COMMIT",
        "SHOW work_mem",
        "SHOW own.a",
        "RESET own.b",
        "SHOW own.b",
    )


def test_settings_of_sessions_have_a_limit(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        for number in range(CUSTOM_MAX):
            connection.execute(f"RESET own.a{number}".encode())
        for statement in ("RESET own.b", "SET own.b = 1", "SET own.b TO DEFAULT"):
            with pytest.raises(psycopg.errors.ProgramLimitExceeded, match=f"at most {CUSTOM_MAX} settings of its own"):
                connection.execute(statement.encode())


def test_a_snapshot_is_imported_once(live: Live, postgres: str) -> None:
    for dsn in (live.dsn, postgres):
        with psycopg.connect(dsn, autocommit=True) as one, psycopg.connect(dsn, autocommit=True) as other:
            one.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            ((snapshot,),) = one.execute("SELECT pg_export_snapshot()").fetchall()
            for change in (f"SET TRANSACTION SNAPSHOT '{snapshot}'", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"):
                other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                other.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'".encode())
                with pytest.raises(psycopg.errors.ActiveSqlTransaction, match="must be called before any query"):
                    other.execute(change.encode())
                other.execute("ROLLBACK")
