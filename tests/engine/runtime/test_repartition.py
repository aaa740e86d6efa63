"""`tailgate repartition`: no view is filled again, and a run that is killed at any step can be repeated."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer

from tailgate.embedded.kafka import Kafka
from tailgate.engine.runtime import repartition
from tailgate.engine.runtime.repartition import KIND
from tailgate.lake.catalog import Change
from tailgate.lake.errors import TailgateError
from tailgate.lake.folder import Lake
from tailgate.lake.log.uploaded_state import UPLOADED
from testing.engine_process import EngineProcess, rows, until
from tests.engine.ddl.ksqldb_items import READINGS, declared, derived
from tests.tables.world import Served

pytestmark = pytest.mark.spark

KILLED = -signal.SIGKILL  # the exit code at a crash point
TABLES = ("CREATE TABLE t (k int PRIMARY KEY, g int, n int)", "CREATE TABLE names (g int, name text)")
VIEWS = {
    "sums": "SELECT g, sum(n) AS total, max(n) AS most FROM t GROUP BY g",
    "named": "SELECT t.k, names.name FROM t LEFT JOIN names ON t.g = names.g",
    "totals": "SELECT count(*) AS n, sum(total) AS total FROM sums",
    "best": "SELECT g, k, n FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY n DESC, k) AS r FROM t) AS x WHERE r <= 2",
    "unnamed": "SELECT g FROM t EXCEPT SELECT g FROM names",
}


class World:
    """A lake, its engine, and a gateway. `work`: the working folder of a lake in a bucket. `short`: the test runs a part of its checks."""

    def __init__(self, location: Path | str, work: Path | None, kafka: Kafka, short: bool = False) -> None:
        self.location, self.work, self.kafka, self.short = location, work, kafka, short
        self._producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 0, "log_level": 2})
        self.engine = self.started(1)
        self.lake = Lake(location)
        self.served = Served(self.lake)
        self.rounds = 0
        with psycopg.connect(self.served.dsn, autocommit=True) as c:
            for statement in (*TABLES, *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in VIEWS.items())):
                c.execute(statement)  # type: ignore[arg-type]

    def started(self, parallelism: int) -> EngineProcess:
        options = ("--parallelism", str(parallelism), "--kafka", self.kafka.address)
        engine = EngineProcess(self.location, *options, work_dir=self.work)
        engine.start()
        return engine

    def check(self) -> None:
        """Changes rows, and compares the views with their queries."""
        self.rounds += 1
        with psycopg.connect(self.served.dsn, autocommit=True) as c:
            c.execute("INSERT INTO t SELECT 100 * %s + i, i %% 7, i FROM generate_series(1, 30) i", (self.rounds,))
            c.execute("UPDATE t SET n = n + 1, g = (g + 1) % 7 WHERE k % 3 = 0")
            c.execute("DELETE FROM t WHERE k %% 10 = %s", (self.rounds,))
            c.execute("INSERT INTO names VALUES (%s, 'name')", (self.rounds,))
            for name, query in VIEWS.items():
                rows = c.execute(f"TABLE {name}").fetchall()  # type: ignore[arg-type]
                assert sorted(rows) == sorted(c.execute(query).fetchall()), name  # type: ignore[arg-type]

    def stream(self, name: str) -> None:
        properties = f"kafka_topic = '{self.topic(name)}', partitions = 1, value_format = 'json'"
        self.engine.execute(f"CREATE STREAM {name} (k VARCHAR KEY, n INT) WITH ({properties})")

    def topic(self, name: str) -> str:
        return f"{name}_{self.lake.id}"

    def send(self, name: str, key: str, n: int, timestamp: int) -> None:
        self._producer.produce(self.topic(name), f'{{"N": {n}}}', key=key, timestamp=timestamp)
        self._producer.flush()

    def repartition(self, parallelism: int, crash: str = "") -> subprocess.CompletedProcess[str]:
        return run(self.location, parallelism, self.work, crash)

    def folders(self) -> list[str]:
        return [name for name in self.lake.local.names("state") if name != "uploaded"] if self.work is None else []

    def end(self) -> None:
        self.served.close()
        self.engine.stop()


@pytest.fixture(params=["short", pytest.param("folder", marks=pytest.mark.long), pytest.param("bucket", marks=pytest.mark.long)])
def world(request: pytest.FixtureRequest, tmp_path: Path, kafka: Kafka) -> Iterator[World]:
    if request.param == "bucket":
        world = World(request.getfixturevalue("bucket").location(""), tmp_path / "engine", kafka)
    else:
        world = World(tmp_path / "lake", None, kafka, request.param == "short")
    yield world
    world.end()


def test_the_state_is_moved(world: World, tmp_path: Path) -> None:
    world.check()
    create_windows(world)
    views = {name: world.lake.catalog().relation(name) for name in VIEWS}
    refused = world.repartition(3)
    assert refused.returncode == 1
    assert "another engine runs" in refused.stderr
    world.engine.stop()
    state = newest(world).state
    if not world.short:
        assert world.repartition(3, "repartition.moved").returncode == KILLED
        assert newest(world).state == state
    crash = "repartition.entered" if world.work is None else ""
    result = world.repartition(3, crash)
    assert result.returncode == (KILLED if crash else 0), result.stderr
    assert crash or "the state has 3 partitions instead of 1: " in result.stdout
    assert newest(world).kind == KIND
    assert (world.work is None) == (newest(world).extra.get(UPLOADED) is None)
    assert world.repartition(3).stdout == "the state has 3 partitions\n"
    assert len(world.folders()) <= 1
    world.engine = world.started(3)
    world.check()
    check_windows(world)
    if world.work is None:
        check_streams(world)
        if not world.short:
            check_filling(world)
            check_lost(world)
    else:
        world.engine.stop()
        assert world.repartition(1, "repartition.entered").returncode == KILLED
        assert world.repartition(1).returncode == 0
        world.engine = world.started(1)
        world.check()
    assert {name: world.lake.catalog().relation(name) for name in VIEWS} == views
    assert "made again" not in (tmp_path / "engine.log").read_text()


HOUR_MS = 3_600_000


def create_windows(world: World) -> None:
    world.stream("clicks")
    windows = "WINDOW TUMBLING (SIZE 1 HOUR, RETENTION 1 DAYS)"
    world.engine.execute(f"CREATE TABLE hourly_counts AS SELECT k, count(*) AS n FROM clicks {windows} GROUP BY k EMIT CHANGES")
    for n, key in enumerate("abcdefgh"):
        world.send("clicks", key, n, HOUR_MS * (1 + n % 2))
    until(lambda: len(rows(world.lake, "hourly_counts")) == 8)


def check_windows(world: World) -> None:
    """Checks that all partitions have the stream time, by which windows leave."""
    world.send("clicks", "a", 9, 30 * HOUR_MS)  # the windows have ended more than a day ago
    until(lambda: len(rows(world.lake, "hourly_counts")) == 1)


STREAMS = {
    "pairs": "CREATE STREAM pairs AS SELECT c.k, c.n AS n, o.n AS m FROM clicks c JOIN orders o WITHIN 1 HOUR ON c.k = o.k EMIT CHANGES",
    "visits": "CREATE TABLE visits AS SELECT k, count(*) AS n FROM clicks WINDOW SESSION (1 HOUR, GRACE PERIOD 1 HOUR) GROUP BY k"
    " EMIT CHANGES",
    "finals": "CREATE TABLE finals AS SELECT k, count(*) AS n FROM clicks WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 0 HOURS) GROUP BY k"
    " EMIT FINAL",
}


def check_streams(world: World) -> None:
    """Moves the state of a join of streams, of sessions and of final results, whose rows have numbers. Stops the engine."""
    world.stream("orders")
    for statement in STREAMS.values():
        world.engine.execute(statement)
    for n, key in enumerate("bcdefg"):
        world.send("clicks", key, n, 31 * HOUR_MS)
    until(lambda: len(rows(world.lake, "visits")) >= 6)
    before = rows(world.lake, "visits")
    assert twice(world, "visits") == 0
    world.engine.stop()
    assert world.repartition(2).returncode == 0
    world.engine = world.started(2)
    assert rows(world.lake, "visits") == before
    for key in "bcdefg":
        world.send("orders", key, 7, 31 * HOUR_MS)
        world.send("clicks", key, 8, 31 * HOUR_MS + 1)
    until(lambda: rows(world.lake, "pairs").total() == 12)
    until(lambda: twice(world, "visits") == 6)
    world.send("clicks", "b", 9, 33 * HOUR_MS)
    until(lambda: twice(world, "finals") == 6)
    world.engine.stop()


def twice(world: World, name: str) -> int:
    """Returns the number of groups of a table that have two rows."""
    columns = [field.name for field in world.lake.catalog().relation(name).columns]
    return sum(row[columns.index("n")] == 2 for row in rows(world.lake, name))


def check_filling(world: World) -> None:
    """Checks that a view whose rows wait for the end of its fill is refused by its name. Stops the engine after the fill."""
    world.engine = EngineProcess(world.location, "--parallelism", "2", "--kafka", world.kafka.address)
    world.engine.start("fill.piece")
    until(lambda: "ticks" in world.engine.get("/status"))
    properties = f"kafka_topic = '{world.topic('names')}', partitions = 1, value_format = 'json'"
    world.engine.execute(f"CREATE TABLE labels (k VARCHAR PRIMARY KEY, label VARCHAR) WITH ({properties})")
    with suppress(OSError):
        join = "SELECT c.k, c.n, l.label FROM clicks c LEFT JOIN labels l ON c.k = l.k EMIT CHANGES"
        world.engine.execute(f"CREATE STREAM labeled AS {join}", {"auto.offset.reset": "earliest"})
    world.engine.died()
    refused = world.repartition(1)
    assert refused.returncode == 1
    assert 'materialized view "labeled" is being filled' in refused.stderr, refused.stderr
    world.engine = world.started(2)
    until(lambda: world.lake.catalog().relation("labeled").ready)
    world.engine.stop()


def check_lost(world: World) -> None:
    """Checks that state without its files is not moved."""
    for file in world.lake.path.glob("state/**/*.changelog"):
        file.unlink()
    result = world.repartition(1)
    assert (result.returncode, "the state is lost" in result.stderr) == (1, True), result.stderr


def run(data: Path | str, parallelism: int, work: Path | None = None, crash: str = "") -> subprocess.CompletedProcess[str]:
    """Runs the command."""
    command = [sys.executable, "-m", "tailgate", "repartition", "--data", str(data), "--parallelism", str(parallelism)]
    command += [] if work is None else ["--work-dir", str(work)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TAILGATE_CRASH": crash}, timeout=300)


def test_a_folder_without_a_lake_is_not_created(tmp_path: Path) -> None:
    result = run(tmp_path / "lake", 3)
    assert (result.returncode, "there is no lake" in result.stderr) == (1, True)
    assert not (tmp_path / "lake").exists()


def test_a_view_whose_rows_wait_for_the_end_of_its_fill() -> None:
    """Its state cannot be moved before."""
    catalog = declared("CREATE TABLE b (id VARCHAR PRIMARY KEY, y INT) WITH (kafka_topic = 'b', value_format = 'json')", declared(READINGS))
    join = "SELECT r.sensor, b.y FROM readings r LEFT JOIN b ON r.sensor = b.id EMIT CHANGES"
    view, _, catalog = derived(f"CREATE STREAM labeled AS {join}", catalog)
    with pytest.raises(TailgateError, match='materialized view "labeled" is being filled'):
        repartition._check_filled(catalog.apply(Change(put=(replace(view, ready=False),))), 2)
    repartition._check_filled(catalog, 2)


def newest(world: World) -> Any:
    header = world.lake.log.newest()
    assert header is not None
    return header
