"""Relations without columns, which PostgreSQL allows, have rows too."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.statements.conftest import World

pytestmark = pytest.mark.spark

TABLES = ("CREATE TABLE wide (a int, b text)", "CREATE TABLE thin (c int)")
ROWS = ("INSERT INTO wide VALUES (1, 'x'), (1, 'y'), (2, NULL)", "INSERT INTO thin VALUES (1), (3)")

QUERIES = (
    "SELECT",
    "SELECT FROM wide",
    "SELECT FROM wide WHERE a > 5",
    "SELECT FROM wide JOIN thin ON a = c",
    "SELECT FROM wide LEFT JOIN thin ON a = c",
    "SELECT * FROM (SELECT) AS s",
    "SELECT * FROM (SELECT FROM wide) AS s",
    "SELECT s.* FROM (SELECT FROM wide) AS s, LATERAL (SELECT FROM thin) AS t",
    "SELECT FROM wide GROUP BY a",
    "SELECT FROM wide GROUP BY ()",
    "SELECT FROM wide HAVING count(*) > 1",
    "SELECT FROM wide ORDER BY a LIMIT 2",
    "SELECT FROM wide ORDER BY a OFFSET 1",
    "SELECT FROM wide WHERE EXISTS (SELECT FROM thin WHERE c = a)",
    "SELECT UNION SELECT",
    "SELECT FROM wide UNION ALL SELECT FROM thin",
    "SELECT FROM wide INTERSECT SELECT FROM thin",
    "SELECT FROM wide EXCEPT ALL SELECT FROM thin",
    "SELECT FROM generate_series(1, 3)",
    "WITH s AS (SELECT FROM wide) SELECT FROM s, s AS t",
)
# queries with columns over relations without columns
OVER = (
    "SELECT count(*) AS n FROM (SELECT FROM wide) AS s",
    "SELECT c FROM thin, (SELECT FROM wide) AS s",
    "SELECT c, (SELECT count(*) FROM (SELECT FROM wide WHERE a = c) AS s) AS n FROM thin",
    "SELECT row_number() OVER () AS n FROM (SELECT FROM wide) AS s",
    "SELECT * FROM generate_series(1, 100000) AS n",
    "SELECT * FROM generate_series(1, 3) WITH ORDINALITY AS n (a, b)",
    "SELECT n FROM (SELECT FROM thin) AS s, generate_series(1, 2) AS n",
    "SELECT n, m FROM generate_series(1, 2) AS n, generate_series(n, 3) AS m",
    'SELECT * FROM jsonb_each(\'{"a": 1, "b": [2]}\') AS e (k, v)',
    "SELECT 1 AS one FROM (SELECT FROM wide LIMIT 2) AS s",
    "SELECT 1 AS one FROM (SELECT FROM wide GROUP BY a) AS s",
    "SELECT 1 AS one FROM (SELECT FROM wide GROUP BY ()) AS s",
    "SELECT 1 AS one FROM (SELECT FROM wide UNION ALL SELECT FROM thin) AS s",
    "SELECT 1 AS one FROM (SELECT FROM wide UNION SELECT FROM thin) AS s",
    "SELECT 1 AS one FROM (SELECT FROM wide INTERSECT ALL SELECT FROM thin) AS s",
    "SELECT EXISTS (SELECT FROM wide) AS e",
)


@pytest.fixture
def oracle(postgres: str) -> Iterator[psycopg.Connection]:
    """Yields a PostgreSQL connection with the same tables, as temporary tables."""
    with psycopg.connect(postgres) as connection:
        for statement in (*TABLES, *ROWS):
            connection.execute(statement)
        yield connection
        connection.rollback()


@pytest.fixture
def both(sql: psycopg.Connection, oracle: psycopg.Connection) -> tuple[psycopg.Connection, psycopg.Connection]:
    for statement in (*TABLES, *ROWS):
        sql.execute(statement)
    return sql, oracle


def test_a_query_without_columns_has_rows(both: tuple[psycopg.Connection, psycopg.Connection]) -> None:
    for query in QUERIES:
        ours, theirs = ([(), *c.execute(query).fetchall()] for c in both)
        assert ours == theirs, query
        ours, theirs = (c.execute(query, prepare=True, binary=True).statusmessage for c in both)
        assert ours == theirs, query


def test_a_query_over_one_without_columns(both: tuple[psycopg.Connection, psycopg.Connection]) -> None:
    for query in OVER:
        ours, theirs = (sorted(c.execute(query).fetchall()) for c in both)
        assert ours == theirs, query


def test_a_view_over_a_relation_without_columns(both: tuple[psycopg.Connection, psycopg.Connection]) -> None:
    sql, oracle = both
    for n, query in enumerate(OVER):
        sql.execute(f"CREATE MATERIALIZED VIEW over_{n} AS {query}")
    for _ in range(2):
        for n, query in enumerate(OVER):
            ours, theirs = sorted(sql.execute(f"TABLE over_{n}").fetchall()), sorted(oracle.execute(query).fetchall())
            assert ours == theirs, query
        for connection in both:
            connection.execute("DELETE FROM wide WHERE b = 'x'")
            connection.execute("INSERT INTO thin VALUES (1)")


def test_cursors_and_copies_without_columns(both: tuple[psycopg.Connection, psycopg.Connection]) -> None:
    answers = []
    for connection in both:
        with connection.transaction():
            connection.execute("DECLARE c SCROLL CURSOR FOR SELECT FROM wide")
            moves = ("FETCH 2 FROM c", "FETCH ALL FROM c", "FETCH BACKWARD 2 FROM c", "MOVE BACKWARD ALL FROM c", "FETCH LAST FROM c")
            results = [connection.execute(move).statusmessage for move in moves]
        with connection.cursor().copy("COPY (SELECT FROM wide) TO STDOUT") as copy:
            results.append(b"".join(copy).decode())  # type: ignore[arg-type]
        answers.append(results)
    assert answers[0] == answers[1]


def test_a_view_without_columns(both: tuple[psycopg.Connection, psycopg.Connection]) -> None:
    for connection in both:
        connection.execute("CREATE VIEW bare AS SELECT FROM wide")
    assert both[0].execute("TABLE bare").fetchall() == both[1].execute("TABLE bare").fetchall() == [(), (), ()]
    with pytest.raises(psycopg.errors.InvalidObjectDefinition):
        both[0].execute("CREATE MATERIALIZED VIEW bare_kept AS SELECT FROM wide")


@pytest.mark.parametrize("query", ["SELECT FROM wide", "SELECT FROM wide JOIN thin ON a = c", "SELECT"])
def test_followers_without_columns(both: tuple[psycopg.Connection, psycopg.Connection], query: str) -> None:
    sql, oracle = both
    for _ in range(2):
        with sql.transaction():
            sql.execute(f"DECLARE c CURSOR FOR TAIL ({query})")
            changes = sql.execute("FETCH ALL c WITH (timeout = '0s')").fetchall()
        assert sum(weight for _, weight in changes) == len(oracle.execute(query).fetchall())
        for connection in both:
            connection.execute("INSERT INTO thin VALUES (1)")


def test_changes_without_columns(both: tuple[psycopg.Connection, psycopg.Connection], world: World) -> None:
    sql, _ = both
    with world.connect() as other, sql.transaction():
        sql.execute("DECLARE c CURSOR FOR TAIL (SELECT FROM wide JOIN thin ON a = c)")
        assert [w for _, w in sql.execute("FETCH ALL c WITH (timeout = '0s')").fetchall()] == [2]
        other.execute("DELETE FROM thin WHERE c = 1")
        assert [w for _, w in sql.execute("FETCH 1 c WITH (timeout = '60s')").fetchall()] == [-2]
