"""docs/sql/tables.md does what it says: each statement is followed by its tag, its rows or its error."""

from __future__ import annotations

import psycopg
import pytest

from tests.pages import SQL, check
from tests.tables.world import World

PAGE = SQL / "tables.md"


def test_examples(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        assert check(connection, PAGE) > 30


@pytest.mark.parametrize("word", ["INSERT", "UPDATE", "DELETE", "TRUNCATE", "COPY", "CREATE TABLE", "DROP TABLE", "SAVEPOINT"])
def test_every_statement_is_told(word: str) -> None:
    assert word in PAGE.read_text()
