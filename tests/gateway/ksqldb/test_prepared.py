"""Prepared queries of ksqlDB remain usable after a change of the catalog that does not concern them."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

from tests.gateway.ksqldb.world import KsqldbWorld

QUERIES = {
    "pull": "SELECT n FROM averages WHERE sensor = 's1';",
    "scan": "SELECT * FROM averages;",
    "table of PostgreSQL": "SELECT * FROM t;",
    "push": "SELECT * FROM averages EMIT CHANGES LIMIT 2;",
    "columns": "SELECT sensor, n + 1 AS m FROM averages EMIT CHANGES LIMIT 1;",
}


@pytest.mark.parametrize("dialect", ["ksqldb", "ksqldb_http"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_change_of_the_catalog(world: KsqldbWorld, dialect: str, query: str) -> None:
    settings = f"-c tailgate.dialect={dialect} -c auto.offset.reset=earliest"
    with psycopg.connect(world.dsn, autocommit=True, options=settings) as reader, psycopg.connect(world.dsn, autocommit=True) as other:
        text = QUERIES[query].encode()
        columns, rows = _result(reader, text)
        other.execute(sql.SQL("CREATE TABLE {} (id int PRIMARY KEY)").format(sql.Identifier(f"other {dialect} {query}")))
        world.together()
        assert _result(reader, text) == (columns, rows)


def _result(connection: psycopg.Connection, text: bytes) -> tuple[list[str], list[tuple[object, ...]]]:
    """Returns the columns and the rows, which are without the time. By HTTP, the column of the time has the id of the query as its name."""
    cursor = connection.execute(text, prepare=True)
    columns = [column.name for column in cursor.description or ()]
    times = columns[0] == "mz_timestamp" or columns[0].startswith("TRANSIENT_")
    return columns, [row[times:] for row in cursor]
