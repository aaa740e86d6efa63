"""Uploads of state snapshots that hang or fail slow down ticks, but do not make them fail; nor do thousands of ticks at full speed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tailgate.lake.folder import Lake
from testing.engine_process import EngineProcess, rows, until
from tests.engine.runtime.mutating import mutated
from tests.tables.world import Served

pytestmark = pytest.mark.spark

TICKS = int(os.environ.get("TAILGATE_TICKS", "20000"))  # takes some minutes: each waits for its fsyncs
TABLE = "CREATE TABLE numbers (n int)"
VIEW = "CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n, sum(n) AS total FROM numbers"

# DurableFiles creates every file of a snapshot. While the marker file exists, no upload completes.
OLD = "@Override public void setPermission(Path path, FsPermission permission) {}"
HANG = """@Override public void setPermission(Path path, FsPermission permission) {{
        if (!path.getName().contains(".zip")) return;
        try {{
          while (java.nio.file.Files.exists(java.nio.file.Path.of("{marker}"))) Thread.sleep(20);
        }} catch (InterruptedException e) {{
          Thread.currentThread().interrupt();
        }}
      }}"""
FAIL = """@Override public void setPermission(Path path, FsPermission permission) {{
        if (path.getName().contains(".zip") && java.nio.file.Files.exists(java.nio.file.Path.of("{marker}")))
          throw new java.io.UncheckedIOException(new java.io.IOException("no space left on device"));
      }}"""


class World:
    """An engine and a gateway over one lake, and a writer of rows.

    `limit` is the maximum number of state versions since the last uploaded snapshot.
    """

    def __init__(self, folder: Path, limit: int | None) -> None:
        self.folder, self.lake_folder = folder, folder / "lake"
        self.limit = limit or 700
        options = "" if limit is None else f" -Dtailgate.lineage.max={limit}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TAILGATE_JAVA_OPTIONS", os.environ.get("TAILGATE_JAVA_OPTIONS", "") + options)
            self.engine = EngineProcess(self.lake_folder)
            self.engine.start()
        self.lake = Lake(self.lake_folder)
        self.served = Served(self.lake)
        self.written = self.longest = 0
        self.going = True

    def write(self) -> None:
        """Inserts rows one by one, each in a tick, as fast as possible."""
        with psycopg.connect(self.served.dsn, autocommit=True) as connection:
            while self.going:
                connection.execute("INSERT INTO numbers VALUES (%s)", [self.written])  # type: ignore[call-overload]
                self.written += 1

    def versions(self) -> int:
        count = int(self.engine.get("/status")["state_versions"])
        self.longest = max(self.longest, count)
        return count

    def end(self) -> None:
        self.going = False
        self.served.close()
        self.engine.stop()


def run(world: World, text: str, seconds: float, least: float = 0) -> None:
    """Writes while uploads hang or fail for some seconds, and until there are more than `least` versions."""
    marker = world.folder / "marker"
    with psycopg.connect(world.served.dsn, autocommit=True) as connection:
        connection.execute(TABLE)
        connection.execute(VIEW)
    with mutated(world.engine, world.folder, "DurableFiles", OLD, text.format(marker=marker)):
        writer = threading.Thread(target=world.write, daemon=True)
        writer.start()
        until(lambda: world.written > 20)
        marker.touch()
        ends, last = time.monotonic() + seconds, world.written
        while time.monotonic() < ends:
            time.sleep(0.2)
            world.versions()
        until(lambda: world.longest > least or world.versions() > least)
        assert world.written > last
        marker.unlink()
        until(lambda: world.versions() < 0.4 * world.limit)
        last = world.written
        until(lambda: world.written > last + 20)
        world.going = False
        writer.join(30)
        assert not writer.is_alive()
    check(world)


def check(world: World) -> None:
    """Checks that no tick has failed, and that all rows are there, also after a kill."""
    log = (world.folder / "engine.log").read_text()
    assert "a tick failed" not in log
    assert "CANNOT_LOAD" not in log
    total = sum(range(world.written))
    assert rows(world.lake, "counted") == {(world.written, total): 1}
    world.engine.kill(jvm=True)
    world.engine.start()
    assert "is missing or damaged" not in (world.folder / "engine.log").read_text()
    with psycopg.connect(world.served.dsn, autocommit=True) as connection:
        connection.execute("INSERT INTO numbers VALUES (0)")
        assert connection.execute("SELECT n, total FROM counted").fetchone() == (world.written + 1, total)


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    world_under_test = World(tmp_path, request.param)
    yield world_under_test
    world_under_test.end()


@pytest.mark.parametrize("world", [40], indirect=True)
def test_an_upload_that_hangs_slows_ticks_down(world: World) -> None:
    run(world, HANG, 3.0, 0.4 * world.limit)
    assert world.longest <= world.limit


@pytest.mark.long
@pytest.mark.parametrize("world", [40], indirect=True)
def test_uploads_that_fail_slow_ticks_down(world: World) -> None:
    run(world, FAIL, 20.0)
    assert world.longest <= 44


@pytest.mark.long
@pytest.mark.parametrize("world", [None], indirect=True)
def test_an_upload_that_hangs_for_two_minutes(world: World) -> None:
    run(world, HANG, 120.0)
    assert world.longest <= 700


@pytest.mark.long
@pytest.mark.parametrize("world", [None], indirect=True)
def test_thousands_of_ticks_at_full_speed(world: World) -> None:
    with psycopg.connect(world.served.dsn, autocommit=True) as connection:
        connection.execute(TABLE)
        connection.execute(VIEW)
    writer = threading.Thread(target=world.write, daemon=True)
    writer.start()
    while int(world.engine.get("/status")["ticks"]) < TICKS:
        before = world.written
        time.sleep(1.0)
        world.versions()
        assert world.written > before
    world.going = False
    writer.join(30)
    check(world)
    assert world.longest < 0.4 * world.limit, "no tick has waited for an upload"
