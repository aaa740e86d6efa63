"""Every entry of the function catalogue has PostgreSQL's types, values and SQLSTATEs."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from tailgate.lake.types import Type
from tailgate.sql.functions.catalogue import ROWS
from tests.sql.arguments import of_enum
from tests.sql.oracle import EXPRESSIONS, EXTENSIONS, Case, agree, bound, case_of, expressions, on_duckdb, on_postgres

ROOT = Path(__file__).parents[2]
EVALUATED = [r for r in ROWS if r.duckdb and r.volatility == "immutable" and r.name not in EXTENSIONS and not of_enum(r)]
FAMILIES = ("operator", "prefix", "function", "cast", "aggregate")


def name(type: Type) -> str:
    return str(type) if type.is_array else str(Type(type.name))


@pytest.mark.parametrize("share", [pytest.param(6, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
@pytest.mark.parametrize("family", FAMILIES)
def test_duckdb(share: int, family: str, server: psycopg.Connection[Any], engine: duckdb.DuckDBPyConnection, seed: int) -> None:
    """Evaluates one entry in `share`, at random."""
    wrong: list[str] = []
    rows = [row for row in EVALUATED if row.kind == family]
    for row in random.sample(rows, -(-len(rows) // share)):
        if (case := case_of(row, seed)).expression:
            assert has_fifty_lists(case), row
            wrong += differences(case, server, engine)
    assert not wrong, "\n".join(wrong)


def has_fifty_lists(case: Case) -> bool:
    """Returns whether a case has 50 different argument lists, or all if there are fewer."""
    row = case.function
    few = set(row.arguments) <= {"bool", "bool[]"} or row.kind == "window" or (row.kind == "cast" and row.arguments == ("bpchar",))
    return few or len(set(case.rows)) >= 50


@pytest.mark.parametrize("text", [text for text, _ in EXPRESSIONS])
def test_expression(text: str, server: psycopg.Connection[Any], engine: duckdb.DuckDBPyConnection, seed: int) -> None:
    (case,) = (c for c in expressions(seed) if c.expression == text)
    assert not differences(case, server, engine)


def differences(case: Case, server: psycopg.Connection[Any], engine: duckdb.DuckDBPyConnection) -> list[str]:
    row = case.function
    _, query = bound(case)
    type, expected = on_postgres(server, case, query.columns[0].type)
    messages = []
    if type and type != name(query.columns[0].type):
        messages.append(f"{row}: {case.expression} is {type}, not {query.columns[0].type}")
    results = on_duckdb(engine, case, query, expected)
    for i, (expected_result, result) in enumerate(zip(expected, results, strict=True)):
        if not agree(row, expected_result, result):
            messages.append(f"{row}: {case.expression} of {case.rows[i] if case.rows else ()} is {expected_result}, not {result}")
    return messages


@pytest.mark.spark
@pytest.mark.parametrize("share", [pytest.param(48, id="few"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_spark(share: int, postgres: str, seed: int, tmp_path: Path) -> None:
    """Evaluates one case in `share`, also of the corpus, in another process: a JVM has one session's settings."""
    command = [sys.executable, "-m", "tests.sql.corpus_on_spark", postgres, str(tmp_path), str(seed), str(share)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600 if share > 1 else 4500, check=False)
    assert process.returncode == 0, process.stdout + process.stderr[-2000:]


def test_every_entry_has_a_template_for_duckdb() -> None:
    for row in ROWS:
        assert bool(row.duckdb) or not row.spark, f"{row} has a template for Spark only"
        assert row.kind != "cast" or len(row.arguments) == 1


def test_signatures_are_unique() -> None:
    signatures = [
        (r.kind if r.kind != "aggregate" else "function", r.name, r.arguments, r.result if r.kind == "cast" else None) for r in ROWS
    ]
    assert len(signatures) == len(set(map(str, signatures)))
