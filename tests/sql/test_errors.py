"""Tests errors of invalid statements against PostgreSQL: SQLSTATE, message, hint and position."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.lake.errors import TailgateError
from tailgate.sql.bind import bind_query, bind_view
from tailgate.sql.statements import CreateView, Select, parse
from tests.sql.catalogs import DDL, make_catalog

STATEMENTS = [
    line.replace("\\n", "\n")
    for line in (Path(__file__).parent / "errors.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
Said = tuple[str, str, int | None, str | None]


@pytest.fixture(scope="module")
def server(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        for statement in DDL:
            connection.execute(statement)  # type: ignore[arg-type]
        yield connection


def theirs(server: psycopg.Connection[Any], text: str) -> Said | None:
    try:
        server.execute(text)  # type: ignore[arg-type]
    except psycopg.Error as error:
        diagnostic = error.diag
        position = int(diagnostic.statement_position) if diagnostic.statement_position else None
        return diagnostic.sqlstate or "", diagnostic.message_primary or "", position, diagnostic.message_hint
    return None


def ours(text: str) -> Said | None:
    catalog = make_catalog()
    try:
        match parse(text):
            case Select(query=query):
                bind_query(query, catalog, None)
            case CreateView() as view:
                bind_view(view, catalog)
    except TailgateError as error:
        return error.sqlstate, error.message, None if error.position is None else error.position + 1, error.hint
    return None


@pytest.mark.parametrize("text", STATEMENTS)
def test_error(server: psycopg.Connection[Any], text: str) -> None:
    expected = theirs(server, text)
    assert expected is not None, "PostgreSQL takes this one"
    assert ours(text) == expected


def test_there_are_enough() -> None:
    assert len(STATEMENTS) >= 60
