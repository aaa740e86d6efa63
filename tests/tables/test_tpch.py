"""The 22 queries of TPC-H over numerics without a declared precision have PostgreSQL's answers, with its digits."""

from __future__ import annotations

import psycopg
import pytest

from tailgate.lake.types import GENERAL
from testing.tpch import QUERIES, copy_tables, generated, texts
from tests.tables.world import World

SCALE = 0.01  # of 10 MB


@pytest.mark.long
def test_as_postgresql(world: World, postgres: str) -> None:
    pytest.importorskip("duckdb_extension_tpch")
    source = generated(SCALE)
    with psycopg.connect(postgres, autocommit=True) as theirs, psycopg.connect(world.dsn, autocommit=True) as ours:
        theirs.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        for connection in (theirs, ours):
            copy_tables(source, connection, GENERAL)
        for path in QUERIES:
            query = path.read_text().rstrip().removesuffix(";")
            expected, shown = (sorted(texts(connection, query), key=repr) for connection in (theirs, ours))
            assert shown == expected, path.stem
