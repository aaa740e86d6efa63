"""Random concurrent writers through two gateways: the results form one serial history."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.gateway.execute.monitoring import system_relations
from tests.tables.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "lake", gateways=2)
    yield world
    world.close()


def side_by_side(world: World, work: list[Any]) -> None:
    """Waits until all gateways are at the newest time, and runs functions in threads.

    Raises the first error of any of them.
    """
    world.together()
    errors: list[BaseException] = []

    def guarded(one: Any) -> None:
        try:
            one()
        except BaseException as error:  # noqa: BLE001  # raised below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_no_increment_is_lost(world: World) -> None:
    """Includes updates of whole tables: each is evaluated again until no other write intervenes."""
    with psycopg.connect(world.dsn, autocommit=True) as c:
        c.execute("CREATE TABLE n (id int PRIMARY KEY, v int)")
        c.execute("INSERT INTO n VALUES (1, 0), (2, 0)")

    def add(gateway: int, where: str) -> Any:
        def work() -> None:
            with psycopg.connect(world.gateways[gateway].dsn, autocommit=True) as c:
                for _ in range(6):
                    assert c.execute(f"UPDATE n SET v = v + 1 {where}").rowcount > 0

        return work

    side_by_side(world, [add(i % 2, where) for i, where in enumerate(["WHERE id = 1", "WHERE id = 2", "WHERE v >= 0", "", "WHERE id = 1"])])
    with psycopg.connect(world.dsn, autocommit=True) as c:
        assert c.execute("SELECT id, v FROM n ORDER BY id").fetchall() == [(1, 24), (2, 18)]


def test_a_key_is_given_once(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as c:
        c.execute("CREATE TABLE k (id int PRIMARY KEY, who int)")
    won: dict[int, list[int]] = {}

    def insert(me: int) -> Any:
        def work() -> None:
            mine = random.Random(me)
            with psycopg.connect(world.gateways[me % 2].dsn, autocommit=True) as c:
                for key in mine.sample(range(12), 12):
                    try:
                        c.execute("INSERT INTO k VALUES (%s, %s)", (key, me))
                        won.setdefault(key, []).append(me)
                    except psycopg.errors.UniqueViolation:
                        pass

        return work

    side_by_side(world, [insert(i) for i in range(4)])
    assert sorted(won) == list(range(12))
    with psycopg.connect(world.dsn, autocommit=True) as c:
        assert {(k, w) for k, (w,) in won.items()} == set(c.execute("SELECT id, who FROM k").fetchall())


def test_transfers_keep_the_sum(world: World) -> None:
    """Transactions that read and write: on a conflict they get 40001 and are retried.

    The sum is the same at every time.
    """
    with psycopg.connect(world.dsn, autocommit=True) as c:
        c.execute("CREATE TABLE a (id int PRIMARY KEY, v int)")
        c.execute("INSERT INTO a SELECT * FROM (VALUES (0, 100), (1, 100), (2, 100), (3, 100)) AS x(i, v)")
    ended = threading.Event()
    lost = 0

    def transfer(me: int) -> Any:
        def work() -> None:
            nonlocal lost
            mine = random.Random(me)
            with psycopg.connect(world.gateways[me % 2].dsn) as c:
                c.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
                moved = 0
                while moved < 5:
                    one, two = mine.sample(range(4), 2)
                    try:
                        with c.transaction():
                            ((v,),) = c.execute("SELECT v FROM a WHERE id = %s", (one,)).fetchall()
                            c.execute("UPDATE a SET v = %s WHERE id = %s", (v - 10, one))
                            c.execute("UPDATE a SET v = v + 10 WHERE id = %s", (two,))
                        moved += 1
                    except psycopg.errors.SerializationFailure:
                        lost += 1

        return work

    def look() -> None:
        with psycopg.connect(world.dsn, autocommit=True) as c:
            while not ended.is_set():
                assert c.execute("SELECT sum(v) FROM a").fetchone() == (400,)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        side_by_side(world, [transfer(i) for i in range(3)])
    finally:
        ended.set()
        watcher.join()
    with psycopg.connect(world.dsn, autocommit=True) as c:
        assert c.execute("SELECT sum(v), count(*) FROM a").fetchone() == (400, 4)


def test_bags_lose_and_repeat_nothing(world: World, seed: int) -> None:
    """Writers of a table without a key.

    Each changes only its rows, all copies of one value at once.
    """
    with psycopg.connect(world.dsn, autocommit=True) as c:
        c.execute("CREATE TABLE b (who int, v int)")
        c.execute("INSERT INTO b SELECT w, v FROM (VALUES (0), (1), (2)) AS x(w), (VALUES (1), (1), (1), (2)) AS y(v)")
    expected: dict[int, list[int]] = {w: [1, 1, 1, 2] for w in range(3)}

    def write(me: int) -> Any:
        def work() -> None:
            mine = random.Random(seed + me)
            rows = expected[me]
            with psycopg.connect(world.gateways[me % 2].dsn, autocommit=True) as c:
                for _ in range(8):
                    v = mine.randrange(4)
                    match mine.randrange(3):
                        case 0:
                            c.execute("INSERT INTO b VALUES (%s, %s), (%s, %s)", (me, v, me, v))
                            rows += [v, v]
                        case 1:
                            assert c.execute("UPDATE b SET v = v + 1 WHERE who = %s AND v = %s", (me, v)).rowcount == rows.count(v)
                            rows[:] = [r + 1 if r == v else r for r in rows]
                        case 2:
                            assert c.execute("DELETE FROM b WHERE who = %s AND v = %s", (me, v)).rowcount == rows.count(v)
                            rows[:] = [r for r in rows if r != v]

        return work

    side_by_side(world, [write(i) for i in range(3)])
    with psycopg.connect(world.dsn, autocommit=True) as c:
        # Another gateway's last write may arrive milliseconds later. A gateway's reads include its
        # own writes.
        c.execute("INSERT INTO b VALUES (3, 3)")
        expected[3] = [3]
        assert sorted(c.execute("SELECT who, v FROM b").fetchall()) == sorted((w, v) for w, rows in expected.items() for v in rows)


def test_a_block_arrives_in_one_tick(world: World) -> None:
    with psycopg.connect(world.dsn) as c:
        c.autocommit = True
        c.execute("CREATE TABLE o (id int PRIMARY KEY); CREATE TABLE p (id int)")
        c.autocommit = False
        before = world.engine.writer.newest.n
        c.execute("INSERT INTO o VALUES (1)")
        c.execute("INSERT INTO p VALUES (1), (1)")
        c.execute("INSERT INTO o VALUES (2)")
        assert world.engine.writer.newest.n == before
        c.commit()
        entries = list(world.lake.log.after(before))
    o, p = (world.lake.catalog().relation(name).id for name in "op")
    # two copies of a row are one change
    assert [sorted((s.relation, s.rows) for s in e.header.relations) for e in entries] == [[(o, 2), (p, 1)]]


READS = [
    "INSERT INTO k VALUES (2) RETURNING (SELECT max(n) FROM other)",
    "INSERT INTO k VALUES (1) ON CONFLICT (id) DO UPDATE SET n = (SELECT max(n) FROM other)",
    "UPDATE k SET n = 2 RETURNING (SELECT max(n) FROM other)",
    "DELETE FROM k RETURNING (SELECT max(n) FROM other)",
]


@pytest.mark.parametrize("text", READS)
def test_subqueries_belong_to_the_reads_of_a_write(world: World, text: str) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as c, psycopg.connect(world.dsn, autocommit=True) as another:
        for statement in ("CREATE TABLE k (id int PRIMARY KEY, n int)", "CREATE TABLE other (n int)", "INSERT INTO k VALUES (1, 1)"):
            c.execute(statement.encode())
        c.execute("BEGIN")
        c.execute(text.encode())
        another.execute("INSERT INTO other VALUES (5)")
        with pytest.raises(psycopg.errors.SerializationFailure):
            c.execute("COMMIT")


def test_rows_that_a_block_has_locked_do_not_change(world: World) -> None:
    with psycopg.connect(world.dsn) as block, psycopg.connect(world.dsn, autocommit=True) as other:
        other.execute("CREATE TABLE parents (id int PRIMARY KEY, open bool)")
        other.execute("CREATE TABLE children (parent int)")
        other.execute("INSERT INTO parents VALUES (1, true)")
        for lock in ("", "FOR SHARE"):
            world.together()
            assert block.execute(f"SELECT open FROM parents WHERE id = 1 {lock}".encode()).fetchall() == [(True,)]
            block.execute("INSERT INTO children VALUES (1)")
            other.execute("UPDATE parents SET open = NOT open")
            other.execute("UPDATE parents SET open = NOT open WHERE NOT open")
            if lock:
                with pytest.raises(psycopg.errors.SerializationFailure):
                    block.commit()
            else:
                block.commit()
        assert other.execute("SELECT count(*) FROM children").fetchone() == (1,)


@pytest.mark.parametrize(
    ("query", "locked"),
    [
        ("SELECT 1 FROM one, two FOR UPDATE OF one", False),
        ("SELECT 1 FROM one JOIN two AS t ON true FOR UPDATE OF t", True),
        ("SELECT 1 FROM one, (SELECT * FROM two) q FOR UPDATE OF one", False),
        ("SELECT 1 FROM one, (SELECT * FROM two) q FOR UPDATE OF q", True),
        ("SELECT 1 FROM one, two FOR UPDATE OF one FOR SHARE", True),
        ("SELECT 1 FROM one, (WITH w AS (SELECT * FROM two) SELECT * FROM w) q FOR UPDATE", False),
        ("SELECT 1 FROM one, total FOR UPDATE OF one", False),
    ],
)
def test_of_restricts_which_relations_are_locked(world: World, query: str, locked: bool) -> None:
    """The role has UPDATE on one table."""
    with psycopg.connect(world.dsn) as block, psycopg.connect(world.dsn, autocommit=True) as other:
        for name in ("one", "two"):
            other.execute(f"CREATE TABLE {name} (a int)")
        other.execute("CREATE MATERIALIZED VIEW total AS SELECT sum(a) FROM two")
        other.execute("CREATE ROLE reader")
        other.execute("GRANT SELECT ON one, two, total TO reader")
        other.execute("GRANT UPDATE, INSERT ON one TO reader")
        world.together()
        block.execute("SET ROLE reader")
        if locked:
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for table two"):
                block.execute(query.encode())
            return
        block.execute(query.encode())
        block.execute("INSERT INTO one VALUES (1)")
        other.execute("INSERT INTO two VALUES (1)")
        block.commit()


def test_rows_of_the_past_cannot_be_locked(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as c:
        c.execute("CREATE TABLE one (a int)")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="FOR UPDATE is not supported for a query at a time in the past"):
            c.execute("SELECT a FROM one FOR UPDATE AS OF now()")


def test_a_large_update_gets_through(world: World) -> None:
    """The second evaluation has a reservation, so it succeeds on a busy table."""
    with psycopg.connect(world.dsn, autocommit=True) as c:
        c.execute("CREATE TABLE w (id int PRIMARY KEY, v int)")
        c.execute("INSERT INTO w SELECT * FROM generate_series(1, 500), (VALUES (0)) AS x(v)")
    ended = threading.Event()

    def insert(me: int) -> Any:
        def work() -> None:
            with psycopg.connect(world.gateways[me % 2].dsn, autocommit=True) as c:
                c.execute("SET synchronous_commit = off")
                number = 1000 + me
                while not ended.is_set():
                    c.execute("INSERT INTO w VALUES (%s, 0)", (number,))
                    number += 4

        return work

    def update() -> None:
        try:
            with psycopg.connect(world.dsn, autocommit=True) as c:
                for i in range(4):
                    assert c.execute("UPDATE w SET v = v + 1 WHERE v = %s", (i,)).rowcount >= 500
        finally:
            ended.set()

    side_by_side(world, [insert(0), insert(1), insert(2), update])
    with psycopg.connect(world.dsn, autocommit=True) as c:
        assert c.execute("SELECT count(*) FROM w WHERE id <= 500 AND v = 4").fetchone() == (500,)


def test_acknowledged_when_durable_only(world: World) -> None:
    """With synchronous_commit = off, a write is acknowledged before its tick; with on, after it."""
    with psycopg.connect(world.dsn, autocommit=True) as c:
        c.execute("CREATE TABLE s (id int)")
        world.engine.pause()
        try:
            c.execute("SET synchronous_commit = off")
            c.execute("INSERT INTO s VALUES (1)")
            assert c.execute("SELECT count(*) FROM s").fetchone() == (0,)
            c.execute("SET synchronous_commit = on")
            c.execute("SET statement_timeout = '300ms'")
            notices: list[str | None] = []
            c.add_notice_handler(lambda d: notices.append(d.message_primary))
            assert c.execute("INSERT INTO s VALUES (2)").statusmessage == "INSERT 0 1"  # the write cannot be undone
            assert notices == ["canceling wait for the commit"]
        finally:
            world.engine.resume()
        c.execute("RESET statement_timeout")
        c.execute("INSERT INTO s VALUES (3)")
        assert sorted(c.execute("SELECT id FROM s").fetchall()) == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("text", "table"), [("UPDATE t SET a = 2", "t"), ("INSERT INTO t SELECT a FROM other", "other"), ("DELETE FROM t USING other", "t")]
)
def test_a_table_that_is_dropped_after_a_write_is_bound(world: World, monkeypatch: pytest.MonkeyPatch, text: str, table: str) -> None:
    changes = system_relations.changes

    async def after_drop(*arguments: Any) -> Any:
        await asyncio.to_thread(drop)
        return await changes(*arguments)

    def drop() -> None:
        with psycopg.connect(world.dsn, autocommit=True) as other:
            other.execute(f"DROP TABLE {table}".encode())

    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (a int)")
        connection.execute("CREATE TABLE other (a int)")
        monkeypatch.setattr(system_relations, "changes", after_drop)
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute(text.encode())
