"""One task at a time in Spark, and PostgreSQL with the table that the module declares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tailgate.sql.tables.definition import type_name


@pytest.fixture(scope="module")
def cores() -> int:
    return 1


@pytest.fixture
def server(postgres: str, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[Any]]:
    """Yields PostgreSQL with a temporary table `t` that has the requesting module's COLUMNS."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"CREATE TEMPORARY TABLE t ({', '.join(f'{n} {type_name(t)}' for n, t in request.module.COLUMNS.items())})")
        yield connection
