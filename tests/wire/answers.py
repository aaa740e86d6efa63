"""Short forms of answers, to compare Tailgate with PostgreSQL."""

from __future__ import annotations

import psycopg


def answer(connection: psycopg.Connection, text: str) -> tuple[str | None, list[tuple[object, ...]]]:
    """Runs a statement. Returns its command tag, or its SQLSTATE, and its rows."""
    try:
        cursor = connection.execute(text.encode())
    except psycopg.Error as error:
        return error.sqlstate, []
    return cursor.statusmessage, cursor.fetchall() if cursor.description else []


def same(ours: str, theirs: str, *steps: str) -> None:
    """Asserts that each step has the same answer and leaves the same transaction status on both servers."""
    with psycopg.connect(ours, autocommit=True) as one, psycopg.connect(theirs, autocommit=True) as other:
        for step in steps:
            assert answer(one, step) == answer(other, step), step
            assert one.info.transaction_status == other.info.transaction_status, step
