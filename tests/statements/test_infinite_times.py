"""Dates and timestamps before the year 1, after 9999, and infinite: statements, tables and maintained views as PostgreSQL's."""

from __future__ import annotations

import psycopg
import pytest

from tests.statements.conftest import World

pytestmark = pytest.mark.spark

DATES = ("infinity", "-infinity", "0044-03-15 BC", "4713-01-02 BC", "0001-01-01", "2024-02-29", "9999-12-31", "12345-06-07", None)
TIMES = (
    "infinity",
    "-infinity",
    "0044-03-15 10:30:00.5 BC",
    "4713-02-01 00:00 BC",
    "0001-01-01",
    "2024-02-29 23:59:59.999999",
    "9999-12-31 12:00",
    "294246-12-31 01:00",
    None,
)
EXPRESSIONS = (
    "d::text, t::text, z::text, d::timestamp, t::date, z::timestamp, t::time",
    "isfinite(d), isfinite(t), isfinite(z), d < t, d = t, t < z, d > '2020-01-01', t >= 'infinity', z <> '-infinity'",
    "t + interval '1 day', d + 10, d - 1, z + interval '1 hour', greatest(d, '2000-01-01'), least(t, 'infinity')",
    "date_part('year', d), date_part('century', t), date_part('isoyear', z), date_part('month', t), date_part('epoch', z)",
    "extract(month FROM t), extract(dow FROM d), extract(hour FROM z), date_trunc('year', t), date_trunc('hour', z)",
    "to_char(t, 'YYYY-MM-DD BC HH24:MI'), to_char(t, 'CC IYYY Y,YYY'), to_json(d), to_jsonb(t), to_json(z), json_build_array(d, t)",
    "ARRAY[d, 'infinity'], row_to_json(r), t::timestamp(0), coalesce(d, '-infinity'), to_date('0044-03-15 BC', 'YYYY-MM-DD BC')",
    "t AT TIME ZONE 'UTC', z AT TIME ZONE 'Europe/Berlin', timestamp 'infinity' AT TIME ZONE 'Europe/Berlin'",
)
FINITE = "extract(year FROM d), extract(epoch FROM t), d - date '2000-01-01', t - timestamp '2000-01-01', age(t, '2000-01-01')"
QUERIES = (
    *(f"SELECT id, {columns} FROM ages r ORDER BY id" for columns in EXPRESSIONS),
    f"SELECT id, {FINITE} FROM ages WHERE isfinite(d) AND isfinite(t) ORDER BY id",
    "SELECT min(d), max(d), min(t), max(t), min(z), max(z), count(DISTINCT d) FROM ages",
    "SELECT d, t, z FROM ages ORDER BY d, t DESC, z",
    "SELECT d, count(*) FROM ages GROUP BY d ORDER BY d",
    "SELECT a.id, b.id FROM ages a JOIN ages b ON a.d = b.d AND a.t = b.t ORDER BY 1, 2",
    "SELECT id FROM ages WHERE t = 'infinity' OR d = '0044-03-15 BC' ORDER BY id",
    "SELECT id, rank() OVER (ORDER BY t), lag(d) OVER (ORDER BY id) FROM ages ORDER BY id",
)
ERRORS = (
    "SELECT date 'infinity' - date '2000-01-01'",
    "SELECT timestamp 'infinity' - timestamp 'infinity'",
    "SELECT timestamptz '-infinity' - timestamptz '2000-01-01'",
    "SELECT date '4714-11-23 BC'",
    "SELECT date '4714-11-24 BC' - 1",
    "SELECT date '5874897-12-31' + 1",
    "SELECT timestamp '4714-11-24 BC' - interval '1 second'",
    "SELECT date '5874897-12-31'::timestamp",
    "SELECT make_date(0, 1, 1)",
)


def answer(connection: psycopg.Connection, query: str) -> object:
    """Returns the rows as text, or the error."""
    try:
        cursor = connection.execute(query)  # type: ignore[call-overload]
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary
    result = cursor.pgresult
    assert result is not None
    return [[result.get_value(row, n) for n in range(result.nfields)] for row in range(result.ntuples)]


def fill(connection: psycopg.Connection) -> None:
    connection.execute("SET timezone = 'UTC'")
    connection.execute("CREATE TABLE ages (id int PRIMARY KEY, d date, t timestamp, z timestamptz)")
    for id, (day, time) in enumerate(zip(DATES, TIMES, strict=True)):
        connection.execute(
            "INSERT INTO ages VALUES (%s, %s::date, %s::timestamp, %s::timestamptz)", (id, day, time, time)
        )  # parameters as text
    connection.execute("INSERT INTO ages SELECT id + 100, d, t, z FROM ages")
    with connection.cursor().copy("COPY ages FROM STDIN") as copy:
        copy.write("200\tinfinity\t-infinity\tinfinity\n201\t0001-12-31 BC\t0001-12-31 23:00 BC\t20000-01-01 00:00+00\n")


