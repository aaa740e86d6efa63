"""A write that meets the end of its engine waits for the one that stands by, and is accepted once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from tailgate.embedded.children import Child
from tailgate.lake.errors import CrashShutdown
from tailgate.lake.folder import Lake
from tailgate.lake.writer.inbox import Record
from tailgate.lake.writer.stand_by import stand_by
from testing.engine_process import until
from tests.tables.world import Engine, Served

long = pytest.mark.long
STEPS = (
    pytest.param("write.begin:1", marks=long),  # admitted, nothing written
    pytest.param("inbox.entry:1", marks=long),  # the file does not exist yet
    pytest.param("inbox.link:1", marks=long),  # linked, the folder is not synced
    "inbox.linked:1",  # durable, not acknowledged
    pytest.param("entry.link:2", marks=long),  # before the link of the log entry
    pytest.param("entry.linked:2", marks=long),  # after it
    "entry.committed:1",  # the inbox entry is not removed yet
)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Served]:
    """Yields a gateway of a lake with a table without a key, in which a row that is inserted twice is there twice."""
    lake = Lake.create(tmp_path / "lake")
    engine, gateway = Engine(lake), Served(lake)
    with psycopg.connect(gateway.dsn, autocommit=True) as c:
        c.execute("CREATE TABLE bag (a int)")
    engine.close()
    yield gateway
    gateway.close()


def insert(dsn: str, row: int) -> str | None:
    with psycopg.connect(dsn, autocommit=True) as c:
        return c.execute("INSERT INTO bag VALUES (%s)", (row,)).statusmessage


@pytest.mark.parametrize("step", STEPS)
def test_an_engine_that_is_killed(gateway: Served, tmp_path: Path, step: str) -> None:
    command = [sys.executable, "-m", "tests.tables.world", str(tmp_path / "lake")]
    first = Child("engine", command, log=tmp_path / "engine.log", environment={"TAILGATE_CRASH": step}, announces="ready")
    first.wait_ready(first.announced, timedelta(seconds=30))
    lake = Lake(tmp_path / "lake")
    place = stand_by(lake)
    with ThreadPoolExecutor(1) as threads:
        inserting = threads.submit(insert, gateway.dsn, 1)
        assert place.wait() is False
        second = Engine(lake)
        place.close()
        assert inserting.result(30) == "INSERT 0 1"
    first.stop()
    insert(gateway.dsn, 2)
    with psycopg.connect(gateway.dsn, autocommit=True) as c:
        assert c.execute("SELECT a, count(*) FROM bag GROUP BY a ORDER BY a").fetchall() == [(1, 1), (2, 1)]
    second.close()


def test_an_engine_that_hangs_while_it_writes(gateway: Served, tmp_path: Path) -> None:
    """The next engine is announced before the gateway notices that the first one was replaced."""
    lake = Lake(tmp_path / "lake")
    hanging = Engine(lake)
    entered, hung = threading.Event(), threading.Event()

    def hang(records: object, durable: object) -> int:
        entered.set()
        hung.wait(30)
        return 0

    hanging.writes._enter = hang
    with ThreadPoolExecutor(1) as threads:
        inserting = threads.submit(insert, gateway.dsn, 1)
        assert entered.wait(30)
        hanging.writer._lock.release()
        second = Engine(lake)
        assert inserting.result(30) == "INSERT 0 1"
    hung.set()
    hanging.close()
    second.close()


def test_an_engine_that_ends_with_its_jvm_after_the_write_is_durable(gateway: Served, tmp_path: Path) -> None:
    """The client gets the answer of the next engine, not 57P02 of the first one."""
    lake = Lake(tmp_path / "lake")
    first = Engine(lake, paused=True)
    place = stand_by(lake)
    enter = first.writes._enter

    def crash(records: list[Record], durable: Callable[[int], None]) -> int:
        enter(records, durable)
        raise CrashShutdown("the engine ends because its memory no longer agrees with the log")

    first.writes._enter = crash
    with ThreadPoolExecutor(1) as threads:
        inserting = threads.submit(insert, gateway.dsn, 1)
        until(lambda: first.inbox.newest > first.inbox.consumed)
        first.close()
        assert place.wait() is False
        second = Engine(lake)
        place.close()
        assert inserting.result(30) == "INSERT 0 1"
    with psycopg.connect(gateway.dsn, autocommit=True) as c:
        assert c.execute("SELECT a FROM bag").fetchall() == [(1,)]
    second.close()


def test_statements_that_arrive_without_an_engine_wait(gateway: Served, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    place = stand_by(lake)
    with ThreadPoolExecutor(2) as threads, psycopg.connect(gateway.dsn, autocommit=True) as c:
        creating = threads.submit(c.execute, "CREATE TABLE other (a int)")
        inserting = threads.submit(insert, gateway.dsn, 1)
        assert place.wait() is False
        engine = Engine(lake)
        place.close()
        assert creating.result(30).statusmessage == "CREATE TABLE"
        assert inserting.result(30) == "INSERT 0 1"
    engine.close()


def test_without_an_engine_that_stands_by_a_write_fails(gateway: Served) -> None:
    with pytest.raises(psycopg.errors.SystemError, match="the engine is not running"):
        insert(gateway.dsn, 1)
