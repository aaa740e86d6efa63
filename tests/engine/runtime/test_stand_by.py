"""An engine that stands by continues after one that is killed or hands over, and no acknowledged write is lost or repeated."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.embedded.children import Child, free_port
from tailgate.lake.folder import Lake
from tailgate.lake.readers.verification import findings
from tailgate.lake.writer.engines import announced
from testing.engine_process import rows, until
from tests.tables.writers import TABLES, Writer, checked

pytestmark = pytest.mark.spark

READY = timedelta(seconds=120)
KILLS = 50
HAND_OVERS = 10


class Engines:
    """Engines of one lake, the newest of which stands by, and a gateway. `crash`: the crash point at which the first one is killed."""

    def __init__(self, folder: Path, crash: str = "") -> None:
        self.folder, self.lake = folder, Lake.create(folder / "lake")
        self.running: list[Child] = []
        self.start(crash=crash)
        self.port = free_port()
        command = [sys.executable, "-m", "tailgate", "gateway", "--data", str(self.lake.path), "--listen", f"127.0.0.1:{self.port}"]
        self.gateway = Child("gateway", command, log=folder / "gateway.log", announces="ready ")
        self.gateway.wait_ready(self.gateway.announced, READY)

    def start(self, *arguments: str, crash: str = "") -> Child:
        number = len(self.running)
        command = [sys.executable, "-m", "tailgate", "engine", "--data", str(self.lake.path), *arguments]
        child = Child("engine", command, log=self.folder / f"engine{number}.log", environment={"TAILGATE_CRASH": crash}, announces="ready ")
        self.running.append(child)
        child.wait_ready(child.announced, READY)
        return child

    def connect(self) -> psycopg.Connection[Any]:
        try:
            return psycopg.connect(f"host=127.0.0.1 port={self.port} user=a dbname=b", autocommit=True, connect_timeout=5)
        except psycopg.OperationalError as error:
            raise OSError(str(error)) from error

    def active(self) -> int:
        announcement = announced(self.lake)
        return 0 if announcement is None else announcement.process.pid

    def stop(self) -> None:
        self.gateway.stop()
        for child in reversed(self.running):
            child.stop()


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[Engines]:
    engines = Engines(tmp_path)
    yield engines
    engines.stop()


def test_killed_and_handed_over(engines: Engines) -> None:
    (first,) = engines.running
    second = engines.start("--stand-by")
    with engines.connect() as c:
        c.execute("CREATE TABLE bag (a int)")
        c.execute("CREATE MATERIALIZED VIEW sums AS SELECT sum(a) AS total FROM bag")
        c.execute("INSERT INTO bag VALUES (1)")
        os.kill(first.pid, signal.SIGKILL)
        c.execute("INSERT INTO bag VALUES (2)")  # waits for the second engine
        assert engines.active() == second.pid
        assert c.execute("SELECT total FROM sums").fetchone() == (3,)
        third = engines.start("--hand-over")
        c.execute("INSERT INTO bag VALUES (4)")
        until(lambda: engines.active() == third.pid)
        assert second.wait(timedelta(seconds=30)) == 0
        c.execute("INSERT INTO bag VALUES (8)")
        assert c.execute("SELECT total FROM sums").fetchone() == (15,)


def test_killed_while_a_view_is_filled(tmp_path: Path) -> None:
    """The next engine fills the view, and answers the statement that the killed one has begun."""
    engines = Engines(tmp_path, crash="catalog.entry:2")
    second = engines.start("--stand-by")
    with engines.connect() as c:
        c.execute("CREATE TABLE bag (a int)")
        c.execute("INSERT INTO bag SELECT generate_series(1, 1000)")
        created = c.execute("CREATE MATERIALIZED VIEW sums AS SELECT sum(a) AS total FROM bag")
        assert created.statusmessage == "CREATE MATERIALIZED VIEW"
        assert engines.active() == second.pid
        assert c.execute("SELECT total FROM sums").fetchone() == (500500,)
    engines.stop()


@pytest.mark.long
def test_killed_fifty_times_under_load(engines: Engines) -> None:
    """Prints the seconds from each kill to the next committed tick."""
    with engines.connect() as c:
        for statement in TABLES:
            c.execute(statement)
    writers = [Writer(engines.connect, number) for number in range(3)]
    for writer in writers:
        writer.start()
    spent = []
    for _ in range(KILLS):
        engines.start("--stand-by")
        assert all(writer.moves() for writer in writers)
        time.sleep(random.random())
        pid, before = engines.active(), engines.lake.log.newest()
        assert before is not None
        os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        until(lambda epoch=before.epoch: committed_after(engines.lake, epoch))
        spent.append(time.monotonic() - began)
    assert all(writer.moves() for writer in writers)
    checked(engines.lake, writers)
    spent.sort()
    print(f"next committed tick after a kill, s: median {spent[KILLS // 2]:.1f}, p95 {spent[KILLS * 95 // 100]:.1f}, max {spent[-1]:.1f}")


@pytest.mark.long
def test_handed_over_under_load(engines: Engines) -> None:
    """Every engine that ends leaves tables that equal the log."""
    with engines.connect() as c:
        for statement in (*TABLES, "CREATE MATERIALIZED VIEW counts AS SELECT writer, count(*) AS n FROM keyed GROUP BY writer"):
            c.execute(statement)
    writers = [Writer(engines.connect, number) for number in range(3)]
    for writer in writers:
        writer.start()
    for _ in range(HAND_OVERS):
        last = engines.running[-1]
        engines.start("--hand-over")
        assert last.wait(timedelta(seconds=60)) == 0
        assert all(writer.moves() for writer in writers)
        assert [f"{f.checked}: {f.problem}" for f in findings(engines.lake) if f.problem is not None] == []
    keyed = checked(engines.lake, writers)
    counts = Counter(writer for _, writer in keyed)
    until(lambda: rows(engines.lake, "counts") == dict.fromkeys(counts.items(), 1))


def committed_after(lake: Lake, epoch: int) -> bool:
    """Returns whether a later epoch has committed a tick."""
    newest = lake.log.newest()
    return newest is not None and newest.epoch > epoch and newest.kind == "tick"
