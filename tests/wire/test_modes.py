"""Tests transaction modes against PostgreSQL 15: defaults, changes, and how long these last."""

from __future__ import annotations

from psycopg.conninfo import make_conninfo

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
