"""Measures the lake: an entry, a round of twenty tables, a snapshot, and the delay until a reader sees an entry.

.venv/bin/python bench/log.py [FOLDER]        # on the file system to measure; default: a temporary folder
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from tailgate.lake.catalog import Change, MaterializedView
from tailgate.lake.folder import Lake
from tailgate.lake.log.entry import stream
from tailgate.lake.readers import reading
from tailgate.lake.types import INT8, TEXT, Field
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.lake.writer.retention import sweep
from tailgate.lake.writer.rounds import Follower

VIEWS = 20
ROWS = 5_000  # per view
CHANGED = 50  # rows of each view per tick
TICKS = 60
COLUMNS = (Field("k", INT8), Field("segment", TEXT), Field("orders", INT8))


def timed(action: Callable[[], object], times: int) -> str:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        took.append((time.perf_counter() - began) * 1e3)
    took.sort()
    return f"{took[len(took) // 2]:8.2f} ms   p95 {took[int(len(took) * 0.95)]:8.2f}"


def changed(rows: dict[int, int]) -> bytes:
    """Changes random rows of a view. Returns its section of a tick."""
    keys = random.sample(range(ROWS), CHANGED)
    went = [(k, f"g{k % 7}", rows[k], -1) for k in keys]
    for k in keys:
        rows[k] += 1
    came = [(k, f"g{k % 7}", rows[k], 1) for k in keys]
    return encoded(went + came)


def encoded(rows: list[tuple[int, str, int, int]]) -> bytes:
    return stream(pa.table([list(column) for column in zip(*rows, strict=True)], names=["k", "segment", "orders", "__weight"]))


def run(folder: Path) -> None:
    lake = Lake.create(folder)
    writer = open_epoch(lake)
    ids = [16384 + i for i in range(VIEWS)]
    writer.append(kind="catalog", catalog=Change(put=tuple(MaterializedView(i, f"v{i}", COLUMNS, (0,), stored=True) for i in ids)))
    views = {i: dict.fromkeys(range(ROWS), 0) for i in ids}
    first = encoded([(k, f"g{k % 7}", 0, 1) for k in range(ROWS)])
    writer.append([(i, first) for i in ids])
    follower = Follower(lake, writer.epoch)
    began = time.perf_counter()
    follower.round()
    print(f"first round, {VIEWS} views of {ROWS} rows     {(time.perf_counter() - began) * 1e3:8.0f} ms")
    one = [[(ids[0], changed(views[ids[0]]))] for _ in range(TICKS)]
    print(f"append, 1 relation                  {timed(lambda: writer.append(one.pop(0)), TICKS)}")
    all_ = [[(i, changed(views[i])) for i in ids] for _ in range(TICKS)]
    print(f"append, {VIEWS} relations                {timed(lambda: writer.append(all_.pop(0)), TICKS)}")
    follower.round()

    took = []
    for _ in range(20):
        for _ in range(6):
            writer.append([(i, changed(views[i])) for i in ids])
        began = time.perf_counter()
        follower.round()
        took.append((time.perf_counter() - began) * 1e3)
    print(f"round, {VIEWS} views, 6 ticks            {sorted(took)[10]:8.2f} ms   max {max(took):8.2f}")
    print(f"snapshot now, {ROWS} rows             {timed(lambda: reading.snapshot(lake, ids[0]), 20)}")
    print(f"newest(), nothing new               {timed(lake.log.newest, 1000)}")
    reader = Lake(folder)
    delays: list[float] = []

    def follow() -> None:
        n = reader.log.newest().n
        while len(delays) < 40:
            header = reader.log.wait(n, 5)
            assert header is not None
            n = header.n
            delays.append(time.time() * 1e3 - header.extra["at"])

    thread = threading.Thread(target=follow)
    thread.start()
    time.sleep(0.1)
    for _ in range(40):
        writer.append([(ids[0], changed(views[ids[0]]))], extra={"at": time.time() * 1e3})
        time.sleep(0.05)
    thread.join()
    print(f"append begun to seen by a reader    {sorted(delays)[20]:8.2f} ms   max {max(delays):8.2f}")
    print(f"sweep                               {timed(lambda: sweep(writer), 3)}")
    writer.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as temporary:
        run(Path(temporary) / "lake")
