"""timestamp(p), timestamptz(p), time(p) and interval(p): values are rounded where they are cast or stored."""

from __future__ import annotations

import psycopg
import pytest

from tests.statements.conftest import World

pytestmark = pytest.mark.spark

COLUMNS = "id int PRIMARY KEY, s timestamp(0), z timestamptz(3), t time(1), i interval(2), p timestamp(6)"
VALUES = (
    "'2026-11-23 10:00:00.5', '1999-12-31 23:59:59.9995+00', '23:59:59.95', '-1 day 00:00:00.125', '1999-12-31 23:59:59.123456'",
    "'1999-12-31 23:59:58.5', '2026-01-01 00:00:00.0005+02', '00:00:00.049999', '1 month -00:00:00.005', '0001-01-01'",
    "'1970-01-01 00:00:00.499999', '1969-12-31 23:59:59.4995', '12:00:00.25', '10:00:00.004999', '2000-01-01'",
    "NULL, NULL, NULL, NULL, NULL",
)
QUERIES = (
    "SELECT * FROM moments ORDER BY id",
    "SELECT id, s::text, z::text, t::text, i::text, p::text FROM moments ORDER BY id",
    "SELECT p::timestamp(3), p::time(0), (z - p::timestamptz)::interval(0) FROM moments ORDER BY id",
    "SELECT count(*) FROM moments WHERE p::timestamp(0) = s",
    "SELECT max(s), min(z) FROM moments",
    "SELECT coalesce(s, p), CASE WHEN id = 1 THEN s ELSE s END, nullif(s, p) FROM moments ORDER BY id",
    "SELECT s FROM moments UNION ALL SELECT p FROM moments ORDER BY 1",
    "SELECT timestamp(2) '2026-01-01 00:00:00.005', interval(1) '00:00:00.05', time(0) '23:59:59.6'",
    "SELECT '2026-01-01 00:00:00.1234567+00'::timestamptz(9)",
    "SELECT '2026-01-01 00:00:00.005'::timestamp(2)[], '{\"2026-01-01 00:00:00.6\"}'::timestamp(0)[]",
    "SELECT column_name, data_type, datetime_precision FROM information_schema.columns WHERE table_name = 'moments' ORDER BY 1",
    "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'moments'::regclass AND attnum > 0 ORDER BY 1",
)


def answer(connection: psycopg.Connection, query: str) -> object:
    """Returns the columns with their types and modifiers, and the rows, or the error."""
    try:
        cursor = connection.execute(query)  # type: ignore[call-overload]
    except psycopg.Error as error:
        return error.sqlstate
    assert cursor.pgresult is not None
    types = [(cursor.pgresult.ftype(n), cursor.pgresult.fmod(n)) for n in range(cursor.pgresult.nfields)]
    return types, [[cursor.pgresult.get_value(row, n) for n in range(len(types))] for row in range(cursor.pgresult.ntuples)]


def fill(connection: psycopg.Connection) -> None:
    connection.execute("SET timezone = 'UTC'")
    connection.execute(f"CREATE TABLE moments ({COLUMNS})")  # type: ignore[call-overload]
    for id, values in enumerate(VALUES):
        connection.execute(f"INSERT INTO moments VALUES ({id}, {values})")  # type: ignore[call-overload]
    with connection.cursor().copy("COPY moments FROM STDIN") as copy:
        copy.write("10\t2026-11-23 10:00:00.6\t2026-11-23 10:00:00.6666+00\t10:00:00.06\t00:00:00.666\t2026-11-23 10:00:00.6666666\n")
    connection.execute("INSERT INTO moments SELECT 11, p, p, p::time, p - timestamp '2000-01-01', p FROM moments WHERE id = 0 ORDER BY 1")
    connection.execute("UPDATE moments SET s = p WHERE id = 2")


def test_answers_are_those_of_postgresql(sql: psycopg.Connection, postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as oracle:
        oracle.execute("DROP TABLE IF EXISTS moments")
        for connection in (sql, oracle):
            fill(connection)
        for query in QUERIES:
            assert answer(sql, query) == answer(oracle, query), query
        for statement in ("SELECT '1'::timestamp(1, 2)", "SELECT time(-1) '10:00'", "CREATE TABLE u (t timestamp(1, 2))"):
            assert answer(sql, statement) == answer(oracle, statement), statement
        oracle.execute("DROP TABLE moments")


def test_views_round(world: World, sql: psycopg.Connection) -> None:
    """The engine rounds as the gateway does, and keeps the types."""
    fill(sql)
    query = "SELECT id, p::timestamp(0) AS s, z::timestamptz(1) AS z, p::time(2) AS t, (p - s)::interval(1) AS i, s AS copy FROM moments"
    expected = answer(sql, f"{query} ORDER BY id")
    sql.execute(f"CREATE MATERIALIZED VIEW rounded AS {query}")  # type: ignore[call-overload]
    assert answer(sql, "SELECT * FROM rounded ORDER BY id") == expected
    sql.execute("UPDATE moments SET p = p + interval '0.3 s'")
    assert answer(sql, "SELECT * FROM rounded ORDER BY id") == answer(sql, f"{query} ORDER BY id")
    sql.execute("CREATE TABLE copies AS SELECT * FROM rounded")
    assert answer(sql, "SELECT * FROM copies ORDER BY id") == answer(sql, "SELECT * FROM rounded ORDER BY id")
