"""Advisory locks of several sessions: waiting, deadlocks, and what releases a lock."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.errors import (
    CrashShutdown,
    DeadlockDetected,
    DivisionByZero,
    FeatureNotSupported,
    LockNotAvailable,
    ProgramLimitExceeded,
    QueryCanceled,
)

from tailgate.engine.runtime.control import advisory_locks
from tailgate.engine.runtime.control.control import NOBODY
from tailgate.lake.control import LockRequest
from tailgate.lake.errors import OutOfMemory
from tailgate.lake.folder import Lake
from tailgate.lake.writer.log_writer import open_epoch
from testing.engine_process import until
from tests.tables.world import Served, World, engine_process, leave

Sql = psycopg.Connection[Any]
WAITS_S = 0.3  # after which a statement that is not answered waits for a lock


def connected(served: Served) -> Sql:
    return psycopg.connect(served.dsn, autocommit=True)


def one(connection: Sql, sql: str) -> Any:
    row = connection.execute(sql).fetchone()
    return None if row is None else row[0]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "lake", gateways=2)
    yield world
    world.close()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as threads:
        yield threads


@pytest.fixture
def sessions(world: World, threads: ThreadPoolExecutor) -> Iterator[tuple[Sql, Sql]]:
    """Sessions of different gateways. Statements that a failed test has begun end before their connections are closed."""
    both = (connected(world.gateways[0]), connected(world.gateways[1]))
    yield both
    for session in both:
        if not session.closed:
            leave(session)
    threads.shutdown()
    for session in both:
        session.close()


def begun(connection: Sql, sql: str, threads: ThreadPoolExecutor) -> Future[Any]:
    """Starts a statement that has to wait."""
    future = threads.submit(one, connection, sql)
    time.sleep(WAITS_S)
    assert not future.done()
    return future


def test_modes(sessions: tuple[Sql, Sql]) -> None:
    first, second = sessions
    assert one(first, "SELECT pg_try_advisory_lock_shared(1)")
    assert one(second, "SELECT pg_try_advisory_lock_shared(1)")
    assert not one(second, "SELECT pg_try_advisory_lock(1)")
    assert one(second, "SELECT pg_try_advisory_lock(0, 1)")
    assert one(first, "SELECT pg_advisory_unlock_shared(1)")
    assert one(second, "SELECT pg_try_advisory_lock(1)")
    assert not one(first, "SELECT pg_try_advisory_lock_shared(1)")


def test_waiting_sessions_get_a_lock_in_their_order(sessions: tuple[Sql, Sql], world: World, threads: ThreadPoolExecutor) -> None:
    first, second = sessions
    with connected(world.gateways[0]) as third:
        first.execute("SELECT pg_advisory_lock_shared(1)")
        exclusive = begun(second, "SELECT pg_advisory_lock(1)", threads)
        shared = begun(third, "SELECT pg_advisory_lock_shared(1)", threads)
        assert not one(first, "SELECT pg_try_advisory_lock(1)"), "another session waits for it"
        first.execute("SELECT pg_advisory_unlock_shared(1)")
        assert exclusive.result(5) == ""
        assert not shared.done()
        second.execute("SELECT pg_advisory_unlock(1)")
        assert shared.result(5) == ""


def test_a_lock_of_a_transaction_is_released_when_its_rows_are_readable(sessions: tuple[Sql, Sql], threads: ThreadPoolExecutor) -> None:
    first, second = sessions
    first.execute("CREATE TABLE t (n int PRIMARY KEY)")
    first.execute("BEGIN")
    first.execute("SELECT pg_advisory_xact_lock(1)")
    first.execute("INSERT INTO t VALUES (1)")
    waiting = begun(second, "SELECT pg_advisory_lock(1)", threads)
    first.execute("COMMIT")
    waiting.result(5)
    assert one(second, "SELECT count(*) FROM t") == 1


def test_a_deadlock_ends_one_session(sessions: tuple[Sql, Sql], threads: ThreadPoolExecutor) -> None:
    first, second = sessions
    first.execute("SELECT pg_advisory_lock(1)")
    second.execute("SELECT pg_advisory_lock(2)")
    waiting = threads.submit(one, first, "SELECT pg_advisory_lock(2)")
    time.sleep(WAITS_S)
    second_waiting = threads.submit(one, second, "SELECT pg_advisory_lock(1)")
    with pytest.raises(DeadlockDetected) as error:
        waiting.result(10)
    first.execute("SELECT pg_advisory_unlock_all()")
    second_waiting.result(10)
    one_of, other = (connection.info.backend_pid for connection in sessions)
    assert error.value.diag.message_detail == (
        f"Process {one_of} waits for ExclusiveLock on advisory lock [2]; blocked by process {other}.\n"
        f"Process {other} waits for ExclusiveLock on advisory lock [1]; blocked by process {one_of}."
    )


def test_a_canceled_session_does_not_get_the_lock(sessions: tuple[Sql, Sql], threads: ThreadPoolExecutor) -> None:
    first, second = sessions
    first.execute("SELECT pg_advisory_lock(1)")
    second.execute("SET lock_timeout = 100")
    with pytest.raises(LockNotAvailable, match="canceling statement due to lock timeout"):
        second.execute("SELECT pg_advisory_lock(1)")
    second.execute("SET lock_timeout = 0")
    second.execute("SET statement_timeout = 100")
    with pytest.raises(QueryCanceled):
        second.execute("SELECT pg_advisory_lock(1)")
    second.execute("SET statement_timeout = 0")
    waiting = begun(second, "SELECT pg_advisory_lock(1)", threads)
    second.cancel_safe()
    with pytest.raises(QueryCanceled):
        waiting.result(5)
    first.execute("SELECT pg_advisory_unlock(1)")
    until(lambda: one(first, "SELECT pg_try_advisory_lock(1)"), 5)
    assert one(second, "SELECT 1") == 1


def test_the_end_of_a_session_releases_its_locks(sessions: tuple[Sql, Sql], threads: ThreadPoolExecutor) -> None:
    first, second = sessions
    first.execute("SELECT pg_advisory_lock(1), pg_advisory_lock(2)")
    waiting = begun(second, "SELECT pg_advisory_lock(1)", threads)
    first.close()
    waiting.result(5)
    until(lambda: one(second, "SELECT pg_try_advisory_lock(2)"), 5)


def test_an_error_releases_the_locks_of_the_transaction(sessions: tuple[Sql, Sql]) -> None:
    """With a savepoint, it releases the locks that were taken since. PostgreSQL does not wait for ROLLBACK either."""
    first, second = sessions
    first.execute("BEGIN; SELECT pg_advisory_xact_lock(1); SAVEPOINT s; SELECT pg_advisory_xact_lock(2)")
    with pytest.raises(DivisionByZero):
        first.execute("SELECT 1 / 0")
    assert one(second, "SELECT pg_try_advisory_lock(2)")
    assert not one(second, "SELECT pg_try_advisory_lock(1)")
    first.execute("ROLLBACK TO s; RELEASE s; SAVEPOINT s; RELEASE s")
    with pytest.raises(DivisionByZero):
        first.execute("SELECT 1 / 0")
    assert one(second, "SELECT pg_try_advisory_lock(1)")


def test_the_length_of_a_hashed_text_is_limited(sessions: tuple[Sql, Sql]) -> None:
    first, _ = sessions
    assert one(first, f"SELECT pg_try_advisory_lock(hashtext('{'x' * 10_000}'))") is True
    with pytest.raises(ProgramLimitExceeded, match="a text that is hashed for a key can have at most 10000 characters"):
        first.execute(f"SELECT pg_try_advisory_lock(hashtext('{'x' * 10_001}'))".encode())


def test_connections_of_locks_have_keepalive(world: World) -> None:
    """Without it, the locks of a gateway on a machine that fails would never be released."""
    port = f":{int(world.engine.control.address.rpartition(':')[2]):04X}"

    def timers(side: int) -> set[str]:
        """Returns the kernel's timers of the connections to the engine: 02 is that of keepalive."""
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return {row[5][:2] for row in rows if row[3] == "01" and row[side].endswith(port)}

    with connected(world.gateways[0]) as connection:
        connection.execute("SELECT pg_advisory_lock(1)")
        until(lambda: "02" in timers(1) and "02" in timers(2), 5)


