"""Measures how fast a view over 1,000,000 orders of workload W1 (bench/w1) is complete.

Kafka holds 10,000 customers, the orders and 10,000 changes of customers before the engine starts. The
clock runs from the start of the engine's process to the durable log entry that backfills the view. Then
the engine is stopped, and as many orders and changes are produced. The clock runs again, from the
engine's start to the entry that contains the last order: now the engine catches up in ticks. Each time
the view must equal a recompute by DuckDB, whose time is a lower bound of the query's cost. The last
line is JSON.

With `--executors n` all of this runs a second time: the engine's ticks are jobs of n partitions on a Spark master with
n workers of one core. The clock starts when the executors have started.

    .venv/bin/python bench/catchup.py [--orders 1000000] [--customers 10000] [--executors 0]
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
from testing.spark_cluster import SparkCluster

ANSWER_S = 600.0
START_S, COMPLETE_S, PEAK_MIB = 3.5, 10.0, 2048  # marks: maxima
FILL_PER_S, TICKS_PER_S = 250_000, 100_000  # marks: minima
RATIO, DRIVER_MIB = 1.3, 1024  # marks of a cluster: maxima; of the times in terms of those of one process
EXECUTOR_OPTIONS = "-XX:+UseSerialGC"


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


def measured(orders: int, workload: Workload, executors: int = 0) -> dict[str, Any]:
    """Returns the figures of one engine, on a cluster of so many executors, or in one process for 0."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tailgate-bench-")))
        kafka = Kafka(folder / "kafka", jvm=BROKER)
        stack.callback(kafka.stop)
        kafka.start()
        load = Load(kafka.address, workload)
        stack.callback(load.stop)
        load.prepare()
        produced = load.fill(orders)
        cluster = stack.enter_context(SparkCluster(folder / "cluster", executors, EXECUTOR_OPTIONS)) if executors else None
        arguments = () if cluster is None else ("--parallelism", str(executors), *cluster.arguments)
        engine = EngineProcess(folder / "lake", *arguments)
        engines: list[EngineProcess] = []
        usage = stack.enter_context(Usage({"engine": engines, "executors": [] if cluster is None else cluster.workers}))
        out: dict[str, Any] = {}

        def started() -> None:
            """Starts the engine, and waits for its executors."""
            engine.start()
            until(lambda: cluster is None or len(cluster.executors()) == executors)
            engines.append(engine)

        def cpu_s() -> float:
            return sum(usage.cpu_s().values())

        began, used = time.monotonic(), cpu_s()
        stack.callback(engine.stop)
        started()
        out["start_s"], out["start_cpu_s"] = time.monotonic() - began, cpu_s() - used
        for source in SOURCES:
            engine.execute(source.format(kafka=kafka.address))
        filling = time.monotonic()
        engine.execute(f"CREATE MATERIALIZED VIEW {VIEW} AS {QUERY}")  # returns when the view is backfilled and durable
        filled = time.monotonic()
        out["fill_s"], out["fill_per_s"] = filled - filling, orders / (filled - filling)
        out["complete_s"], out["complete_cpu_s"] = filled - began, cpu_s() - used
        out["fill_peak_mib"] = usage.peak_mib["engine"]
        lake = Lake(folder / "lake")
        out["duckdb_s"] = check(lake, workload, produced)

        engines.clear()
        engine.stop()
        produced = load.fill(orders)
        began = time.monotonic()
        started()
        ready, used = time.monotonic(), cpu_s()
        until(lambda: orders_read(lake) == len(produced.times), ANSWER_S)
        ended = time.monotonic()
        out["restart_s"], out["ticks_s"], out["ticks_per_s"] = ended - began, ended - ready, orders / (ended - ready)
        out["ticks_cpu_s"] = cpu_s() - used
        check(lake, workload, produced)
        out["peak_mib"] = usage.peak_mib["engine"]
        return out


LINES = (
    ("start of the process to its first answer, s", "start_s", START_S, False, "start_cpu_s"),
    ("start of the process to the complete view, s", "complete_s", COMPLETE_S, False, "complete_cpu_s"),
    ("of it the view's statement: backfill, s", "fill_s", None, False, ""),
    ("backfill, orders/s", "fill_per_s", FILL_PER_S, True, ""),
    ("start to complete after a restart, s", "restart_s", None, False, ""),
    ("of it in ticks, s", "ticks_s", None, False, "ticks_cpu_s"),
    ("ticks after a restart, orders/s", "ticks_per_s", TICKS_PER_S, True, ""),
    ("peak memory of the engine in the backfill, MiB", "fill_peak_mib", None, False, ""),
    ("peak memory of the engine, MiB", "peak_mib", PEAK_MIB, False, ""),
    ("DuckDB, the query once over rows in memory, s", "duckdb_s", None, False, ""),
)
COMPARED = (("backfill", "fill_s"), ("ticks after a restart", "ticks_s"))


def print_figures(name: str, out: dict[str, Any], marks: bool) -> None:
    print(report.head((name, "measured", "mark", "CPU, s")))
    for line, key, mark, least, cpu in LINES:
        figure = round(out[key]) if out[key] >= 1_000 else round(out[key], 2)
        print(report.line((line, figure, report.mark(out[key], mark if marks else None, least), round(out[cpu], 1) if cpu else "")))
    print("\nThe view equals the recompute after both.\n")
    print(json.dumps({name: round(value, 2) for name, value in out.items()}), flush=True)


def print_cluster(alone: dict[str, Any], cluster: dict[str, Any], executors: int) -> None:
    """Prints the marks of a cluster."""
    print(report.head((f"{executors} executors of one core", "measured", "mark")))
    for line, key in COMPARED:
        ratio = cluster[key] / alone[key]
        print(report.line((f"{line}: time in terms of that of one process", round(ratio, 2), report.mark(ratio, RATIO))))
    peak = cluster["fill_peak_mib"]
    print(report.line(("peak memory of the driver in the backfill, MiB", peak, report.mark(peak, DRIVER_MIB))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, default=1_000_000)
    parser.add_argument("--customers", type=int, default=10_000, help="an even number")
    parser.add_argument("--executors", type=int, default=0, help="of a Spark cluster, on which all runs a second time (none)")
    chosen = parser.parse_args()
    report.use_cores()
    print(report.header(), flush=True)
    name = f"{chosen.orders} orders, {chosen.customers} customers"
    alone = measured(chosen.orders, Workload(chosen.customers))
    print_figures(name, alone, marks=True)
    if chosen.executors:
        cluster = measured(chosen.orders, Workload(chosen.customers), chosen.executors)
        print_figures(f"{name}, {chosen.executors} executors", cluster, marks=False)
        print_cluster(alone, cluster, chosen.executors)


if __name__ == "__main__":
    main()
