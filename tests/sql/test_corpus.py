"""The corpus of expressions, each as PostgreSQL answered it: the same, refused by name, or a difference that is written down.

tests/sql/corpus.txt can only grow shorter: TAILGATE_UPDATE=1 takes out what is answered by now.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from tests.sql.corpus import EXPECTED, HEADER, corpus, expected, on_duckdb

ROOT = Path(__file__).parents[2]
JAR = ROOT / "engine" / "java" / "target" / "tailgate.jar"
# letters beyond ASCII have no case in the C locale of the tests' server; the corpus was recorded in C.UTF-8
LOCALE = {"text-036", "text-041"}


def test_duckdb(engine: duckdb.DuckDBPyConnection) -> None:
    found = {e.id: on_duckdb(engine, e) for e in corpus()}
    before = expected()
    wrong = [
        f"{e.id} {e.sql}: {found[e.id]}"
        for e in corpus()
        if found[e.id] not in ("same", "refused") and before.get(e.id, "refused") == "refused"
    ]
    assert not wrong, "\n".join(wrong)
    lost = [f"{e.id} {e.sql}" for e in corpus() if found[e.id] == "refused" and e.id not in before]
    assert not lost, "refused, and was not:\n" + "\n".join(lost)
    kept = {e.id: before[e.id] for e in corpus() if e.id in before and found[e.id] != "same"}
    if os.environ.get("TAILGATE_UPDATE"):
        EXPECTED.write_text(HEADER + "".join(f"{id} {why}\n" for id, why in kept.items()))
    print(Counter(v.split()[0] for v in found.values()))


def test_differences_are_written_down() -> None:
    text = (ROOT / "docs" / "sql" / "differences.md").read_text()
    for id, why in expected().items():
        assert why == "refused" or f"| {why} |" in text, f"{id}: docs/sql/differences.md has no row '{why}'"


def test_recorded(postgres: str) -> None:
    """The file says what a real server says."""
    wrong = []
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("SET TimeZone = 'UTC'")
        for e in corpus():
            if e.id not in LOCALE and (found := _asked(server, e.sql)) != (e.sqlstate or (e.value, e.type)):
                wrong.append(f"{e.id} {e.sql}: {found}")
    assert not wrong, "\n".join(wrong)


def _asked(server: psycopg.Connection[Any], sql: str) -> Any:
    try:
        # a subquery keeps an aggregate's or a set's shape
        row = server.execute(f"SELECT x::text, pg_typeof(x)::text FROM (SELECT {sql} AS x) q".replace("%", "%%"), ()).fetchone()
    except psycopg.Error as error:
        return error.sqlstate
    assert row is not None
    return row


@pytest.mark.spark
@pytest.mark.skipif(not JAR.exists(), reason="the engine's Java library is not built")
@pytest.mark.parametrize("share", [pytest.param(12, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_spark(share: int, seed: int) -> None:
    """`share`: of how many expressions one is tried, chosen by the seed. In a process of its own: a JVM has one session's settings."""
    command = [sys.executable, "-m", "tests.sql.corpus_on_spark", str(JAR), str(seed), str(share)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
