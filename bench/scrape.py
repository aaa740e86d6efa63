"""Measures a scrape of a gateway's metrics with many views, all of which are mirrored and change: its duration and its CPU time.

    python bench/scrape.py [--views 500] [--scrapes 50]

The gateway is a process; this one writes the lake and answers as an engine that knows the ages of all inputs.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
from _processes import scraped  # a module of this folder

from tailgate.embedded.children import free_port
from tailgate.engine.runtime.control.control import Answers, Control
from tailgate.engine.runtime.control.entry_stream import EntryStream
from tailgate.lake.catalog import Change, MaterializedView, Source
from tailgate.lake.folder import Lake
from tailgate.lake.types import INT8, WEIGHT, Field
from tailgate.lake.writer.engines import Announcement
from tailgate.lake.writer.log_writer import open_epoch

FIRST_ID = 16384
COLUMNS = (Field("id", INT8, False),)
CPU = re.compile(rb"^process_cpu_seconds_total ([0-9.e+-]+)$", re.MULTILINE)
LAG = b"tailgate_gateway_freshness_lag_seconds{"


class World:
    """A lake with a source and views of it, its engine, and a gateway process."""

    def __init__(self, folder: Path, views: int) -> None:
        self.lake = Lake.create(folder / "lake")
        self.writer = open_epoch(self.lake)
        source = Source(id=FIRST_ID, name="orders", columns=COLUMNS, channel="r/orders")
        ids = range(FIRST_ID + 1, FIRST_ID + 1 + 2 * views, 2)
        self.views = [
            MaterializedView(id, f"orders_of_customer_{n}", COLUMNS, (0,), depends=(source.id,), stored=True, ready=True, errors=id + 1)
            for n, id in enumerate(ids)
        ]
        self.writer.append(kind="catalog", catalog=Change(put=(source, *self.views)))
        nothing: Any = lambda *arguments: {}  # noqa: E731
        self.control = Control(Answers(nothing, EntryStream(self.lake.log).serve, nothing, nothing, freshness=self._freshness))
        self.control.start()
        Announcement.mine(self.writer.epoch, self.control.address, self.control.token, None).write(self.lake)
        self.port, self.metrics = free_port(2), 0
        self.metrics = self.port + 1
        addresses = ["--listen", f"127.0.0.1:{self.port}", "--metrics", f"127.0.0.1:{self.metrics}"]
        command = [sys.executable, "-m", "tailgate", "gateway", "--data", str(self.lake.path), *addresses]
        self.gateway = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.gateway.stdout is not None and b"ready" in self.gateway.stdout.readline()

    def _freshness(self, after: int, version: int) -> dict[str, Any]:
        time.sleep(0.5)
        now = time.time_ns() // 1_000_000
        return {"n": 0, "version": version + 1, "inputs": {FIRST_ID: [now - 100, None]}, "failing": [], "ticks": []}

    def tick(self, number: int) -> None:
        """Adds a row to each view."""
        row = pa.table([pa.array([number], pa.int64()), pa.array([1], pa.int64())], names=["id", WEIGHT])
        self.writer.append([(view.id, row) for view in self.views])

    def read(self) -> None:
        """Reads each view once, after which it is mirrored."""
        with psycopg.connect(f"host=127.0.0.1 port={self.port} user=ann dbname=shop", autocommit=True) as connection:
            for view in self.views:
                connection.execute(f"SELECT count(*) FROM {view.name}".encode())

    def scrape(self) -> tuple[float, bytes]:
        """Returns the duration in ms, and the answer."""
        start = time.perf_counter()
        data = scraped(self.metrics, timeout_s=60)
        return (time.perf_counter() - start) * 1000, data

    def close(self) -> None:
        self.gateway.terminate()
        self.gateway.wait(30)
        self.control.stop()
        self.writer.close()


def cpu_s(answer: bytes) -> float:
    match = CPU.search(answer)
    assert match is not None
    return float(match[1])


def measure(views: int, scrapes: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), views)
        try:
            world.tick(0)
            world.read()
            world.tick(1)
            deadline = time.monotonic() + 60
            while world.scrape()[1].count(LAG) < views + 1:
                assert time.monotonic() < deadline, "the gateway does not know the lag"
                time.sleep(0.2)
            idle_start, (_, first) = time.monotonic(), world.scrape()
            time.sleep(5)
            idle_s, (_, second) = time.monotonic() - idle_start, world.scrape()
            idle = (cpu_s(second) - cpu_s(first)) / idle_s  # with one scrape, which is part of the noise
            start, answers = time.monotonic(), [world.scrape() for _ in range(scrapes)]
            took_s = time.monotonic() - start
            cpu = cpu_s(answers[-1][1]) - cpu_s(answers[0][1]) - idle * took_s
            durations = sorted(ms for ms, _ in answers)
            return {
                "views": views,
                "series": sum(not line.startswith(b"#") for line in answers[-1][1].splitlines()),
                "scrape_ms_p50": round(statistics.median(durations), 1),
                "scrape_ms_max": round(durations[-1], 1),
                "scrape_cpu_ms": round(cpu / (scrapes - 1) * 1000, 1),
                "mark_ms": 20,
            }
        finally:
            world.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--views", type=int, default=500)
    parser.add_argument("--scrapes", type=int, default=50)
    options = parser.parse_args()
    print(json.dumps(measure(options.views, options.scrapes)))


if __name__ == "__main__":
    main()
