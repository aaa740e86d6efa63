"""Connections to PostgreSQL and DuckDB, which evaluate expressions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import psycopg
import pytest

from tailgate.sql.render.duckdb_functions import install
from tests.sql.oracle import pgcrypto


@pytest.fixture(scope="module")
def server(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres, autocommit=True) as connection, pgcrypto(connection):
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    install(connection)
    yield connection
    connection.close()
