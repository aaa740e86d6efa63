"""Generated columns in COPY, pipelines, groups of INSERTs and random statements, compared with PostgreSQL; and after a restart."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.tables.world import World

Connection = psycopg.Connection[Any]
Work = Callable[[Connection], Any]
TABLE = (
    "CREATE TABLE t (id int PRIMARY KEY, a int, b numeric(6, 1), s varchar(4), "
    "total numeric(8, 2) GENERATED ALWAYS AS (a * b) STORED, label varchar(6) GENERATED ALWAYS AS (s || '-' || a) STORED UNIQUE, "
    "bucket int GENERATED ALWAYS AS (a % 7) STORED CHECK (bucket <> 6))"
)


@pytest.fixture
def both(world: World, postgres: str) -> Iterator[Callable[[Work], Any]]:
    """Yields a function that runs a call on both servers and returns their common answer."""
    with psycopg.connect(postgres, autocommit=True) as theirs, psycopg.connect(world.dsn, autocommit=True) as ours:
        theirs.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")

        def ask(work: Work) -> Any:
            answers = []
            for connection in (theirs, ours):
                try:
                    answers.append(work(connection))
                except psycopg.Error as error:
                    diag = error.diag
                    answers.append((error.sqlstate, diag.message_primary, diag.message_detail, diag.statement_position))
            assert answers[0] == answers[1]
            return answers[1]

        yield ask


def ran(sql: str) -> Work:
    def work(connection: Connection) -> Any:
        cursor = connection.execute(sql.encode())
        return cursor.statusmessage, sorted(cursor.fetchall(), key=repr) if cursor.description else None

    return work


def copied_in(sql: str, data: bytes) -> Work:
    def work(connection: Connection) -> Any:
        cursor = connection.cursor()
        with cursor.copy(sql.encode()) as copy:
            copy.write(data)
        return cursor.statusmessage

    return work


def copied_out(sql: str) -> Work:
    def work(connection: Connection) -> Any:
        with connection.cursor().copy(sql.encode()) as copy:
            return b"".join(copy)

    return work


def test_copy(both: Callable[[Work], Any]) -> None:
    both(ran("CREATE TABLE t (id int PRIMARY KEY, double int GENERATED ALWAYS AS (id * 2) STORED, x text DEFAULT 'd')"))
    for sql, data in (
        ("COPY t FROM STDIN", b"1\tone\n2\ttwo\n"),
        ("COPY t (x, id) FROM STDIN", b"three\t3\n"),
        ("COPY t (id) FROM STDIN", b"4\n"),
        ("COPY t FROM STDIN", b"5\t10\tfive\n"),
        ("COPY t (id, double) FROM STDIN", b"5\t10\n"),
        ("COPY t FROM STDIN", b"2000000000\tlarge\n"),
        ("COPY t FROM STDIN (FORMAT csv, HEADER match)", b"id,x\n6,six\n"),
    ):
        both(copied_in(sql, data))
    assert both(ran("SELECT id, double, x FROM t ORDER BY id"))[1] == [
        (1, 2, "one"),
        (2, 4, "two"),
        (3, 6, "three"),
        (4, 8, "d"),
        (6, 12, "six"),
    ]
    for sql in (
        "COPY t TO STDOUT",
        "COPY t TO STDOUT (FORMAT csv, HEADER)",
        "COPY t TO STDOUT (FORMAT binary)",
        "COPY public.t (x, id) TO STDOUT",
        "COPY t (id, double) TO STDOUT",
        "COPY (SELECT * FROM t) TO STDOUT",
        "COPY (TABLE t) TO STDOUT",
    ):
        both(copied_out(sql))


def test_pipelines_and_prepared_statements(both: Callable[[Work], Any]) -> None:
    both(ran(TABLE))

    def work(connection: Connection) -> Any:
        with connection.cursor() as cursor, connection.pipeline():
            cursor.executemany("INSERT INTO t (id, a, b, s) VALUES (%s, %s, %s, %s)", [(i, i, 1.25, "x") for i in range(6)])
            cursor.execute("UPDATE t SET a = a + %s WHERE id = %s RETURNING total, label, bucket", (10, 3))
            return cursor.fetchall()

    both(work)
    both(ran("SELECT * FROM t ORDER BY id"))


def test_inserts_of_many_sessions(both: Callable[[Work], Any], world: World) -> None:
    both(ran(TABLE))

    def insert(i: int) -> str | None:
        with psycopg.connect(world.dsn, autocommit=True) as connection:
            try:
                connection.execute("INSERT INTO t (id, a, b, s) VALUES (%s, %s, 2, 'y')", (i, i % 20))
            except psycopg.Error as error:
                return error.sqlstate
        return None

    with ThreadPoolExecutor(8) as pool:
        states = list(pool.map(insert, range(40)))
    assert {*states} == {None, "23505", "23514"}
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        rows = connection.execute("SELECT a, total, label, bucket FROM t ORDER BY a").fetchall()
    assert [tuple(map(str, row)) for row in rows] == [(f"{a}", f"{a * 2}.00", f"y-{a}", f"{a % 7}") for a in range(20) if a % 7 != 6]


def statement(mine: random.Random) -> str:
    """Returns a statement that writes the table of the test."""
    id, a, b = mine.randrange(12), mine.choice(["NULL", *map(str, range(-20, 40))]), mine.choice(["NULL", "0", "1.25", "2.5", "-3.14"])
    s = mine.choice(["NULL", "'p'", "'q  '", "'long'"])
    where = mine.choice(["", f" WHERE id = {id}", f" WHERE bucket = {mine.randrange(6)}", " WHERE total > 5", " WHERE label LIKE 'p%'"])
    # PostgreSQL compares the keys of an UPDATE row by row, in the order of storage: no row takes the key of one that is changed, too
    limits = {"a = a + 100": "a < 80", "id = id + 20": "id < 20"}
    change = mine.choice([*limits, f"a = {a}", f"b = {b}, s = {s}", "a = bucket", "s = left(label, 1)", "total = DEFAULT"])
    limited = f"{where or ' WHERE true'} AND {limits.get(change, 'true')}"
    upserts = ["(id) DO UPDATE SET a = excluded.a, b = excluded.total", "(label) DO UPDATE SET b = t.total"]
    conflict = mine.choice(["", "(id) DO NOTHING", *upserts])
    match mine.randrange(5):
        case 0:
            return f"DELETE FROM t{where} RETURNING *"
        case 1:
            return f"UPDATE t SET {change}{limited} RETURNING *"
        case 2:
            column, more = mine.choice([("a", ""), ("b", f", ({id + 1}, 3)")])
            return (
                f"MERGE INTO t USING (VALUES ({id}, {a}::int){more}) AS n (id, a) ON t.id = n.id "
                f"WHEN MATCHED AND total > 3 THEN DELETE WHEN MATCHED THEN UPDATE SET {column} = n.a "
                "WHEN NOT MATCHED THEN INSERT (id, a) VALUES (n.id, n.a)"
            )
        case _:
            on_conflict = f" ON CONFLICT {conflict}" if conflict else ""
            return f"INSERT INTO t (id, a, b, s) VALUES ({id}, {a}, {b}, {s}){on_conflict} RETURNING *"


def test_random_statements(both: Callable[[Work], Any], seed: int) -> None:
    both(ran(TABLE))
    mine = random.Random(seed)

    def written(connection: Connection) -> Any:
        try:
            return ran(sql)(connection)
        except psycopg.Error:  # of several errors, each server may report another one
            return None

    wrote = 0
    for _ in range(250):
        sql = statement(mine)
        answer = both(written)
        wrote += bool(answer and answer[1])
    assert wrote > 30
    both(ran("SELECT * FROM t ORDER BY id"))


def test_notices_of_dropped_columns(both: Callable[[Work], Any]) -> None:
    both(ran("CREATE TABLE t (id int, a int, b int GENERATED ALWAYS AS (a) STORED)"))

    def dropped(connection: Connection) -> Any:
        notices: list[str | None] = []
        connection.add_notice_handler(lambda diagnostic: notices.append(diagnostic.message_primary))
        connection.execute("ALTER TABLE t DROP COLUMN a CASCADE, ALTER COLUMN id DROP EXPRESSION IF EXISTS")
        return notices

    assert both(dropped) == [
        "drop cascades to column b of table t",
        'column "id" of relation "t" is not a stored generated column, skipping',
    ]


def test_the_expression_survives_a_restart(tmp_path: Path) -> None:
    first = World(tmp_path / "lake")
    with psycopg.connect(first.dsn, autocommit=True) as connection:
        connection.execute(TABLE.encode())
        connection.execute("INSERT INTO t VALUES (1, 2, 1.5, 'r')")
    first.close()
    second = World(tmp_path / "lake")
    with psycopg.connect(second.dsn, autocommit=True) as connection:
        assert connection.execute("UPDATE t SET a = 4 RETURNING total, label, bucket").fetchone() == (6, "r-4", 4)
    second.close()
