"""The 22 queries of TPC-H over numerics without a declared precision have PostgreSQL's answers, with its digits."""

from __future__ import annotations

import io

import psycopg
import pytest
from psycopg.sql import SQL, Identifier
from pyarrow import csv

from testing.tpch import MONEY, QUERIES, TABLES, generated
from tests.tables.world import World

SCALE = 0.01  # of 10 MB


def fill(connection: psycopg.Connection, data: dict[str, bytes]) -> None:
    for name, columns in TABLES.items():
        types = (f"{column} {'numeric' if type == MONEY else type}" for column, type in columns.items())
        connection.execute(SQL(f"CREATE TABLE {name} ({', '.join(types)})"))  # type: ignore[arg-type]
        with connection.cursor().copy(SQL("COPY {} FROM STDIN (FORMAT csv)").format(Identifier(name))) as copy:
            copy.write(data[name])


def written(connection: psycopg.Connection, query: str) -> list[tuple[bytes | None, ...]]:
    """Returns the texts of the rows."""
    result = connection.execute(SQL(query)).pgresult  # type: ignore[arg-type]
    assert result is not None
    return [tuple(result.get_value(row, column) for column in range(result.nfields)) for row in range(result.ntuples)]


@pytest.mark.long
def test_as_postgresql(world: World, postgres: str) -> None:
    pytest.importorskip("duckdb_extension_tpch")
    source = generated(SCALE)
    data = {}
    for name in TABLES:
        out = io.BytesIO()
        csv.write_csv(source.execute(f"SELECT * FROM {name}").to_arrow_table(), out, csv.WriteOptions(include_header=False))
        data[name] = out.getvalue()
    with psycopg.connect(postgres, autocommit=True) as theirs, psycopg.connect(world.dsn, autocommit=True) as ours:
        theirs.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        for connection in (theirs, ours):
            fill(connection, data)
        for path in QUERIES:
            query = path.read_text().rstrip().removesuffix(";")
            expected, shown = (sorted(written(connection, query), key=repr) for connection in (theirs, ours))
            assert shown == expected, path.stem
