"""Runs SQLAlchemy's dialect suite with psycopg 3 in a schema that is dropped afterwards."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

ADDRESS = f"{os.environ['PGUSER']}@{os.environ['PGHOST']}:{os.environ['PGPORT']}/{os.environ['PGDATABASE']}"
SCHEMAS = ("suite", "test_schema", "test_schema_2")  # the suite needs the last two


def main() -> None:
    os.chdir(Path(__file__).parent)
    with psycopg.connect(f"postgresql://{ADDRESS}", autocommit=True) as connection:
        for schema in SCHEMAS:
            connection.execute(f"CREATE SCHEMA {schema}".encode())
        url = f"postgresql+psycopg://{ADDRESS}?options={quote('-c search_path=suite')}"
        pytest.main(["-q", "-s", "--tb=short", "-W", "ignore", "--dburi", url, "dialect_suite.py"])
        for schema in SCHEMAS:
            connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())


if __name__ == "__main__":
    main()
