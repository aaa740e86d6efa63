"""Numbers with more digits than Python reads: each statement is refused or has a result, without an internal error."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.tables.world import World

DIGITS = "9" * 5_000
REFUSED = {
    "CREATE SEQUENCE s START {}": "42601",
    "CREATE TABLE t (a varchar({}))": "42601",
    "SELECT 'a'::varchar({})": "42601",
    "FETCH {} FROM c": "42601",
    "COPY w FROM STDIN WITH (HEADER {})": "42601",
    "SELECT * FROM w ORDER BY {}": "42601",
    "SELECT ${}": "42P02",
    "SELECT relname FROM pg_class WHERE oid = ${}": "42P02",
    "INSERT INTO w (a) SELECT ${}": "42P02",
    "INSERT INTO w (a) SELECT $999999999": "42P02",
    "INSERT INTO w (a) SELECT $0": "42P02",
    "SELECT '{}'::regclass": "22003",
    "SELECT '{}'::regtype": "22003",
    "SELECT has_schema_privilege('{}', 'USAGE')": "22003",
    "SELECT has_column_privilege('w', '{}', 'SELECT')": "42703",
    "SELECT a FROM w WHERE ctid BETWEEN '({},0)' AND '(9,0)'": "0A000",
    "INSERT INTO w VALUES ({})": "22003",
    "SELECT * FROM w AS OF '{}'": "22000",
    "SELECT * FROM w AS OF '--5'": "22000",
    "SELECT to_timestamp('{}', 'FMSS')": "22008",
    "SELECT regexp_replace('a', 'a{{{}}}', 'b')": "2201B",
    "SET statement_timeout = {}": "22023",
    "SET statement_timeout = '{}'": "22023",
    "SET statement_timeout = '-{} s'": "22023",
    "SET statement_timeout = '1e999 s'": "22023",
    "SET work_mem = '1e999'": "22023",
    "SET extra_float_digits = '{}'": "22023",
}


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    world = World(tmp_path_factory.mktemp("long") / "lake")
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE w (a int PRIMARY KEY, b text)")
        yield connection
    world.close()


@pytest.mark.parametrize("text", REFUSED)
def test_long_numbers_are_refused(connection: psycopg.Connection[tuple[object, ...]], text: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(text.format(DIGITS).encode())
    assert caught.value.sqlstate == REFUSED[text]


def test_a_long_integer_is_a_numeric(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    (shown,) = connection.execute(f"SELECT ({DIGITS} - 1)::text".encode()).fetchone() or ("",)
    assert shown == DIGITS[:-1] + "8"
