"""What a statement is answered with, in short, so that ours and PostgreSQL's answers can be compared."""

from __future__ import annotations

import psycopg


def said(connection: psycopg.Connection, text: str) -> tuple[str | None, list[tuple[object, ...]]]:
    """The tag of a statement, or its SQLSTATE, and its rows."""
    try:
        cursor = connection.execute(text.encode())
    except psycopg.Error as error:
        return error.sqlstate, []
    return cursor.statusmessage, cursor.fetchall() if cursor.description else []


def same(ours: str, theirs: str, *steps: str) -> None:
    """Each step has the same answer there and here, and leaves the same state of the transaction."""
    with psycopg.connect(ours, autocommit=True) as one, psycopg.connect(theirs, autocommit=True) as other:
        for step in steps:
            assert said(one, step) == said(other, step), step
            assert one.info.transaction_status == other.info.transaction_status, step