def test_the_replacement_of_an_engine_that_hangs_ends_sessions_with_locks(world: World) -> None:
    """The connections to the replaced engine stay open."""
    with connected(world.gateways[0]) as connection:
        connection.execute("SELECT pg_advisory_lock(1)")
        successor = open_epoch(Lake(world.lake.location), take_over=True)
        with pytest.raises(CrashShutdown, match="terminating connection because the engine that held its advisory locks has ended"):
            _repeat(connection)
        successor.close()


def test_the_end_of_the_engine_ends_sessions_with_locks(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    child = engine_process(lake.path)
    child.wait_ready(child.announced, timedelta(seconds=60))
    served = Served(lake)
    try:
        with connected(served) as first, connected(served) as second:
            first.execute("SELECT pg_advisory_lock(1)")
            second.execute("SELECT pg_advisory_lock(2)")
            second.execute("SELECT pg_advisory_unlock(2)")
            child.stop(timedelta(seconds=5))
            with pytest.raises(CrashShutdown, match="terminating connection because the engine that held its advisory locks has ended"):
                _repeat(first)
            assert one(second, "SELECT 1") == 1
    finally:
        served.close()
        child.stop(timedelta(seconds=5))


def _repeat(connection: Sql) -> None:
    for _ in range(100):
        connection.execute("SELECT pg_sleep(0.1)")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT pg_advisory_lock(n) FROM t",
        "SELECT pg_advisory_lock(1 + length('a'))",
        "INSERT INTO t SELECT 1 WHERE pg_try_advisory_lock(1)",
        "INSERT INTO t SELECT CASE WHEN pg_try_advisory_lock(1) THEN 1 END",
        "CREATE TABLE u AS SELECT pg_try_advisory_lock(1)",
        "CREATE VIEW v AS SELECT pg_try_advisory_lock(1)",
    ],
)
def test_elsewhere_they_are_refused(world: World, sql: str) -> None:
    """A thread that evaluates a query does not wait for locks."""
    with connected(world.gateways[0]) as connection:
        connection.execute("CREATE TABLE t (n int)")
        with pytest.raises(FeatureNotSupported, match="advisory_lock"):
            connection.execute(sql)


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advisory_locks, "LOCKS_EACH", 2)
    locks = advisory_locks.AdvisoryLocks()

    def request(key: int, role: int) -> Any:
        return locks.request(LockRequest((key,), False, False, key, role).encode(), NOBODY)[1]

    first, _ = request(1, 10), request(2, 10)
    with pytest.raises(OutOfMemory, match="too many advisory locks"):
        request(3, 10)
    request(4, 11)
    first()
    request(3, 10)


