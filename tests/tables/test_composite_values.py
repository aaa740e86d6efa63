"""Rows of composite types as parameters, in results in text and binary form, in COPY, after a restart, and where they are refused."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.types.composite import CompositeInfo, register_composite

from tests.tables.world import World

SCHEMA = """
    CREATE TYPE complex AS (r float8, i float8);
    CREATE TYPE item AS (name varchar(5), amount numeric, c complex, tags text[], day date);
    CREATE TABLE items (id int PRIMARY KEY, item item);
    INSERT INTO items VALUES (1, '(a b,1.50,"(1,2)","{x,NULL}",2020-01-31)'), (2, NULL), (3, '(,,,,)');
"""


@pytest.fixture
def sql(world: World) -> Iterator[psycopg.Connection]:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        for statement in SCHEMA.split(";\n"):
            connection.execute(statement)
        for name in ("complex", "item"):
            info = CompositeInfo.fetch(connection, name)
            assert info is not None
            register_composite(info, connection)
        yield connection


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_results_and_parameters(sql: psycopg.Connection, postgres: str, binary: bool) -> None:
    with psycopg.connect(postgres, autocommit=True) as theirs:
        theirs.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        theirs.execute(SCHEMA)
        query = "SELECT id, item, (item).c, ARRAY[(item).c] FROM items ORDER BY id"
        rows = []
        for connection in (theirs, sql):
            for name in ("complex", "item"):
                info = CompositeInfo.fetch(connection, name)
                assert info is not None
                register_composite(info, connection)
            rows.append(connection.cursor(binary=binary).execute(query).fetchall())
        assert repr(rows[0]) == repr(rows[1])
        (_, item, c, _) = rows[1][0]
        placeholder = "%b" if binary else "%t"
        for connection in (theirs, sql):
            parameter = connection.execute(f"SELECT id FROM items WHERE (item).c = {placeholder}::complex", (c,))
            assert parameter.fetchall() == [(1,)]
            written = connection.execute(f"UPDATE items SET item = {placeholder} WHERE id = 2 RETURNING item", (item,))
            assert repr(written.fetchall()) == repr([(item,)])


@pytest.mark.parametrize(
    ("data", "sqlstate", "message"),
    [
        (struct.pack("!i", 1), "42804", "wrong number of columns: 1, expected 2"),
        (struct.pack("!iIi", 2, 701, 8), "22P03", "insufficient data left in message"),
        (struct.pack("!iIiI", 2, 701, -1, 23) + b"\0\0\0\4\0\0\0\1", "42804", "binary data has type 23 (integer) instead of expected 701"),
        (struct.pack("!iIi", 2, 701, 9) + b"\0" * 9, "22P03", "improper binary format in record column 1"),
        (struct.pack("!iIiIi", 2, 701, -1, 701, -1) + b"\0", "22P03", "incorrect binary data format"),
        (b"\0", "08P01", "insufficient data left in message"),
    ],
)
def test_binary_values_that_are_not_valid(sql: psycopg.Connection, postgres: str, data: bytes, sqlstate: str, message: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as theirs:
        theirs.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        theirs.execute(SCHEMA)
        for connection in (theirs, sql):
            result = connection.pgconn.exec_params(b"SELECT $1::complex", [data], param_formats=[1])
            shown = (result.error_field(psycopg.pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode()
            assert result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == sqlstate.encode(), shown
            assert shown.startswith(message)


def test_copy(sql: psycopg.Connection) -> None:
    with sql.cursor().copy("COPY items TO STDOUT") as copy:
        lines = b"".join(bytes(part) for part in copy)
    assert lines == b'1\t("a b",1.50,"(1,2)","{x,NULL}",2020-01-31)\n2\t\\N\n3\t(,,,,)\n'
    with sql.cursor().copy("COPY items FROM STDIN") as copy:
        copy.write(lines.replace(b"1\t", b"11\t").replace(b"2\t", b"12\t").replace(b"3\t", b"13\t"))
    query = "SELECT item::text FROM items WHERE id % 10 = {} ORDER BY id"
    for id in (1, 2, 3):
        first, second = sql.execute(query.format(id)).fetchall()
        assert first == second
    with (
        pytest.raises(psycopg.errors.InvalidTextRepresentation, match="malformed record literal"),
        sql.cursor().copy("COPY items FROM STDIN") as copy,
    ):
        copy.write(b"20\t(a\n")
    with pytest.raises(psycopg.errors.StringDataRightTruncation), sql.cursor().copy("COPY items FROM STDIN") as copy:
        copy.write(b"20\t(abcdef,,,,)\n")


def test_restart(tmp_path: Path) -> None:
    query = "SELECT id, item::text, (item).c.r FROM items ORDER BY id"
    expected = [(1, '("a b",1.50,"(1,2)","{x,NULL}",2020-01-31)', 1.0), (2, None, None), (3, "(,,,,)", None)]
    for number in range(2):
        world = World(tmp_path / "lake")
        try:
            with psycopg.connect(world.dsn, autocommit=True) as connection:
                for statement in SCHEMA.split(";\n") if number == 0 else ():
                    connection.execute(statement)
                assert connection.execute(query).fetchall() == expected
                connection.execute("UPDATE items SET item.day = '2021-01-01' WHERE id = 1")
                connection.execute("UPDATE items SET item.day = '2020-01-31' WHERE id = 1")
        finally:
            world.close()


def check_refused(sql: psycopg.Connection, error: type[psycopg.Error], cases: Iterable[tuple[str, str]]) -> None:
    """Checks that each statement raises the error with its message."""
    for statement, message in cases:
        with pytest.raises(error) as refused:
            sql.execute(statement.encode())
        assert refused.value.diag.message_primary == message


def test_limits(sql: psycopg.Connection) -> None:
    for level in range(1, 33):
        sql.execute(f"CREATE TYPE level{level} AS (a {'int' if level == 1 else f'level{level - 1}'})".encode())
    sql.execute(f"CREATE TYPE wide AS ({', '.join(f'a{n} int' for n in range(800))})".encode())
    cases = (
        ("CREATE TYPE deep AS (a level32)", 'type "deep" has more than 32 levels'),
        ("ALTER TYPE level1 ADD ATTRIBUTE c complex", 'type "level32" has more than 32 levels'),
        ("CREATE TYPE twice AS (a wide, b wide)", 'type "twice" has more than 1600 fields, with those of its attributes'),
    )
    check_refused(sql, psycopg.errors.ProgramLimitExceeded, cases)


def test_refused(sql: psycopg.Connection) -> None:
    for name, attribute in (("part", "a int"), ("whole", "p part"), ("solo", "a int")):
        sql.execute(f"CREATE TYPE {name} AS ({attribute})".encode())
    sql.execute("CREATE VIEW wholes AS SELECT NULL::whole AS w")
    sql.execute("CREATE TEMPORARY TABLE solos (s solo[])")
    cases = (
        ("CREATE TABLE t (c complex PRIMARY KEY)", "a primary key of type complex is not supported"),
        ("CREATE TABLE t (c complex UNIQUE)", "a unique constraint of type complex is not supported"),
        ("CREATE UNIQUE INDEX ON items (item)", "a unique index on a column of type item is not supported"),
        ("SELECT unnest(ARRAY[(item).c]) FROM items", "unnest of arrays of rows is not supported"),
        ("CREATE TYPE empty AS ()", "a composite type without attributes is not supported"),
        ("CREATE FUNCTION f(c complex) RETURNS int LANGUAGE SQL RETURN 1", "an argument of type complex is not supported"),
        ("DROP TYPE complex CASCADE", "dropping an attribute of composite type item with its type is not supported"),
        ("ALTER TYPE part ADD ATTRIBUTE b int", 'cannot alter type "part" because view wholes names type whole'),
        ("ALTER TYPE solo ADD ATTRIBUTE b int", 'cannot alter type "solo" because column "solos.s" uses it'),
        ("ALTER TYPE complex ADD ATTRIBUTE x int", 'cannot alter type "complex" because column "items.item" uses it'),
    )
    check_refused(sql, psycopg.errors.FeatureNotSupported, cases)
