"""An engine that stands by continues after one that is killed or hands over, and no acknowledged write is lost or repeated."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
from tests.following import Tail
from tests.operations.system import status
from tests.tables.writers import TABLES, Writer, checked

pytestmark = pytest.mark.spark

READY = timedelta(seconds=120)
KILLS = int(os.environ.get("TAILGATE_KILLS", "50"))
HAND_OVERS = 10
POLL_MS = 50
TAKEN_OVER_S = 5.0  # the 95th percentile, from a kill to the next committed tick


class Engines:
    """Engines of one lake, the newest of which stands by, and a gateway. `crash`: the crash point at which the first one is killed.

    `bucket`: the location of the lake, if it is not in the folder.
    """

    def __init__(self, folder: Path, crash: str = "", bucket: str | None = None) -> None:
        self.folder = folder
        self._data = ["--data", bucket or str(folder / "lake"), *([] if bucket is None else ["--work-dir", str(folder / "work")])]
        self.lake = Lake.create(bucket or folder / "lake", folder / "work")
        self.running: list[Child] = []
        self.start(crash=crash)
        self.port = free_port()
        command = [sys.executable, "-m", "tailgate", "gateway", *self._data, "--listen", f"127.0.0.1:{self.port}"]
        self.gateway = Child("gateway", command, log=folder / "gateway.log", announces="ready ")
        self.gateway.wait_ready(self.gateway.announced, READY)

    def start(self, *arguments: str, crash: str = "") -> Child:
        number = len(self.running)
        command = [sys.executable, "-m", "tailgate", "engine", *self._data, *arguments]
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


class Reader(threading.Thread):
    """A session that follows `keyed` by one TAIL, and one that polls the tally, until `stop`. Neither may fail."""

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]]) -> None:
        super().__init__(daemon=True)
        self._connect = connect
        self._stopped_rows: Callable[[], dict[tuple[Any, ...], int]] | None = None
        self.polls_s: list[float] = []
        self.failure: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._read()
        except BaseException as error:  # noqa: BLE001  # `stop` raises it
            self.failure = error

    def _read(self) -> None:
        tail = Tail("keyed")
        with self._connect() as following, self._connect() as polling, following.transaction():
            tail.open(following)
            while self._stopped_rows is None or tail.rows != self._stopped_rows():
                tail.fetch(following, POLL_MS)
                began = time.monotonic()
                assert polling.execute("SELECT n FROM tally WHERE id = 1").fetchone() is not None
                self.polls_s.append(time.monotonic() - began)

    def stop(self, lake: Lake) -> None:
        """Waits until TAIL has all rows."""
        self._stopped_rows = lambda: dict(rows(lake, "keyed"))
        self.join(60)
        assert self.failure is None, self.failure
        assert not self.is_alive(), "TAIL lacks rows"


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.long)])
def engines(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engines]:
    bucket = None if request.param == "folder" else request.getfixturevalue("bucket").location("")
    engines = Engines(tmp_path, bucket=bucket)
    yield engines
    engines.stop()


@pytest.mark.long
def test_killed_and_handed_over(engines: Engines) -> None:
    (first,) = engines.running
    metrics = free_port()
    second = engines.start("--stand-by", "--metrics", str(metrics))
    assert (status(metrics, "/startupz"), status(metrics, "/readyz")) == (200, 503)
    with engines.connect() as c:
        c.execute("CREATE TABLE bag (a int)")
        c.execute("CREATE MATERIALIZED VIEW sums AS SELECT sum(a) AS total FROM bag")
        c.execute("INSERT INTO bag VALUES (1)")
        os.kill(first.pid, signal.SIGKILL)
        c.execute("INSERT INTO bag VALUES (2)")  # waits for the second engine
        assert engines.active() == second.pid
        assert c.execute("SELECT total FROM sums").fetchone() == (3,)
        hand_over(engines, c, second, metrics)
        assert c.execute("SELECT total FROM sums").fetchone() == (15,)


def test_killed_while_a_view_is_filled_and_handed_over(tmp_path: Path) -> None:
    """The next engine fills the view, and answers the statement that the killed one has begun. Another engine replaces it."""
    engines = Engines(tmp_path, crash="catalog.entry:2")
    metrics = free_port()
    second = engines.start("--stand-by", "--metrics", str(metrics))
    assert (status(metrics, "/startupz"), status(metrics, "/readyz")) == (200, 503)
    with engines.connect() as c:
        c.execute("CREATE TABLE bag (a int)")
        c.execute("INSERT INTO bag SELECT generate_series(1, 1000)")
        created = c.execute("CREATE MATERIALIZED VIEW sums AS SELECT sum(a) AS total FROM bag")
        assert created.statusmessage == "CREATE MATERIALIZED VIEW"
        assert engines.active() == second.pid
        assert c.execute("SELECT total FROM sums").fetchone() == (500500,)
        hand_over(engines, c, second, metrics)
        assert c.execute("SELECT total FROM sums").fetchone() == (500512,)
    engines.stop()


def hand_over(engines: Engines, c: psycopg.Connection[Any], active: Child, metrics: int) -> None:
    """Replaces the active engine by another one, and adds 12 to the sum. `metrics`: the port of the active engine's metrics."""
    until(lambda: status(metrics, "/readyz") == 200)
    following = engines.start("--hand-over")
    c.execute("INSERT INTO bag VALUES (4)")
    until(lambda: engines.active() == following.pid)
    assert active.wait(timedelta(seconds=30)) == 0
    c.execute("INSERT INTO bag VALUES (8)")


@pytest.mark.long
def test_killed_fifty_times_under_load(engines: Engines) -> None:
    """Prints the seconds from each kill to the next committed tick, and to the next acknowledged write."""
    with engines.connect() as c:
        for statement in TABLES:
            c.execute(statement)
    writers = [Writer(engines.connect, number) for number in range(3)]
    for writer in writers:
        writer.start()
    assert all(writer.moves() for writer in writers)
    reader = Reader(engines.connect)
    ticks, writes = [], []
    for _ in range(KILLS):
        engines.start("--stand-by")
        assert all(writer.moves() for writer in writers)
        time.sleep(random.random())
        pid, before = engines.active(), engines.lake.log.newest()
        assert before is not None
        os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        until(lambda epoch=before.epoch: committed_after(engines.lake, epoch))
        ticks.append(time.monotonic() - began)
        acknowledged = _written(writers)
        until(lambda acknowledged=acknowledged: _written(writers) > acknowledged)
        writes.append(time.monotonic() - began)
    assert all(writer.moves() for writer in writers)
    checked(engines.lake, writers)
    reader.stop(engines.lake)
    for what, spent in (("committed tick", ticks), ("acknowledged write", writes), ("poll", reader.polls_s)):
        print(f"{what}, s: median {_percentile(spent, 50):.3f}, p95 {_percentile(spent, 95):.3f}, max {max(spent):.3f}")
    assert _percentile(ticks, 95) <= TAKEN_OVER_S


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


def _written(writers: Sequence[Writer]) -> int:
    return sum(len(writer.written) for writer in writers)


def _percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[len(values) * percent // 100]


def committed_after(lake: Lake, epoch: int) -> bool:
    """Returns whether a later epoch has committed a tick."""
    newest = lake.log.newest()
    return newest is not None and newest.epoch > epoch and newest.kind == "tick"