def test_answers_are_those_of_postgresql(sql: psycopg.Connection, postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as oracle:
        oracle.execute("DROP TABLE IF EXISTS ages")
        for connection in (sql, oracle):
            fill(connection)
        for query in (*QUERIES, *ERRORS, "SELECT * FROM ages ORDER BY id"):
            expected = answer(oracle, query)
            assert isinstance(expected, tuple) == (query in ERRORS), query
            assert answer(sql, query) == expected, query
        for format in ("text", "csv", "binary"):
            ours, theirs = (_copied(c, f"COPY (SELECT d, t, z FROM ages ORDER BY id) TO STDOUT (FORMAT {format})") for c in (sql, oracle))
            assert ours == theirs
        oracle.execute("DROP TABLE ages")


def test_precision_keeps_infinity(sql: psycopg.Connection, postgres: str) -> None:
    """Columns with a precision round finite times only, however they are written."""
    with psycopg.connect(postgres, autocommit=True) as oracle:
        oracle.execute("DROP TABLE IF EXISTS moments")
        answers = []
        for connection in (sql, oracle):
            connection.execute("SET timezone = 'UTC'")
            connection.execute("CREATE TABLE moments (id int PRIMARY KEY, t timestamp(2), z timestamptz(0), a timestamp(1)[])")
            connection.execute("INSERT INTO moments VALUES (1, 'infinity', '-infinity', '{infinity,NULL,2001-01-01 00:00:00.55}')")
            connection.execute("INSERT INTO moments VALUES (2, %s::timestamp, %s::timestamptz, NULL)", ("-infinity", "infinity"))
            connection.execute("INSERT INTO moments SELECT id + 2, z, t, ARRAY[t, z] FROM moments")
            with connection.cursor().copy("COPY moments FROM STDIN") as copy:
                copy.write("5\tinfinity\tinfinity\t{-infinity}\n6\t1999-12-31 23:59:59.994999\t1969-12-31 23:59:59.5+00\t{}\n")
            connection.execute("UPDATE moments SET t = z, z = t WHERE id = 1")
            answers.append(answer(connection, "SELECT * FROM moments ORDER BY id"))
        assert answers[0] == answers[1]
        oracle.execute("DROP TABLE moments")


@pytest.mark.parametrize("bounds", ["'-infinity', '2024-01-01'", "'2024-01-01', 'infinity'"])
def test_series_have_finite_bounds(sql: psycopg.Connection, bounds: str) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="infinite bounds"):
        sql.execute(f"SELECT generate_series({bounds}, interval '1 day') LIMIT 1".replace("('", "(timestamp '").encode())


def _copied(connection: psycopg.Connection, statement: str) -> bytes:
    with connection.cursor().copy(statement) as copy:  # type: ignore[arg-type]
        return b"".join(map(bytes, copy))


def test_views_are_maintained(world: World, sql: psycopg.Connection) -> None:
    """A view has the same values after its backfill and after changes, and its Delta table keeps them."""
    fill(sql)
    queries = {
        **{f"v{n}": f"SELECT id, {columns} FROM ages r" for n, columns in enumerate(EXPRESSIONS)},
        "finite": f"SELECT id, {FINITE} FROM ages WHERE isfinite(d) AND isfinite(t)",
        "extremes": "SELECT d AS day, min(t) AS first, max(z) AS last, count(*) AS n FROM ages GROUP BY d",
        "joined": "SELECT a.id, b.id AS other FROM ages a JOIN ages b ON a.d = b.d AND a.t = b.t",
        "copied": "SELECT * FROM ages",
    }
    for name, query in queries.items():
        sql.execute(f"CREATE MATERIALIZED VIEW {name} AS {_named(sql, query)}")  # type: ignore[call-overload]
    changes = (
        "SELECT 1",
        "INSERT INTO ages VALUES (300, 'infinity', '0100-01-01 BC', '-infinity')",
        "UPDATE ages SET d = d + 1, t = t - interval '1 month' WHERE id IN (0, 2, 5)",
        "DELETE FROM ages WHERE d = '-infinity'",
    )
    for change in changes:
        sql.execute(change)  # type: ignore[call-overload]
        for name, query in queries.items():
            shown = f"SELECT * FROM ({query}) q ORDER BY 1, 2"
            assert answer(sql, f"SELECT * FROM {name} ORDER BY 1, 2") == answer(sql, shown), (change, name)


def _named(connection: psycopg.Connection, query: str) -> str:
    """Returns the query with names for its columns, which a view needs."""
    columns = connection.execute(query).description or ()  # type: ignore[call-overload]
    return f"SELECT * FROM ({query}) AS q ({', '.join(f'c{n}' for n in range(len(columns)))})"


def test_a_timestamp_is_not_assigned_to_an_integer(sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE numbers (n int)")
    assert answer(sql, "INSERT INTO numbers VALUES (timestamp '2024-01-01')") == (
        "42804",
        'column "n" is of type integer but expression is of type timestamp without time zone',
    )
