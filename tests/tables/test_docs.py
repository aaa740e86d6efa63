"""docs/sql/tables.md does what it says: each statement is followed by its tag, its rows or its error."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

from tests.tables.world import World

PAGE = Path(__file__).parents[2] / "docs" / "sql" / "tables.md"


def examples() -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for part in re.finditer(r"((?:(?!--).)*?);\n((?:-- [^\n]*\n)+)", block, re.DOTALL):
            found.append((part[1].strip(), [line.removeprefix("-- ") for line in part[2].splitlines()]))
    return found


def test_examples(world: World) -> None:
    pages = examples()
    assert len(pages) > 30
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        for statement, expected in pages:
            try:
                cursor = connection.execute(statement)
                rows = [] if cursor.description is None else [" | ".join(map(str, row)) for row in cursor.fetchall()]
                got = rows or [str(cursor.statusmessage)]
            except psycopg.Error as error:
                got = [f"ERROR {error.sqlstate}: {error.diag.message_primary}"]
            assert (got if "ORDER BY" in statement else sorted(got)) == expected, statement


@pytest.mark.parametrize("word", ["INSERT", "UPDATE", "DELETE", "TRUNCATE", "COPY", "CREATE TABLE", "DROP TABLE", "SAVEPOINT"])
def test_every_statement_is_told(word: str) -> None:
    assert word in PAGE.read_text()
