"""Many statements at once: executemany, pipelines and COPY, compared with PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import Callable, Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from tailgate.gateway.execute.blocks import commits
from tests.tables.world import World

Connection = psycopg.Connection[Any]


@pytest.fixture
def both(world: World, postgres: str) -> Iterator[Callable[[Callable[[Connection], Any]], Any]]:
    """Yields a function that runs a call on both servers and returns their common answer."""
    with psycopg.connect(postgres, autocommit=True) as theirs, psycopg.connect(world.dsn, autocommit=True) as ours:
        theirs.execute("SET timezone = 'UTC'")
        theirs.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")

        def ask(work: Callable[[Connection], Any]) -> Any:
            answers = []
            for connection in (theirs, ours):
                try:
                    answers.append(work(connection))
                except psycopg.Error as error:
                    answers.append((error.sqlstate, error.diag.message_primary, error.diag.message_detail))
            assert answers[0] == answers[1]
            return answers[1]

        yield ask


def ran(sql: str, *values: object) -> Callable[[Connection], Any]:
    def work(connection: Connection) -> Any:
        cursor = connection.execute(sql, values or None)
        return (cursor.statusmessage, cursor.fetchall() if cursor.description else None)

    return work


def test_executemany(both: Callable[[Callable[[Connection], Any]], Any]) -> None:
    both(ran("CREATE TABLE t (id int PRIMARY KEY, name varchar(5), n numeric(6,2))"))

    def many(rows: list[tuple[Any, ...]], sql: str = "INSERT INTO t VALUES (%s, %s, %s)") -> Callable[[Connection], Any]:
        def work(connection: Connection) -> Any:
            cursor = connection.cursor()
            cursor.executemany(sql, rows)
            return cursor.rowcount

        return work

    assert both(many([(i, f"n{i}", Decimal(i) / 3) for i in range(300)])) == 300
    assert both(many([(i, "x", 1) for i in (1000, 1001, 5, 1002)])) == (
        "23505",
        'duplicate key value violates unique constraint "t_pkey"',
        "Key (id)=(5) already exists.",
    )
    both(many([(2000, "x", 1), (2001, "too long", 1)]))
    both(many([(2000, "x", 1), (2000, "x", 1)]))
    both(many([(i, None, None) for i in range(3000, 3100)]))
    assert both(many([(f"u{i}", i) for i in range(0, 300, 7)], "UPDATE t SET name = %s WHERE id = %s")) == 43
    both(many([(i,) for i in range(100, 200)], "DELETE FROM t WHERE id = %s"))
    both(ran("SELECT * FROM t ORDER BY id"))


def test_a_pipeline_is_one_transaction(both: Callable[[Callable[[Connection], Any]], Any]) -> None:
    both(ran("CREATE TABLE t (id int PRIMARY KEY, v int)"))

    def pipelined(*statements: str) -> Callable[[Connection], Any]:
        def work(connection: Connection) -> Any:
            answers = []
            with connection.pipeline():
                cursors = [connection.execute(s) for s in statements]
            for cursor in cursors:
                answers.append((cursor.statusmessage, cursor.fetchall() if cursor.description else None))
            return answers

        return work

    both(pipelined("INSERT INTO t VALUES (1, 1)", "INSERT INTO t VALUES (2, 2)", "SELECT count(*) FROM t", "UPDATE t SET v = v + 1"))
    both(pipelined("INSERT INTO t VALUES (3, 1)", "DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (1, 5)", "SELECT sum(v) FROM t"))
    both(pipelined("INSERT INTO t VALUES (10, 1)", "SELECT 1 / 0"))
    both(ran("PREPARE w AS INSERT INTO t VALUES ($1, 1)"))
    both(pipelined("EXECUTE w (11)", "EXECUTE w (12)", "SELECT count(*) FROM t"))
    both(pipelined("EXECUTE w (13)", "SELECT 1 / 0"))
    both(pipelined("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE w (14)", "SELECT 1 / 0"))
    both(pipelined("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) INSERT INTO t VALUES (15, 1)", "SELECT 1 / 0"))
    both(pipelined("EXECUTE w (16)", "EXECUTE w (1)"))
    both(ran("SELECT * FROM t ORDER BY id"))


def test_blocks_of_a_driver(both: Callable[[Callable[[Connection], Any]], Any]) -> None:
    both(ran("CREATE TABLE t (id int PRIMARY KEY, v int)"))

    def block(connection: Connection) -> Any:
        with connection.transaction():
            connection.cursor().executemany("INSERT INTO t VALUES (%s, %s)", [(i, i) for i in range(20)])
            with connection.transaction():
                connection.execute("UPDATE t SET v = v * 2")
            try:
                with connection.transaction():
                    connection.execute("DELETE FROM t")
                    connection.execute("INSERT INTO t VALUES (1, 1), (1, 1)")
            except psycopg.errors.UniqueViolation:
                pass
            return connection.execute("SELECT sum(v), count(*) FROM t").fetchall()

    assert both(block) == [(380, 20)]
    both(ran("SELECT * FROM t ORDER BY id"))


def copied(sql: str, data: bytes) -> Callable[[Connection], Any]:
    def work(connection: Connection) -> Any:
        cursor = connection.cursor()
        with cursor.copy(sql) as copy:
            copy.write(data)
        return cursor.statusmessage

    return work


COPIES: list[tuple[str, bytes]] = [
    ("COPY t FROM STDIN", b"1\ta\t1.5\n2\t\\N\t\\N\n3\tx\\ty\\\\\\n\\x41\\101\t-2\n"),
    ("COPY t FROM STDIN", b"4\tlast line has no end\t1"),
    ("COPY t FROM STDIN", b"5\tbefore\t1\n\\.\n6\tafter\t1\n"),
    ("COPY t FROM STDIN", b"7\t\\\\N\t1\n8\t\t1\n9\ta\\Nb\t1\n"),
    ("COPY t FROM STDIN", b"10\tcr\t1\r\n11\tcr\t1\r\n"),
    ("COPY t (name, id) FROM STDIN", b"order\t12\n"),
    ("COPY t (id) FROM STDIN (DELIMITER '|', NULL 'none')", b"13\n14\n"),
    ("COPY t FROM STDIN (DELIMITER '|', NULL 'none')", b"15|none|2\n16|\\||3\n"),
    ("COPY t FROM STDIN", b"17\ttoo few\n"),
    ("COPY t FROM STDIN", b"17\ttoo\t1\tmany\n"),
    ("COPY t FROM STDIN", b"x\tnot a number\t1\n"),
    ("COPY t FROM STDIN", b"17\tnumeric\t123456\n"),
    ("COPY t FROM STDIN", b"17\tok\t1\n1\tdup\t1\n"),
    ("COPY t FROM STDIN", b"17\tsame\t1\n17\tsame\t1\n"),
    ("COPY t FROM STDIN", b"\\N\tno key\t1\n"),
    ("COPY t FROM STDIN", b"20\tbad \xff\t1\n"),
    ("COPY t FROM STDIN", b""),
    ("COPY t FROM STDIN (HEADER)", b"id\tname\tn\n21\ta\t1\n"),
    ("COPY t FROM STDIN (HEADER match)", b"id\tname\tn\n22\ta\t1\n"),
    ("COPY t FROM STDIN (HEADER match)", b"id\tnome\tn\n23\ta\t1\n"),
    ("COPY t FROM STDIN CSV", b'30,"a,b""c",1\n31,,\n32,"",2\n33,mid"d,l"e,3\n34,"two\nlines",4\n'),
    ("COPY t FROM STDIN (FORMAT csv, HEADER)", b"id,name,n\n35,a,1\n"),
    ("COPY t FROM STDIN (FORMAT csv, DELIMITER ';', QUOTE '''', NULL 'nil')", b"36;'a;b''c';1\n37;nil;nil\n38;'nil';1\n"),
    ("COPY t FROM STDIN (FORMAT csv, ESCAPE '\\')", b'39,"a\\"b\\\\c",1\n'),
    ("COPY t FROM STDIN CSV", b'40,"never closed,1\n'),
    ("COPY t FROM STDIN CSV", b"41,a\n"),
    ("COPY t FROM STDIN CSV", b'42,"\n\\.\n",1\n\\.\n43,after,1\n'),
    ("COPY nosuch FROM STDIN", b""),
    ("COPY t (nope) FROM STDIN", b""),
    ("COPY t (id, id) FROM STDIN", b""),
    ("COPY t FROM STDIN (FORMAT nope)", b""),
]


def test_copy_from(both: Callable[[Callable[[Connection], Any]], Any]) -> None:
    both(ran("CREATE TABLE t (id int PRIMARY KEY, name text, n numeric(6,2) DEFAULT 0.5)"))
    for sql, data in COPIES:
        both(copied(sql, data))
    rows = both(ran("SELECT * FROM t ORDER BY id"))[1]
    assert len(rows) > 25


KINDS = (
    "i2 int2, i4 int4, i8 int8, f8 float8, n numeric(10,3), b bool, t text, "
    "v varchar(6), c char(4), d date, ts timestamp, tz timestamptz, u uuid, by bytea"
)


def value(kind: str, mine: random.Random) -> object:
    if mine.random() < 0.15:
        return None
    match kind:
        case "int2" | "int4" | "int8":
            return mine.randrange(-(2 ** (8 * int(kind[3]) - 1)), 2 ** (8 * int(kind[3]) - 1))
        case "float8":
            return mine.choice([0.0, -1.5, 1e300, 1e-7, mine.random()])
        case "numeric(10,3)":
            return Decimal(mine.randrange(-(10**10) + 1, 10**10)).scaleb(-3)
        case "bool":
            return mine.random() < 0.5
        case "text" | "varchar(6)" | "char(4)":
            length = {"text": 12, "varchar(6)": 6, "char(4)": 4}[kind]
            return "".join(mine.choice("aé\t\\,\"' N.\n") for _ in range(mine.randrange(length + 1)))
        case "date":
            return date(mine.randrange(1, 9999), mine.randrange(1, 13), mine.randrange(1, 29))
        case "timestamp":
            return datetime(mine.randrange(1, 9999), mine.randrange(1, 13), 28, 23, 59, 59, mine.randrange(10**6))
        case "timestamptz":
            return datetime(mine.randrange(1900, 2100), 5, 6, 7, 8, 9, mine.randrange(10**6), timezone.utc)
        case "uuid":
            return str(__import__("uuid").UUID(int=mine.getrandbits(128)))
        case "bytea":
            return mine.randbytes(mine.randrange(6))
    raise AssertionError(kind)


@pytest.mark.parametrize("form", ["text", "csv", "binary"])
def test_random_rows_are_read_back(both: Callable[[Callable[[Connection], Any]], Any], form: str, seed: int) -> None:
    mine = random.Random(seed)
    kinds = [k.split()[1] for k in KINDS.split(", ")]
    rows = [[value(k, mine) for k in kinds] for _ in range(60)]
    both(ran(f"CREATE TABLE k ({KINDS})"))

    def write(connection: Connection) -> Any:
        cursor = connection.cursor()
        if form == "csv":
            quoted = (",".join("" if v is None else '"' + text(v).replace('"', '""') + '"' for v in row) for row in rows)
            with cursor.copy("COPY k FROM STDIN CSV") as copy:
                copy.write("\n".join(quoted) + "\n")
        else:
            with cursor.copy(f"COPY k FROM STDIN (FORMAT {form})") as copy:
                if form == "binary":
                    copy.set_types([k.split("(")[0].replace("char", "bpchar").replace("varbpchar", "varchar") for k in kinds])
                for row in rows:
                    copy.write_row(row)
        return cursor.statusmessage

    both(write)
    both(lambda c: sorted(c.execute("SELECT * FROM k").fetchall(), key=repr))


def text(v: object) -> str:
    return "\\x" + v.hex() if isinstance(v, bytes) else str(v)


def test_definitions(both: Callable[[Callable[[Connection], Any]], Any]) -> None:
    """The changes of the catalog in a pipeline take effect together, at Sync."""

    def piped(*texts: str) -> Callable[[Connection], Any]:
        def work(connection: Connection) -> Any:
            with connection.pipeline():
                cursors = [connection.execute(text, prepare=True) for text in texts]
            return [cursor.statusmessage for cursor in cursors]

        return work

    created = ("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)", "CREATE TABLE u AS SELECT id FROM t")
    assert both(piped(*created, "SELECT 1/0"))[0] == "22012"
    assert both(ran("SELECT * FROM t"))[0] == "42P01"
    assert both(piped(*created, "CREATE INDEX ON u (id)", "ALTER TABLE t RENAME TO w")) == [
        *("CREATE TABLE", "INSERT 0 2", "SELECT 2", "CREATE INDEX", "ALTER TABLE")
    ]
    assert both(ran("SELECT id FROM w JOIN u USING (id) ORDER BY id")) == ("SELECT 2", [(1,), (2,)])
    assert both(piped("CREATE TABLE x (a int)", "INSERT INTO u VALUES (1)", "CREATE UNIQUE INDEX ON u (id)"))[0] == "23505"
    assert both(ran("SELECT count(*) FROM u")) == ("SELECT 1", [(2,)])
    assert both(ran("SELECT * FROM x"))[0] == "42P01"


def message(letter: bytes, body: bytes) -> bytes:
    return letter + (len(body) + 4).to_bytes(4, "big") + body


def test_a_commit_is_canceled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client gets an error and ReadyForQuery."""

    async def commit(session: object) -> None:
        await asyncio.sleep(60)

    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int)")
        with monkeypatch.context() as patch:
            patch.setattr(commits, "commit", commit)
            connection.execute("SET statement_timeout = '200ms'")
            with socket.socket(fileno=os.dup(connection.fileno())) as raw:
                raw.settimeout(20)
                parse = message(b"P", b"\0INSERT INTO t VALUES (1)\0\0\0")
                raw.sendall((parse + message(b"B", bytes(8)) + message(b"E", bytes(5))) * 2 + message(b"S", b""))
                answer = b""
                while not answer.endswith(message(b"Z", b"I")):
                    answer += raw.recv(10_000)
            assert b"\0C57014\0" in answer
        connection.execute("SET statement_timeout = 0")
        assert connection.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
