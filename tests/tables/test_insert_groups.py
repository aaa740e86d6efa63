"""INSERTs of many sessions are evaluated and sent together, and each session gets its own answer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import cast

import psycopg
import pytest

from tailgate.gateway.control import Control
from tailgate.gateway.writes import conflicts
from tailgate.gateway.writes.insert_groups import InsertGroups, Sent
from tailgate.gateway.writes.rows.constants import Constants
from tailgate.lake.catalog import Item
from tailgate.lake.control import Write, WriteResult
from tailgate.lake.errors import SystemError_
from tailgate.lake.types import INT4
from tests.tables.world import World, leave

WAIT_S = 60.0


class Held:
    """Sessions whose INSERTs wait for the first one, whose request is held until `release`."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = world
        self.requests: list[int] = []  # the number of keys of each request
        self.fail = False  # requests after the first fail, as if the engine had ended
        self.conflicts = 0  # requests after the first that have a conflict
        self._go = threading.Event()
        self._pool = ThreadPoolExecutor(20)
        write, insert = Control.write, InsertGroups.insert
        self.entered = 0

        async def held(control: Control, body: bytes) -> WriteResult:
            self.requests.append(sum(len(part.keys) for part in Write.decode(body).parts))
            if len(self.requests) == 1:
                await asyncio.to_thread(self._go.wait, WAIT_S)
            elif self.fail:
                raise SystemError_("the engine ended before it answered")
            elif self.conflicts:
                self.conflicts -= 1
                return WriteResult(conflict=1)
            return await write(control, body)

        def entering(groups: InsertGroups, *arguments: object) -> asyncio.Future[int]:
            self.entered += 1
            return insert(groups, *arguments)  # type: ignore[arg-type]  # the caller's

        monkeypatch.setattr(Control, "write", held)
        monkeypatch.setattr(InsertGroups, "insert", entering)

    def run(self, statements: Sequence[str]) -> list[psycopg.Error | None]:
        """Runs the first statement, and the others while its request is held; returns each statement's error."""
        connections = [psycopg.connect(self.world.dsn, autocommit=True) for _ in statements]
        futures = self.start(connections, statements)
        self.release()
        errors = [future.exception(WAIT_S) for future in futures]
        for connection in connections:
            connection.close()
        return errors  # type: ignore[return-value]  # psycopg raises no others

    def start(self, connections: Sequence[psycopg.Connection], statements: Sequence[str]) -> list[Future[object]]:
        futures: list[Future[object]] = []
        for connection, statement in zip(connections, statements, strict=True):
            futures.append(self._pool.submit(connection.execute, statement))
            self._until(lambda: self.entered == len(futures))
            self._until(lambda: len(self.requests) == 1)
        return futures

    def release(self) -> None:
        self._go.set()

    def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def close(self) -> None:
        self.release()
        self._pool.shutdown()