class Ended:
    """A client that has disconnected."""

    attempt = NOBODY.attempt

    def tell(self, notice: dict[str, Any]) -> None:
        return

    def gone(self) -> bool:
        return True


def test_a_lock_is_free_as_soon_as_its_connection_has_ended() -> None:
    """The thread of the connection may notice later than another session requests the lock."""
    locks = advisory_locks.AdvisoryLocks()
    locks.request(LockRequest((1,), False, False, 1, 10).encode(), Ended())
    assert locks.request(LockRequest((1,), False, False, 2, 10).encode(), NOBODY)[0]["granted"]


def test_a_session_with_a_lock_does_not_wait_behind_others_for_its_other_mode() -> None:
    locks, granted = advisory_locks.AdvisoryLocks(), threading.Event()
    _, release = locks.request(LockRequest((1,), True, True, 1, 10).encode(), NOBODY)

    def wait() -> None:
        locks.request(LockRequest((1,), False, True, 2, 10).encode(), NOBODY)
        granted.set()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    time.sleep(WAITS_S)
    answer, release_other = locks.request(LockRequest((1,), False, True, 1, 10).encode(), NOBODY)
    assert answer["granted"], "the session has the lock in the other mode, so it does not wait behind the other one"
    release_other()
    assert not granted.is_set()
    release()
    assert granted.wait(5)
