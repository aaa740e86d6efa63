"""Every expression of the corpus has PostgreSQL's result, is refused, or has a documented difference.

Entries of tests/sql/corpus.txt are only ever removed: TAILGATE_UPDATE=1 removes those that now match.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from tests.sql.corpus import EXPECTED, HEADER, corpus, expected, on_duckdb

ROOT = Path(__file__).parents[2]
# The corpus was recorded in C.UTF-8. In the test server's C locale, only ASCII letters have case.
LOCALE = {"text-036", "text-041"}

# they differ in views only
IN_VIEWS = {"array-080"}


def test_duckdb(engine: duckdb.DuckDBPyConnection) -> None:
    verdicts = {e.id: on_duckdb(engine, e) for e in corpus()}
    exceptions = expected()
    wrong = [
        f"{e.id} {e.sql}: {verdicts[e.id]}"
        for e in corpus()
        if verdicts[e.id] not in ("same", "refused") and exceptions.get(e.id, "refused") == "refused"
    ]
    assert not wrong, "\n".join(wrong)
    unsupported = [f"{e.id} {e.sql}" for e in corpus() if verdicts[e.id] == "refused" and e.id not in exceptions]
    assert not unsupported, "no longer supported:\n" + "\n".join(unsupported)
    remaining = {e.id: exceptions[e.id] for e in corpus() if e.id in exceptions and (verdicts[e.id] != "same" or e.id in IN_VIEWS)}
    if os.environ.get("TAILGATE_UPDATE"):
        EXPECTED.write_text(HEADER + "".join(f"{id} {reason}\n" for id, reason in remaining.items()))
    print(Counter(v.split()[0] for v in verdicts.values()))


def test_differences_are_documented() -> None:
    text = (ROOT / "docs" / "sql" / "differences.md").read_text()
    for id, reason in expected().items():
        assert reason == "refused" or f"| {reason} |" in text, f"{id}: docs/sql/differences.md has no row '{reason}'"


def test_the_fixture_has_the_results_of_postgresql(postgres: str) -> None:
    wrong = []
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("SET TimeZone = 'UTC'")
        for e in corpus():
            if e.id not in LOCALE and (result := _on_postgres(server, e.sql)) != (e.sqlstate or (e.value, e.type)):
                wrong.append(f"{e.id} {e.sql}: {result}")
    assert not wrong, "\n".join(wrong)


def _on_postgres(server: psycopg.Connection[Any], sql: str) -> Any:
    try:
        # in a subquery, so that aggregates and set-returning functions are possible
        row = server.execute(f"SELECT x::text, pg_typeof(x)::text FROM (SELECT {sql} AS x) q".replace("%", "%%"), ()).fetchone()
    except psycopg.Error as error:
        return error.sqlstate
    assert row is not None
    return row
