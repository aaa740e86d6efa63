"""A write or a statement that meets the end of its engine waits for the one that stands by, and takes effect once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from tailgate.embedded.children import Child, free_port
from tailgate.engine.runtime.ticks.repeated_writes import find_change, undone
from tailgate.lake.catalog import Change, MaterializedView
from tailgate.lake.catalog.formats import Failure
from tailgate.lake.catalog.resolution import Resolution
from tailgate.lake.control import Attempt
from tailgate.lake.errors import CrashShutdown, ObjectNotInPrerequisiteState, SystemError_
from tailgate.lake.folder import Lake
from tailgate.lake.readers.failed import failed
from tailgate.lake.store.stand_by import StandBy
from tailgate.lake.writer.inbox import Record
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.lake.writer.stand_by import stand_by
from tailgate.sql.name_resolution import resolve
from tailgate.sql.statements import CreateView, parse
from testing.engine_process import until
from tests.tables.world import Engine, Served, engine_process

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


def engine_that_ends(folder: Path, step: str) -> Child:
    """Starts an engine that is killed at this crash point."""
    engine = engine_process(folder / "lake", step)
    engine.wait_ready(engine.announced, timedelta(seconds=30))
    return engine


@pytest.mark.parametrize("step", STEPS)
def test_an_engine_that_is_killed(gateway: Served, tmp_path: Path, step: str) -> None:
    first = engine_that_ends(tmp_path, step)
    lake = Lake(tmp_path / "lake")
    place = stand_by(lake)
    with ThreadPoolExecutor(1) as threads:
        inserting = threads.submit(insert, gateway.dsn, 1)
        assert place.wait() is None
        second = Engine(lake)
        place.close()
        assert inserting.result(30) == "INSERT 0 1"
    first.stop()
    insert(gateway.dsn, 2)
    with psycopg.connect(gateway.dsn, autocommit=True) as c:
        assert c.execute("SELECT a, count(*) FROM bag GROUP BY a ORDER BY a").fetchall() == [(1, 1), (2, 1)]
    second.close()


BLOCK = ("BEGIN", "CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)", "INSERT INTO bag VALUES (1)", "COMMIT")
CATALOG_STEPS = ("entry.link:2", "entry.linked:2", "catalog.entry:1")  # before the entry, before it is announced, and after it
BLOCK_STEPS = ("block.entered:1", "entry.committed:1")  # before and after the entry with rows of an existing table
CHANGES = (
    (("CREATE TABLE t (a int)",), "CREATE TABLE", "SELECT count(*) = 0 FROM t"),
    (("CREATE TABLE t AS SELECT 1 AS a",), "SELECT 1", "SELECT count(*) = 1 FROM t"),
    (("ALTER TABLE bag ADD COLUMN b int DEFAULT 7",), "ALTER TABLE", "SELECT sum(b) = 7 FROM bag"),
    (("DROP SEQUENCE s",), "DROP SEQUENCE", "SELECT count(*) = 0 FROM pg_sequences"),
    (("SELECT setval('s', 5)",), "SELECT 1", "SELECT nextval('s') = 6"),
    (("BEGIN", "CREATE TABLE t AS SELECT a FROM bag", "COMMIT"), "COMMIT", "SELECT count(*) = 1 FROM t"),
)


@pytest.mark.parametrize(
    ("statements", "tag", "check", "step"),
    [
        *(
            pytest.param(*change, step, marks=[long] if change is not CHANGES[0] and step != CATALOG_STEPS[-1] else [])
            for change in CHANGES
            for step in CATALOG_STEPS
        ),
        *((BLOCK, "COMMIT", "SELECT count(*) = 3 FROM (TABLE t UNION ALL TABLE bag) u", step) for step in BLOCK_STEPS),
    ],
)
def test_a_statement_whose_engine_is_killed(
    gateway: Served, tmp_path: Path, statements: Sequence[str], tag: str, check: str, step: str
) -> None:
    lake = Lake(tmp_path / "lake")
    with psycopg.connect(gateway.dsn, autocommit=True) as c:
        before = Engine(lake)
        c.execute("INSERT INTO bag VALUES (0)")
        c.execute("CREATE SEQUENCE s")
        before.close()
        first = engine_that_ends(tmp_path, step)
        place = stand_by(lake)
        with ThreadPoolExecutor(1) as threads:
            running = threads.submit(lambda: [c.execute(text.encode()).statusmessage for text in statements])
            assert place.wait() is None
            second = Engine(lake)
            place.close()
            assert running.result(30)[-1] == tag
        assert c.execute(check.encode()).fetchone() == (True,)
    first.stop()
    second.close()


@contextmanager
def unanswered(gateway: Served, tmp_path: Path) -> Iterator[tuple[psycopg.Connection, StandBy]]:
    """Yields a session whose CREATE TABLE took effect in an engine that ended, and the place of the next engine.

    At the end, the client learns that the statement may have taken effect.
    """
    first = engine_that_ends(tmp_path, "catalog.entry:1")
    place = stand_by(Lake(tmp_path / "lake"))
    with psycopg.connect(gateway.dsn, autocommit=True) as c, ThreadPoolExecutor(1) as threads:
        creating = threads.submit(c.execute, "CREATE TABLE t (a int)")
        assert place.wait() is None
        yield c, place
        with pytest.raises(psycopg.errors.SystemError, match="before it answered"):
            creating.result(30)
    first.stop()


def test_a_statement_that_is_canceled_between_two_engines(gateway: Served, tmp_path: Path) -> None:
    with unanswered(gateway, tmp_path) as (c, place):
        c.cancel_safe()
    place.close()


def test_a_statement_whose_next_engine_cannot_be_reached(gateway: Served, tmp_path: Path) -> None:
    with unanswered(gateway, tmp_path) as (_, place):
        second = open_epoch(Lake(tmp_path / "lake"))
        place.close()
        second.announce(address=f"127.0.0.1:{free_port()}", token="")
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
        assert place.wait() is None
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
        assert place.wait() is None
        engine = Engine(lake)
        place.close()
        assert creating.result(30).statusmessage == "CREATE TABLE"
        assert inserting.result(30) == "INSERT 0 1"
    engine.close()


def test_without_an_engine_that_stands_by_a_write_fails(gateway: Served) -> None:
    with pytest.raises(psycopg.errors.SystemError, match="the engine is not running"):
        insert(gateway.dsn, 1)


def test_a_statement_that_was_undone_is_not_found(tmp_path: Path) -> None:
    """A statement whose view could not be filled has an entry that creates the view, and one that drops it."""
    lake = Lake.create(tmp_path / "lake")
    writer = open_epoch(lake)
    attempt = Attempt("a", again=True, after=writer.newest.n)
    for id in ("a", "other", undone("a")):
        writer.statement = id
        writer.append(kind="catalog", catalog=Change())
        writer.append()
        ids = [header.writes for header in find_change(lake, attempt)]
        assert ids == {"a": [("a",)], "other": [("a",), ("other",)]}.get(id, [])
    assert find_change(lake, replace(attempt, id="other", after=writer.newest.n)) == []
    writer.close()


@pytest.mark.parametrize("text", ["DROP STREAM s DELETE TOPIC", "DROP CONNECTOR c"])
def test_a_statement_with_effects_outside_of_the_log_is_not_repeated(tmp_path: Path, text: str) -> None:
    """An engine that has dropped a stream may have ended before it deleted the topic."""
    engine = Engine(Lake.create(tmp_path / "lake"))
    with pytest.raises(SystemError_, match="before it answered"):
        engine.statement(text, {}, Resolution(("public",)), SimpleNamespace(attempt=Attempt("a", again=True)))
    engine.close()


def test_a_view_that_fails_between_two_engines(tmp_path: Path) -> None:
    """Its statement, which is sent again, ends with the error of the view, as if it had waited when the view failed."""
    engine = Engine(Lake.create(tmp_path / "lake"))
    text = "CREATE MATERIALIZED VIEW v AS SELECT 1 AS a"
    names = resolve(text, engine.writer.catalog, engine.writer.catalog)
    statement = parse(text)
    assert isinstance(statement, CreateView)
    change = engine._statements.planning.plan(statement, text, engine.writer.catalog, None).change
    (view,) = (item for item in change.put if isinstance(item, MaterializedView))
    engine.writer.statement = "a"
    engine.writer.append(kind="catalog", catalog=change)
    why = Failure(engine.writer.newest.time, 'materialized view "v" has failed: a defect')
    engine.writer.append(kind="catalog", catalog=Change(put=(failed(view, why),)))
    canceled_at = time.monotonic() + 10
    client = SimpleNamespace(attempt=Attempt("a", again=True), gone=lambda: time.monotonic() > canceled_at)
    with pytest.raises(ObjectNotInPrerequisiteState, match="has failed: a defect"):
        engine.statement(text, {}, names, client)
    assert not engine.writer.catalog.items.get(view.id)
    engine.close()
