"""Measures growth on one machine: many views, and a large table with a key. Prints a table of figures with their marks.

    views    200 separate joins and aggregates over 1,000 orders/s (bench/views.py): ticks, and the creation of views
    table    10,000,000 rows, of which 5,000 random ones change each second: Delta tables, look-ups by key, and a gateway's memory

The whole takes less than ten minutes on an idle machine. The last line is JSON.

    .venv/bin/python bench/scale.py [--views 200] [--rows 10000000] [--seconds 45] [--only views]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
from _processes import proportional_mib  # modules of this folder
from views import OWN, TENTH, measured

from tailgate.embedded.children import Child, free_port
from tailgate.lake import peers
from tailgate.lake.folder import Lake
from testing.engine_process import until

RATE = 1_000  # orders per second
ORDERS_BEFORE = 5_000
CHANGES, WRITES = 5_000, 5  # changed keys per second, and the statements that they are written with
BEHIND = "tailgate_engine_round_entries_behind"
START = timedelta(seconds=120)
FILL_S = 300.0  # limit until the tables contain all rows
# maxima, by figure
MARKS = {
    "tick, p50, ms": 600,
    "driver, CPU ms per changed relation": 0.5,
    "creation of the last view, times that of the tenth": 2,
    "tables behind the log, p95, s": 3,
    "look-up by key, p95, ms": 5,
    "gateway, MiB": 3072,
}


def of_views(count: int, seconds: float) -> dict[str, float]:
    """Returns the figures of many views. Each changes in each tick."""
    result = measured("own", [OWN.format(n=n) for n in range(count)], RATE, seconds, before=ORDERS_BEFORE)
    return {
        "tick, p50, ms": result["p50_ms"],
        "driver, CPU ms per changed relation": round(result["driver_cpu_ms_per_tick"] / count, 2),
        "creation of the last view, times that of the tenth": round(result["created_last_s"] / result[f"created_{TENTH}_s"], 1),
    }


def behind(port: int) -> int:
    """Returns the number of log entries that the Delta tables do not contain yet."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return int(float(next(line for line in lines if line.startswith(BEHIND)).split()[-1]))


def lag_s(lake: Lake, port: int) -> float:
    """Returns the age of the oldest entry that the Delta tables do not contain, in seconds."""
    entries, newest = behind(port), lake.log.newest()
    assert newest is not None
    return max(0.0, time.time() - lake.log.header(newest.n - entries + 1).time / 1000) if entries else 0.0


def batches(rows: int) -> Iterator[str]:
    """Yields the rows of the table, as text for COPY."""
    for first in range(0, rows, 100_000):
        yield "".join(f"{i}\t{i % 97}\titem {i % 1000}\n" for i in range(first, min(first + 100_000, rows)))


class Changes(threading.Thread):
    """Changes random rows until `stop`."""

    def __init__(self, dsn: str, rows: int) -> None:
        super().__init__(daemon=True)
        self._dsn, self._rows, self._stopped = dsn, rows, threading.Event()
        self.count = 0

    def run(self) -> None:
        chooser, due = random.Random(1), time.monotonic()
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._stopped.wait(max(0.0, due - time.monotonic())):
                due += 1 / WRITES
                keys = [chooser.randrange(self._rows) for _ in range(CHANGES // WRITES)]
                self.count += connection.execute("UPDATE t SET n = n + 1 WHERE id = ANY(%s)", [keys]).rowcount

    def stop(self) -> None:
        self._stopped.set()
        self.join(60)


def of_table(rows: int, seconds: float) -> dict[str, float]:
    """Returns the figures of a large table with a key."""
    with tempfile.TemporaryDirectory(prefix="tailgate-bench-") as folder:
        port, metrics = free_port(), free_port()
        command = ["tailgate", "up", "--data", f"{folder}/lake", "--listen", f"127.0.0.1:{port}", "--metrics", f"127.0.0.1:{metrics}"]
        tailgate = Child("tailgate", [sys.executable, "-m", *command], log=Path(folder) / "log", announces="ready postgresql=")
        try:
            tailgate.wait_ready(tailgate.announced, START)
            lake, dsn = Lake(Path(folder) / "lake"), f"host=127.0.0.1 port={port} user=a dbname=b"
            return _changed(lake, dsn, metrics + 1, rows, seconds)
        finally:
            tailgate.stop()


def _changed(lake: Lake, dsn: str, engine_metrics: int, rows: int, seconds: float) -> dict[str, float]:
    took_ms, lags = [], []
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, n int, item text)")
        with connection.cursor() as cursor, cursor.copy("COPY t FROM STDIN") as copy:
            for batch in batches(rows):
                copy.write(batch)
        until(lambda: behind(engine_metrics) == 0, FILL_S)
        changes = Changes(dsn, rows)
        changes.start()
        chooser, end = random.Random(2), time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(20):
                began = time.perf_counter()
                assert connection.execute("SELECT n FROM t WHERE id = %s", [chooser.randrange(rows)]).fetchone() is not None
                took_ms.append((time.perf_counter() - began) * 1e3)
                time.sleep(0.01)
            lags.append(lag_s(lake, engine_metrics))
        changes.stop()
        assert changes.count > 0.5 * CHANGES * seconds, f"only {changes.count} rows were changed"
        row = connection.execute("SELECT sum(n) FROM t").fetchone()
        assert row == (sum(i % 97 for i in range(rows)) + changes.count,)
        memory = max(proportional_mib(peer.pid) for peer in peers.announced(lake))
    return {
        "tables behind the log, p95, s": round(sorted(lags)[int(0.95 * len(lags))], 1),
        "look-up by key, p95, ms": round(sorted(took_ms)[int(0.95 * len(took_ms))], 1),
        "gateway, MiB": memory,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--views", type=int, default=200)
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--seconds", type=float, default=45.0)
    options.add_argument("--only", default="", choices=("", "views", "table"))
    chosen = options.parse_args()
    figures: dict[str, float] = {}
    if chosen.only in ("", "views"):
        figures |= of_views(chosen.views, chosen.seconds)
    if chosen.only in ("", "table"):
        figures |= of_table(chosen.rows, chosen.seconds)
    for name, value in figures.items():
        print(f"{name:52} {value:10,.1f}   mark {MARKS[name]:g}{'' if value <= MARKS[name] else '   exceeded'}")
    print(json.dumps({"views": chosen.views, "rows": chosen.rows, "load": os.getloadavg()[0], **figures}), flush=True)


if __name__ == "__main__":
    main()
