"""Errors in COPY's data: message, detail and context are those of PostgreSQL 15.

This also holds for data that is broken at random.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

import psycopg
import pytest

from tailgate.gateway.encode.copying import SIGNATURE
from tests.tables.world import World

TABLE = "CREATE TABLE t (a int PRIMARY KEY, b varchar(3) NOT NULL, c numeric(4,2) CHECK (c < 50))"
PIECES = [b"x", b'"', b"\\", b"\n", b"9", "ä".encode(), b'"a\nb"', b"\\N"]
RANDOM = 45  # broken inputs; takes 4 s


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, postgres: str) -> Iterator[list[psycopg.Connection]]:
    world = World(tmp_path_factory.mktemp("copy_context") / "lake")
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute("CREATE DATABASE copied")
    theirs = psycopg.connect(postgres, dbname="copied", autocommit=True)
    ours = psycopg.connect(world.dsn, autocommit=True)
    for connection in (theirs, ours):
        connection.execute(TABLE)
    yield [theirs, ours]
    theirs.close()
    ours.close()
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute("DROP DATABASE copied")
    world.close()


def copy_error(connection: psycopg.Connection, options: str, data: bytes) -> object:
    connection.execute("DELETE FROM t")
    try:
        with connection.cursor().copy(f"COPY t FROM STDIN {options}".encode()) as copy:
            copy.write(data)
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary, error.diag.message_detail, error.diag.context
    return connection.execute("SELECT * FROM t ORDER BY a").fetchall()


def same(both: list[psycopg.Connection], options: str, data: bytes) -> object:
    theirs, ours = (copy_error(connection, options, data) for connection in both)
    assert ours == theirs, data
    return theirs


CSV = "WITH (FORMAT csv)"
HEADER = "WITH (FORMAT csv, HEADER)"
MATCH = "WITH (FORMAT csv, HEADER match)"
CASES = [
    ("", b"1\tx\t1\n2\ty\n3\tz\t3\n"),
    ("", b"1\tx\t1\nzwei\ty\n3\tz\t3\n"),  # the line is too short, which is reported before its invalid number
    ("", b"1\tx\t1\nzwei\ty\t2\n3\tz\n"),  # the invalid number is reported, not the later line that is too short
    ("", b"1\tx\tx\nzwei\ty\t2\n"),  # the first row is reported, not the first column
    ("", b"1\tx\t1\n2\tlong\t2\n"),
    ("", b"1\tx\t123.4\n"),
    ("", b"1\tx\t\\N\n2\t\\N\t\\N\n"),
    ("", b"1\tx\t1\n2\ty\t60\n"),
    ("", b"1\tx\t1\n2\ty\t2\n1\tz\t3\n"),
    ("", b"1\tx\t1\n2\ta\\\nb\t2\n3\t\\x\t2\n4\tx\n"),
    ("", b"1\tx\t1\r\n2\ty\r\n"),
    ("", b"1\t" + b"x" * 200 + b"\t1\n"),
    ("", b"1\tx\t1\t" + "ä".encode() * 70 + b"\n"),
    ("", b"1\tx\t1\n2\t\xff\t1\n"),
    ("", b"1\tx\t1\n2\t\\377\t1\n"),
    ("", b"1\tx\t1\n2\t\xc3\t1\n"),  # the bytes shown include those that divide fields and lines
    ("", b"1\tx\t1\n2\xc3\n3\tz\t5\n"),
    ("", b"1\tx\t1\n2\ty\t2\t\xff\n"),  # the invalid byte is reported, not the number of fields
    ("", b"1\tx\t1\n2\ty\t2\t\\377\n"),
    ("", b"1\tx\t1\n2\ty\t2\tz\n3\t\xff\t1\n"),
    (CSV, b"1,x,1\n2\xe2\n3,z,5\n"),
    ("", b"1\tx\t1\n\\.\n"),
    ("WITH (HEADER)", b"a\tb\tc\n1\tx\t1\n2\ty\n"),
    ("WITH (DELIMITER '|', NULL '')", b"1|x|1\n2||2\n"),
    (CSV, b'1,x,1\n2,"a\nb",x\n'),
    (CSV, b'1,"a\nb",1\n2,y,x\n'),  # the line ending is unknown until the first line has ended
    (CSV, b'1,x,1\n2,"a\nb\n\n",1\n3,"y",\'1\'\n'),
    (CSV, b'1,x,1\n2,"long, you"\n'),
    (CSV, b'1,x,1\r\n2,"a\nb",x\r\n'),
    (CSV, b'1,x,1\n2,"never ends\n3,y,1\n'),
    (CSV, b'1,x,1\nzwei,"never ends\n3,y,1\n'),
    (CSV, b"1,x,1\n2,,1\n"),
    (HEADER, b"a,b,c\n1,x,1\n2,y\n"),
    (HEADER, b"a,b,c\n1,x,1\n1,y,2\n"),
    (MATCH, b"a,b,c\n1,x,1\nx,y,2\n"),
    (CSV, b'1,x,99\n2,"never ends\n3,y,1\n'),
    ("", b"1\tx\t99\nzwei\ty\n"),  # the check of an earlier row is reported, not a value of a later one
    (MATCH, b"a,b\n1,x\n"),
    (MATCH, b"a,c,b\n1,x,1\n"),
]


@pytest.mark.parametrize(("options", "data"), CASES)
def test_text_and_csv(both: list[psycopg.Connection], options: str, data: bytes) -> None:
    same(both, options, data)


def _row(*values: bytes | None) -> bytes:
    return struct.pack("!h", len(values)) + b"".join(b"\xff\xff\xff\xff" if v is None else struct.pack("!i", len(v)) + v for v in values)


ONE = struct.pack("!i", 1)
NUMERIC = struct.pack("!hhhhh", 1, 0, 0, 2, 1)
END = b"\xff\xff"


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense",
        SIGNATURE + _row(ONE, b"x", NUMERIC) + END,
        SIGNATURE + _row(ONE, b"x", NUMERIC) + _row(ONE, b"x") + END,
        SIGNATURE + _row(ONE, b"x", NUMERIC) + _row(b"\0", b"x", NUMERIC) + END,
        SIGNATURE + _row(ONE, b"x", NUMERIC) + _row(struct.pack("!i", 2), b"long", NUMERIC) + END,
        SIGNATURE + _row(ONE, None, NUMERIC) + END,
        SIGNATURE + _row(ONE, b"x", NUMERIC)[:-3],
        SIGNATURE + _row(ONE, b"x", NUMERIC) + _row(ONE, b"y", NUMERIC) + END,
        SIGNATURE + _row(ONE, b"x", NUMERIC) + END + b"more",
        SIGNATURE + _row(ONE, b"x", NUMERIC) + b"\0",
        SIGNATURE + _row(ONE, None, NUMERIC) + _row(b"\0", b"x", NUMERIC) + END,
    ],
)
def test_binary(both: list[psycopg.Connection], data: bytes) -> None:
    same(both, "WITH (FORMAT binary)", data)


@pytest.mark.parametrize("options", ["", CSV, "WITH (FORMAT csv, ESCAPE '\\')"])
def test_broken_at_random(both: list[psycopg.Connection], options: str, seed: int) -> None:
    choose = random.Random(seed)
    delimiter = b"," if "csv" in options else b"\t"
    failed = 0
    for _ in range(RANDOM // 3):
        lines = [delimiter.join((b"%d" % n, b"v%d" % n, b"%d" % (n * 5))) + b"\n" for n in range(choose.randrange(1, 6))]
        data = bytearray(b"".join(lines))
        for _ in range(choose.randrange(3)):
            at = choose.randrange(len(data) + 1)
            data[at : at + choose.randrange(2)] = choose.choice([*PIECES, delimiter])
        failed += isinstance(same(both, options, bytes(data)), tuple)
    assert failed


def test_a_read_only_transaction_takes_no_data(both: list[psycopg.Connection]) -> None:
    for connection in both:
        connection.execute("BEGIN READ ONLY")
        with (
            pytest.raises(psycopg.errors.ReadOnlySqlTransaction, match="cannot execute COPY FROM in a read-only transaction"),
            connection.cursor().copy("COPY t FROM STDIN") as copy,
        ):
            copy.write(b"broken\n")
        connection.execute("ROLLBACK")


WRITES = [
    "INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 2.5) RETURNING a, upper(b)",
    "WITH x AS (INSERT INTO t VALUES (3, 'z') RETURNING *) SELECT b, a FROM x UNION ALL SELECT b, a FROM t ORDER BY a",
    "UPDATE t SET b = b || '!' WHERE a < 3 RETURNING *",
    "INSERT INTO t VALUES (9, 'q')",
    "WITH x AS (INSERT INTO t VALUES (9, 'z') RETURNING *) DELETE FROM t",
    "MERGE INTO t USING t AS s ON t.a = s.a WHEN MATCHED THEN DELETE",
    "INSERT INTO t VALUES (1, 'x') RETURNING a",
    "SELECT * FROM t ORDER BY a",
    f"INSERT INTO t VALUES (7, 'x') {' ' * 9_000} RETURNING a",
    f"INSERT INTO t VALUES (8, 'x') {' ' * 9_000}",
    "DELETE FROM t WHERE a > 1 RETURNING t",
    "SELECT * FROM t ORDER BY a",
]


def test_the_query_may_write(both: list[psycopg.Connection]) -> None:
    def copied(connection: psycopg.Connection, write: str) -> object:
        try:
            with connection.cursor().copy(f"COPY ({write}) TO STDOUT WITH (FORMAT csv, HEADER)".encode()) as copy:
                return sorted(b"".join(copy).splitlines())  # RETURNING has no order
        except psycopg.Error as error:
            return error.sqlstate, error.diag.message_primary

    for connection in both:
        connection.execute("DELETE FROM t")
    for write in WRITES:
        theirs, ours = (copied(connection, write) for connection in both)
        assert ours == theirs, write
    for connection in both:
        connection.execute("BEGIN READ ONLY")
        assert copied(connection, "DELETE FROM t RETURNING a") == ("25006", "cannot execute DELETE in a read-only transaction")
        connection.execute("ROLLBACK")
