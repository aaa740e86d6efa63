"""Measures a mirror of a view with 1,000,000 rows: the time to fill it, and the cost of each tick.

python bench/mirror.py [--rows 1000000] [--changed 500] [--ticks 100] [--key 0]

`--key 0 1`: the positions of the key's columns, of id, name, orders and amount.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
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


def table(ids: np.ndarray, version: np.ndarray, weight: int) -> pa.Table:
    columns = [pa.array(ids), pa.array([f"name {i % 1000}" for i in ids]), pa.array(version), pa.array(version * 0.5)]
    return pa.table([*columns, pa.array(np.full(len(ids), weight, np.int64))], names=[*(f.name for f in FORM), WEIGHT])


def resident_mb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def measure(rows: int, changed: int, ticks: int, key: tuple[int, ...]) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        writer = open_epoch(Lake.create(Path(folder) / "lake"))
        item = MaterializedView(16384, "v", FORM, key, stored=True, errors=16385)
        writer.append(kind="catalog", catalog=Change(put=(item,)))
        version = np.zeros(rows, np.int64)
        writer.append([(item.id, table(np.arange(rows), version, 1))])
        lake = Lake(Path(folder) / "lake")
        mirrors = Mirrors(lake, open_sandbox(), Entries(lake))
        before = resident_mb()
        began = time.perf_counter()
        for ready in mirrors.need([item]):
            ready.result()
        filled = time.perf_counter() - began
        random = np.random.default_rng(1)
        spent, cpu = list[float](), list[float]()
        for _ in range(ticks):
            ids = np.sort(random.choice(rows, min(changed, rows), replace=False))
            old = table(ids, version[ids], -1)
            version[ids] += 1
            writer.append([(item.id, pa.concat_tables([old, table(ids, version[ids], 1)]))])
            began, used = time.perf_counter(), time.thread_time()
            mirrors._step()
            spent.append(time.perf_counter() - began)
            cpu.append(time.thread_time() - used)
        last = mirrors.state.n == writer.newest.n
        writer.close()
        p50, p95, p100 = (round(float(np.percentile(spent, p)) * 1000, 1) for p in (50, 95, 100))
        return {
            "rows": rows, "fill_s": round(filled, 2), "changed": changed, "ticks": ticks, "tick_ms": {"p50": p50, "p95": p95, "max": p100},
            "cpu_ms": round(float(np.median(cpu)) * 1000, 1),
            "mirror_mb": resident_mb() - before, "at_the_newest": last,
        }  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--changed", type=int, default=500)
    parser.add_argument("--ticks", type=int, default=100)
    parser.add_argument("--key", type=int, nargs="+", default=[0])
    options = parser.parse_args()
    print(json.dumps(measure(options.rows, options.changed, options.ticks, tuple(options.key))))
