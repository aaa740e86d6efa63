"""Unique and foreign keys hold under concurrent sessions of two gateways, also while constraints are added."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tests.tables.test_concurrent import side_by_side
from tests.tables.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "lake", gateways=2)
    yield world
    world.close()


def rows(world: World, sql: str) -> list[Any]:
    with psycopg.connect(world.dsn, autocommit=True) as c:
        return c.execute(sql.encode()).fetchall()


def run(world: World, *texts: str) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as c:
        for text in texts:
            c.execute(text.encode())


REFUSED = (errors.UniqueViolation, errors.ForeignKeyViolation, errors.SerializationFailure)


def writer(world: World, number: int, texts: list[str], successes: list[str]) -> Any:
    """Returns a function that runs statements at one of the gateways, and lists those that succeed."""

    def work() -> None:
        with psycopg.connect(world.gateways[number % 2].dsn, autocommit=True) as c:
            for text in texts:
                try:
                    c.execute(text.encode())
                    successes.append(text)
                except REFUSED:
                    c.execute("ROLLBACK")

    return work


def test_one_of_many_inserts_a_unique_value(world: World) -> None:
    run(world, "CREATE TABLE u (id int PRIMARY KEY, mail text UNIQUE)", "CREATE TABLE bag (a int, b int)")
    run(world, "CREATE UNIQUE INDEX ON bag (a, b)")
    successes: list[str] = []
    work = []
    for number in range(4):
        texts = [f"INSERT INTO u VALUES ({number * 100 + i}, 'm{i}')" for i in range(8)]
        texts += [f"INSERT INTO bag VALUES (1, {i})" for i in range(4)] + ["INSERT INTO bag VALUES (NULL, 1)"]
        work.append(writer(world, number, texts, successes))
    side_by_side(world, work)
    world.together()
    assert rows(world, "SELECT mail, count(*) FROM u GROUP BY mail ORDER BY 1") == [(f"m{i}", 1) for i in range(8)]
    assert rows(world, "SELECT a, b, count(*) FROM bag GROUP BY a, b ORDER BY a, b") == [*((1, i, 1) for i in range(4)), (None, 1, 4)]
    assert len(successes) == 8 + 4 + 4


def test_a_reference_to_a_deleted_key_of_another_type_is_refused(world: World) -> None:
    for key, reference in (("int", "bigint"), ("numeric(8)", "numeric(10, 2)"), ("varchar(5)", "text")):
        run(world, f"CREATE TABLE p (id {key} PRIMARY KEY)", f"CREATE TABLE c (p {reference} REFERENCES p)", "INSERT INTO p VALUES (1)")
        with psycopg.connect(world.dsn) as one:
            one.execute("INSERT INTO c VALUES (1)")
            run(world, "DELETE FROM p")
            with pytest.raises(errors.SerializationFailure):
                one.commit()
        run(world, "DROP TABLE c, p")


def test_no_reference_dangles(world: World, seed: int) -> None:
    """Sessions add and remove referenced and referencing rows, some in blocks with a deferred check."""
    run(
        world,
        "CREATE TABLE p (id int PRIMARY KEY)",
        "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p DEFERRABLE, q int REFERENCES p ON DELETE CASCADE)",
        "INSERT INTO p SELECT * FROM generate_series(1, 4)",
    )
    dice, deferred = random.Random(seed), "SET CONSTRAINTS ALL DEFERRED"
    successes: list[str] = []
    work = []
    for number in range(4):
        texts = []
        for i in range(12):
            id, key = number * 100 + i, dice.randint(1, 4)
            text = dice.choice(
                [
                    f"INSERT INTO c VALUES ({id}, {key}, NULL)",
                    f"INSERT INTO c VALUES ({id}, NULL, {key})",
                    f"DELETE FROM p WHERE id = {key}",
                    f"INSERT INTO p VALUES ({key}) ON CONFLICT DO NOTHING",
                    f"UPDATE c SET q = {key} WHERE id = {number * 100}",
                    f"DELETE FROM c WHERE id < {id}",
                    f"BEGIN; {deferred}; INSERT INTO c VALUES ({id}, {key}, NULL); DELETE FROM p WHERE id = {key}; COMMIT",
                    f"BEGIN; {deferred}; DELETE FROM p WHERE id = {key}; INSERT INTO p VALUES ({key}); COMMIT",
                ]
            )
            texts.append(text)
        work.append(writer(world, number, texts, successes))
    side_by_side(world, work)
    world.together()
    dangling = "SELECT * FROM c WHERE p NOT IN (SELECT id FROM p) OR q NOT IN (SELECT id FROM p)"
    assert rows(world, dangling) == []
    assert successes


@pytest.mark.parametrize(
    ("constraint", "wrong"),
    [
        ("ALTER TABLE t ADD UNIQUE (a)", "SELECT a FROM t GROUP BY a HAVING count(*) > 1"),
        ("CREATE UNIQUE INDEX ON t (a)", "SELECT a FROM t GROUP BY a HAVING count(*) > 1"),
        ("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES p", "SELECT a FROM t WHERE a NOT IN (SELECT id FROM p)"),
        ("ALTER TABLE t ADD CHECK (a < 100)", "SELECT a FROM t WHERE a >= 100"),
        ("ALTER TABLE t ALTER COLUMN a SET NOT NULL", "SELECT a FROM t WHERE a IS NULL"),
    ],
)
def test_rows_that_come_while_a_constraint_is_added_satisfy_it(world: World, constraint: str, wrong: str) -> None:
    run(world, "CREATE TABLE p (id int PRIMARY KEY)", "INSERT INTO p VALUES (1), (2), (3)", "CREATE TABLE t (a int)")
    successes: list[str] = []
    texts = [f"INSERT INTO t VALUES ({a})" for a in (1, 2, 3, 1, 500, 2)] + ["INSERT INTO t VALUES (NULL)", "DELETE FROM p WHERE id = 3"]

    def inserts() -> None:
        with psycopg.connect(world.gateways[0].dsn, autocommit=True) as c:
            for text in texts:
                try:
                    c.execute(text.encode())
                    successes.append(text)
                except (errors.IntegrityError, errors.SerializationFailure):
                    pass

    added: list[str] = []

    def adds() -> None:
        with psycopg.connect(world.gateways[1].dsn, autocommit=True) as c:
            try:
                c.execute(constraint.encode())
                added.append(constraint)
            except errors.IntegrityError:
                pass

    side_by_side(world, [inserts, adds])
    world.together()
    if added:
        assert rows(world, wrong) == []


def test_errors_of_a_view_do_not_show_the_rows_of_its_table(world: World) -> None:
    run(world, "CREATE TABLE base (id int, secret text)", "INSERT INTO base VALUES (1, 'hidden')")
    run(world, "CREATE VIEW positive AS SELECT id FROM base WHERE id > 0 WITH CHECK OPTION")
    with psycopg.connect(world.dsn, autocommit=True) as c:
        with pytest.raises(errors.WithCheckOptionViolation, match="hidden"):
            c.execute("UPDATE positive SET id = -1")
        c.execute("CREATE ROLE writer")
        c.execute("GRANT USAGE ON SCHEMA public TO writer")
        c.execute("GRANT UPDATE ON positive TO writer")
        c.execute("SET ROLE writer")
        with pytest.raises(errors.WithCheckOptionViolation) as raised:
            c.execute("UPDATE positive SET id = -1")
    assert raised.value.diag.message_detail == "Failing row contains (id) = (-1)."  # only the column that the statement writes
