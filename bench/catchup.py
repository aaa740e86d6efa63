"""Measures how fast a view over 1,000,000 orders of workload W1 (bench/w1) is complete.

Kafka holds 10,000 customers, the orders and 10,000 changes of customers before the engine starts. The
clock runs from the start of the engine's process to the durable log entry that backfills the view. Then
the engine is stopped, and as many orders and changes are produced. The clock runs again, from the
engine's start to the entry that contains the last order: now the engine catches up in ticks. Each time
the view must equal a recompute by DuckDB, whose time is a lower bound of the query's cost. The last
line is JSON.

    .venv/bin/python bench/catchup.py [--orders 1000000] [--customers 10000]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb

from bench.w1 import report
from bench.w1.load import Load, Produced
from bench.w1.orders import ORDERS, QUERY, VIEW, Workload
from bench.w1.systems import SOURCES
from bench.w1.turns import BROKER
from bench.w1.usage import Usage
from tailgate.embedded.kafka import Kafka
from tailgate.lake.folder import Lake
from testing.engine_process import EngineProcess, rows, until

ANSWER_S = 600.0
START_S, COMPLETE_S, PEAK_MIB = 3.5, 10.0, 2048  # marks: maxima
FILL_PER_S, TICKS_PER_S = 250_000, 100_000  # marks: minima


def orders_read(lake: Lake) -> int:
    """Returns how many orders the newest log entry has read."""
    newest = lake.log.newest()
    assert newest is not None
    return sum(topics[ORDERS]["0"] for topics in newest.offsets.values() if ORDERS in topics)


def check(lake: Lake, workload: Workload, produced: Produced) -> float:
    """Recomputes the view in DuckDB.

    Returns the seconds; raises AssertionError if the view differs.
    """
    with duckdb.connect() as db:
        workload.fill(db, len(produced.times), produced.changes)
        began = time.monotonic()
        answer = db.execute(QUERY).fetchall()
        took = time.monotonic() - began
    assert rows(lake, VIEW) == Counter(answer), "the view is not its query"
    return took


def measured(orders: int, workload: Workload) -> dict[str, Any]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tailgate-bench-")))
        kafka = Kafka(folder / "kafka", jvm=BROKER)
        stack.callback(kafka.stop)
        kafka.start()
        load = Load(kafka.address, workload)
        stack.callback(load.stop)
        load.prepare()
        produced = load.fill(orders)
        engine = EngineProcess(folder / "lake")
        engines: list[EngineProcess] = []
        usage = stack.enter_context(Usage({"engine": engines}))
        out: dict[str, Any] = {}

        began = time.monotonic()
        engine.start()
        stack.callback(engine.stop)
        engines.append(engine)
        out["start_s"], out["start_cpu_s"] = time.monotonic() - began, usage.cpu_s()["engine"]
        for source in SOURCES:
            engine.execute(source.format(kafka=kafka.address))
        filling = time.monotonic()
        engine.execute(f"CREATE MATERIALIZED VIEW {VIEW} AS {QUERY}")  # returns when the view is backfilled and durable
        filled = time.monotonic()
        out["fill_s"], out["fill_per_s"] = filled - filling, orders / (filled - filling)
        out["complete_s"], out["complete_cpu_s"] = filled - began, usage.cpu_s()["engine"]
        lake = Lake(folder / "lake")
        out["duckdb_s"] = check(lake, workload, produced)

        engines.clear()
        engine.stop()
        produced = load.fill(orders)
        began = time.monotonic()
        engine.start()
        engines.append(engine)
        started, used = time.monotonic(), usage.cpu_s()["engine"]
        until(lambda: orders_read(lake) == len(produced.times), ANSWER_S)
        ended = time.monotonic()
        out["restart_s"], out["ticks_s"], out["ticks_per_s"] = ended - began, ended - started, orders / (ended - started)
        out["ticks_cpu_s"] = usage.cpu_s()["engine"] - used
        check(lake, workload, produced)
        out["peak_mib"] = usage.peak_mib["engine"]
        return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, default=1_000_000)
    parser.add_argument("--customers", type=int, default=10_000, help="an even number")
    chosen = parser.parse_args()
    report.use_cores()
    print(report.header(), flush=True)
    out = measured(chosen.orders, Workload(chosen.customers))
    lines = (
        ("start of the process to its first answer, s", "start_s", START_S, False, "start_cpu_s"),
        ("start of the process to the complete view, s", "complete_s", COMPLETE_S, False, "complete_cpu_s"),
        ("of it the view's statement: backfill, s", "fill_s", None, False, ""),
        ("backfill, orders/s", "fill_per_s", FILL_PER_S, True, ""),
        ("start to complete after a restart, s", "restart_s", None, False, ""),
        ("of it in ticks, s", "ticks_s", None, False, "ticks_cpu_s"),
        ("ticks after a restart, orders/s", "ticks_per_s", TICKS_PER_S, True, ""),
        ("peak memory of the engine, MiB", "peak_mib", PEAK_MIB, False, ""),
        ("DuckDB, the query once over rows in memory, s", "duckdb_s", None, False, ""),
    )
    print(report.head((f"{chosen.orders} orders, {chosen.customers} customers", "measured", "mark", "engine's CPU, s")))
    for name, key, mark, least, cpu in lines:
        figure = round(out[key]) if out[key] >= 1_000 else round(out[key], 2)
        print(report.line((name, figure, report.mark(out[key], mark, least), round(out[cpu], 1) if cpu else "")))
    print("\nThe view equals the recompute after both.\n")
    print(json.dumps({"orders": chosen.orders, "customers": chosen.customers, **{name: round(value, 2) for name, value in out.items()}}))


if __name__ == "__main__":
    main()