@pytest.fixture
def held(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    with psycopg.connect(world.dsn, autocommit=True) as c:
        c.execute("CREATE TABLE t (k int PRIMARY KEY, v text CHECK (v <> 'bad'), n int NOT NULL DEFAULT 1)")
        c.execute("CREATE TABLE bag (v int)")
        c.execute("INSERT INTO t VALUES (100, 'there')")
    world.together()
    held = Held(world, monkeypatch)
    yield held
    held.close()


def rows(world: World, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(world.dsn, autocommit=True) as c:
        return c.execute(query).fetchall()


def test_inserts_of_many_sessions_share_a_request(held: Held) -> None:
    assert held.run([f"INSERT INTO t VALUES ({k}, 'v')" for k in range(10)]) == [None] * 10
    assert held.requests == [1, 9]
    assert rows(held.world, "SELECT count(*) FROM t") == [(11,)]


def test_a_table_without_a_key(held: Held) -> None:
    assert held.run(["INSERT INTO bag VALUES (1)"] * 10) == [None] * 10
    assert len(held.requests) == 2
    assert rows(held.world, "SELECT v, count(*) FROM bag GROUP BY v") == [(1, 10)]


def test_a_key_that_exists_fails_its_session_only(held: Held) -> None:
    errors = held.run([f"INSERT INTO t VALUES ({k}, 'v')" for k in (0, 1, 2, 3, 2, 100, 4, 0)])
    states = [getattr(e, "sqlstate", None) for e in errors]
    assert states == [None, None, None, None, "23505", "23505", None, "23505"]
    assert held.requests[1] in (4, 5)  # 5 if the mirrors do not have key 0 yet: a conflict, after which the group is evaluated again
    assert rows(held.world, "SELECT k FROM t ORDER BY k") == [(0,), (1,), (2,), (3,), (4,), (100,)]
    assert "Key (k)=(2) already exists." in str(errors[4])


@pytest.mark.parametrize(("values", "sqlstate"), [("7, 'bad'", "23514"), ("7, 'v', NULL", "23502")])
def test_a_violation_fails_its_session_only(held: Held, values: str, sqlstate: str) -> None:
    errors = held.run(["INSERT INTO t VALUES (0, 'v')", "INSERT INTO t VALUES (1, 'v')", f"INSERT INTO t VALUES ({values})"])
    assert [getattr(e, "sqlstate", None) for e in errors] == [None, None, sqlstate]
    assert rows(held.world, "SELECT k FROM t ORDER BY k") == [(0,), (1,), (100,)]


def test_a_failed_request_is_not_sent_again(held: Held) -> None:
    held.fail = True
    errors = held.run(["INSERT INTO bag VALUES (1)"] * 5)
    assert [getattr(e, "sqlstate", None) for e in errors] == [None] + ["58000"] * 4
    assert len(held.requests) == 2
    assert rows(held.world, "SELECT count(*) FROM bag") == [(1,)]


def test_members_of_a_group_that_always_has_a_conflict_are_sent_alone(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicts, "EVALUATIONS_MAX", 2)
    held.conflicts = 2
    assert held.run([f"INSERT INTO t VALUES ({k}, 'v')" for k in range(4)]) == [None] * 4
    assert held.requests == [1, 3, 3, 1, 1, 1]
    assert rows(held.world, "SELECT k FROM t ORDER BY k") == [(0,), (1,), (2,), (3,), (100,)]


def test_roles_and_tables_have_their_own_groups(held: Held) -> None:
    errors = held.run(["INSERT INTO t VALUES (0, 'v')", "INSERT INTO t VALUES (1, 'v')", "INSERT INTO t VALUES (2, 'v')"])
    assert errors == [None] * 3
    with psycopg.connect(held.world.dsn, autocommit=True) as c:
        c.execute("INSERT INTO bag VALUES (5)")
    assert held.requests == [1, 2, 0]


def test_a_canceled_member_whose_group_was_sent_is_warned(held: Held) -> None:
    """The others do not notice; its row is there once."""
    connections = [psycopg.connect(held.world.dsn, autocommit=True) for _ in range(4)]
    notices: list[str] = []
    connections[2].add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    futures = held.start(connections, [f"INSERT INTO t VALUES ({k}, 'v')" for k in range(4)])
    connections[2].cancel_safe()
    held.release()
    assert [f.exception(WAIT_S) for f in futures] == [None] * 4
    assert notices == ["canceling wait for the commit"]
    assert rows(held.world, "SELECT k FROM t ORDER BY k") == [(0,), (1,), (2,), (3,), (100,)]
    for connection in connections:
        connection.close()


def test_a_session_that_leaves_does_not_stop_its_group(held: Held) -> None:
    connections = [psycopg.connect(held.world.dsn, autocommit=True) for _ in range(4)]
    futures = held.start(connections, [f"INSERT INTO t VALUES ({k}, 'v')" for k in range(4)])
    leave(connections[1])  # it is the first member of the second group, whose plan evaluates the group
    held.release()
    assert [futures[i].exception(WAIT_S) for i in (0, 2, 3)] == [None] * 3
    assert {(0,), (2,), (3,)} <= set(rows(held.world, "SELECT k FROM t"))
    for connection in connections:
        connection.close()


def test_a_group_checks_foreign_keys_whatever_its_first_session_does(held: Held) -> None:
    with psycopg.connect(held.world.dsn, autocommit=True) as c:
        c.execute("CREATE TABLE child (p int REFERENCES t DEFERRABLE)")
    connections = [psycopg.connect(held.world.dsn, autocommit=True) for _ in range(3)]
    futures = held.start(connections, ["INSERT INTO child VALUES (100)", "INSERT INTO child VALUES (100)", "INSERT INTO child VALUES (7)"])
    while not futures[1].done():
        connections[1].cancel_safe()
    connections[1].execute("BEGIN")
    connections[1].execute("SET CONSTRAINTS ALL DEFERRED")
    held.release()
    assert [getattr(futures[i].exception(WAIT_S), "sqlstate", None) for i in (0, 2)] == [None, "23503"]
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("failing", [False, True])
def test_a_member_whose_future_is_canceled_does_not_stop_its_group(failing: bool) -> None:
    async def run() -> None:
        table = cast(Item, SimpleNamespace(id=1))
        groups, go = InsertGroups(), asyncio.Event()

        async def send(members: list[Constants]) -> Sent:
            await go.wait()
            if failing:
                raise SystemError_("the engine ended before it answered")
            return Sent(7, frozenset())

        rows = Constants((INT4,), ([1],))
        answers = [groups.insert(table, "1", rows, send) for _ in range(3)]
        answers[1].cancel()
        go.set()
        results = await asyncio.wait_for(asyncio.gather(*answers, return_exceptions=True), WAIT_S)
        assert [type(r) for r in results] == [SystemError_ if failing else int, asyncio.CancelledError, SystemError_ if failing else int]

    asyncio.run(run())
