"""Measures the mirrors of views: the time to fill them, and the cost of each tick, which changes all of them.

    .venv/bin/python bench/mirror.py [--rows 1000000] [--changed 500] [--ticks 100] [--key 0] [--relations 1] [--unread]
    .venv/bin/python bench/mirror.py --relations 20 --rows 1000 --changed 10      mark: at most 15 ms in the median

`--rows` and `--changed` are those of each view. `--key 0 1`: the positions of the key's columns, of id, name, orders and amount.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa

from tailgate.gateway.mirrors.entries import Entries
from tailgate.gateway.mirrors.mirrors import Mirrors
from tailgate.gateway.mirrors.sandbox import open_sandbox
from tailgate.lake.catalog import Change, MaterializedView
from tailgate.lake.folder import Lake
from tailgate.lake.types import FLOAT8, INT8, TEXT, WEIGHT, Field
from tailgate.lake.writer.log_writer import open_epoch

FORM = (Field("id", INT8, False), Field("name", TEXT), Field("orders", INT8), Field("amount", FLOAT8))
FIRST_ID = 16384
MARKS_MS = {20: 15}  # of the median, by the number of changed relations


def table(ids: np.ndarray, version: np.ndarray, weight: int) -> pa.Table:
    columns = [pa.array(ids), pa.array([f"name {i % 1000}" for i in ids]), pa.array(version), pa.array(version * 0.5)]
    return pa.table([*columns, pa.array(np.full(len(ids), weight, np.int64))], names=[*(f.name for f in FORM), WEIGHT])


def resident_mb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def measure(options: argparse.Namespace) -> dict[str, object]:
    rows, changed, ticks, relations = options.rows, options.changed, options.ticks, options.relations
    with tempfile.TemporaryDirectory() as folder:
        writer = open_epoch(Lake.create(Path(folder) / "lake"))
        ids = range(FIRST_ID, FIRST_ID + 2 * relations, 2)  # each view is followed by its errors
        items = [MaterializedView(id, f"v{id}", FORM, tuple(options.key), stored=True, errors=id + 1) for id in ids]
        writer.append(kind="catalog", catalog=Change(put=tuple(items)))
        versions = {item.id: np.zeros(rows, np.int64) for item in items}
        writer.append([(id, table(np.arange(rows), version, 1)) for id, version in versions.items()])
        lake = Lake(Path(folder) / "lake")
        mirrors = Mirrors(lake, open_sandbox(), Entries(lake))
        before = resident_mb()
        began = time.perf_counter()
        for ready in mirrors.need(items):
            ready.result()
        filled = time.perf_counter() - began
        random = np.random.default_rng(1)
        spent, cpu = list[float](), list[float]()
        with nullcontext() if options.unread else mirrors.reading():
            for _ in range(ticks):
                writer.append([(id, changes(random, version, changed)) for id, version in versions.items()])
                began, used = time.perf_counter(), time.thread_time()
                mirrors._step()
                spent.append(time.perf_counter() - began)
                cpu.append(time.thread_time() - used)
        last = mirrors.state.n == writer.newest.n
        writer.close()
    p50, p95, p100 = (round(float(np.percentile(spent, p)) * 1000, 1) for p in (50, 95, 100))
    return {
        "relations": relations, "rows": rows, "fill_s": round(filled, 2), "changed": changed, "ticks": ticks,
        "tick_ms": {"p50": p50, "p95": p95, "max": p100}, "mark_ms": MARKS_MS.get(relations),
        "cpu_ms": round(float(np.median(cpu)) * 1000, 1), "mirror_mb": resident_mb() - before, "at_the_newest": last,
    }  # fmt: skip


def changes(random: np.random.Generator, version: np.ndarray, count: int) -> pa.Table:
    """Returns the changes of a tick to `count` rows of a view, which get the next version."""
    ids = np.sort(random.choice(len(version), min(count, len(version)), replace=False))
    old = table(ids, version[ids], -1)
    version[ids] += 1
    return pa.concat_tables([old, table(ids, version[ids], 1)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--changed", type=int, default=500)
    parser.add_argument("--ticks", type=int, default=100)
    parser.add_argument("--key", type=int, nargs="+", default=[0])
    parser.add_argument("--relations", type=int, default=1)
    parser.add_argument("--unread", action="store_true", help="no statement reads the tables of the mirrors")
    print(json.dumps(measure(parser.parse_args())))
