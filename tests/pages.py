"""Pages of docs whose examples are run: each statement is followed by its tag, its rows or its error."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg

SQL = Path(__file__).parents[1] / "docs" / "sql"


def examples(page: Path) -> list[tuple[str, list[str]]]:
    """Statements and what is said behind them."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```sql\n(.*?)```", page.read_text(), re.DOTALL):
        for part in re.finditer(r"((?:(?!--).)*?);\n((?:-- [^\n]*\n)+)", block, re.DOTALL):
            found.append((part[1].strip(), [line.removeprefix("-- ") for line in part[2].splitlines()]))
    return found


def check(connection: psycopg.Connection, page: Path) -> int:
    """Runs a page; the number of its examples. Rows without ORDER BY, EXPLAIN aside, are compared in any order."""
    pages = examples(page)
    for statement, expected in pages:
        try:
            cursor = connection.execute(statement)  # type: ignore[call-overload]
            rows = [] if cursor.description is None else [" | ".join(map(shown, row)) for row in cursor.fetchall()]
            got = rows or [str(cursor.statusmessage)]
        except psycopg.Error as error:
            got = [f"ERROR {error.sqlstate}: {error.diag.message_primary}"]
        ordered = "ORDER BY" in statement or statement.startswith("EXPLAIN")
        assert (got if ordered else sorted(got)) == (expected if ordered else sorted(expected)), f"{statement}\n{got}"
    return len(pages)


def shown(value: object) -> str:
    return {"None": "NULL", "True": "true", "False": "false"}.get(str(value), str(value))
