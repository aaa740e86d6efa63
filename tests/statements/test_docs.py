"""Pages of docs/sql that are run by a whole system do what they say."""

from __future__ import annotations

import psycopg
import pytest

from tests.pages import SQL, check

PAGE = SQL / "statements.md"


@pytest.mark.spark
@pytest.mark.parametrize(("page", "least"), [("statements", 36), ("temporal-filters", 14), ("functions-in-from", 16), ("subqueries", 16)])
def test_examples(sql: psycopg.Connection, page: str, least: int) -> None:
    assert check(sql, SQL / f"{page}.md") >= least


@pytest.mark.parametrize(
    "word", ["CREATE VIEW", "CREATE MATERIALIZED VIEW", "OR REPLACE", "ALTER", "COMMENT ON", "SHOW", "EXPLAIN", "DROP"]
)
def test_every_statement_is_told(word: str) -> None:
    assert word in PAGE.read_text()
