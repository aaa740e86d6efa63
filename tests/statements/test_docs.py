"""docs/sql/statements.md does what it says."""

from __future__ import annotations

import psycopg
import pytest

from tests.pages import SQL, check

PAGE = SQL / "statements.md"


@pytest.mark.spark
def test_examples(sql: psycopg.Connection) -> None:
    assert check(sql, PAGE) > 35


@pytest.mark.parametrize(
    "word", ["CREATE VIEW", "CREATE MATERIALIZED VIEW", "OR REPLACE", "ALTER", "COMMENT ON", "SHOW", "EXPLAIN", "DROP"]
)
def test_every_statement_is_told(word: str) -> None:
    assert word in PAGE.read_text()
