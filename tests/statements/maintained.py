"""Materialized views next to PostgreSQL's views of the same queries."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import psycopg

FILL_S = 60.0


def rows(connection: psycopg.Connection, query: str) -> list[tuple[object, ...]]:
    """Returns the sorted rows of a query. Waits while a view is filled again."""
    deadline = time.monotonic() + FILL_S
    while True:
        try:
            return sorted(connection.execute(query).fetchall(), key=repr)
        except psycopg.errors.ObjectNotInPrerequisiteState:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def check_views(ours: psycopg.Connection, postgres: str, schema: str, queries: Mapping[str, str], changes: Iterable[str]) -> None:
    """Creates a view of each query here and in PostgreSQL, and compares their rows after each change."""
    with psycopg.connect(postgres, autocommit=True) as theirs:
        theirs.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        for connection in (theirs, ours):
            connection.execute(schema)
            for name, query in queries.items():
                materialized = "" if connection is theirs else "MATERIALIZED "
                connection.execute(f"CREATE {materialized}VIEW {name} AS {query}")
        for change in ("SELECT", *changes):
            for connection in (theirs, ours):
                connection.execute(change)
            for name in queries:
                assert rows(ours, f"SELECT * FROM {name}") == rows(theirs, f"SELECT * FROM {name}"), (name, change)
