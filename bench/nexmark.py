"""Nexmark: events per second of CPU for each query's view, and DuckDB's recompute of the query.

Each view is alone in a circuit, which is driven directly, one tick per batch of events, with durable
state but without log and Kafka. Seconds are CPU of Spark's task, which uses one core. The time to make
batches and to keep the result is not counted, and the first ticks, which warm up the JVM's compiler, are
not either. `ticks_per_recompute` is the number of ticks that take as long as one recompute by DuckDB.

    .venv/bin/python bench/nexmark.py [--events 5000] [--ticks 12] [--only q05]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from operators import tasks_us  # a module of this folder

from tailgate.engine.runtime.spark import session as spark
from tailgate.lake.types import arrow_schema
from testing.nexmark import FUNCTION, TABLES, Row, duckdb_query, events, names, query
from testing.random_queries import Table
from testing.views import Views
from testing.worlds import World

WARM = 4  # ticks


def recompute_s(name: str, rows: dict[str, list[Row]]) -> float:
    with duckdb.connect() as engine:
        for table, columns in TABLES.items():
            records = [dict(zip((c.name for c in columns), row, strict=True)) for row in rows[table]]
            engine.register("given", pa.Table.from_pylist(records, schema=arrow_schema(columns)))
            engine.execute(f"CREATE TABLE {table} AS FROM given")
        began = time.monotonic()
        engine.execute(duckdb_query(name)).fetch_arrow_table()
        return time.monotonic() - began


def measured(session: Any, name: str, count: int, ticks: int) -> dict[str, Any]:
    tables = {table: Table(16384 + 4 * i, table, columns) for i, (table, columns) in enumerate(TABLES.items())}
    world = World(0, tables=0)
    world.tables = tuple(tables.values())
    pid = spark.jvm_pid(session)
    with tempfile.TemporaryDirectory(prefix="tailgate-bench-") as folder:
        views = Views(session, Path(folder), world, 1)
        views.function(FUNCTION)
        if not views.add(name, query(name)):
            return {"query": name, "refused": True}
        views.build()
        stream, rows = events(1), {table: list[Row]() for table in TABLES}
        took = []
        for _ in range(ticks):
            batch = list(islice(stream, count))
            for table, row in batch:
                rows[table].append(row)
            before = tasks_us(pid)
            views.tick([(tables[table], row, 1) for table, row in batch])
            took.append(sum(us - before.get(thread, 0.0) for thread, us in tasks_us(pid).items()) / 1e6)
        tick_s = statistics.median(took[WARM:])
        ratio = recompute_s(name, rows) / tick_s
        return {
            "query": name,
            "events_per_s": round(count / tick_s),
            "tick_ms": round(1000 * tick_s, 1),
            "ticks_per_recompute": round(ratio, 2),
        }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--events", type=int, default=5_000)
    options.add_argument("--ticks", type=int, default=12)
    options.add_argument("--only", default="")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailgate-bench-") as scratch:
        session = spark.start(Path(scratch), 1)
        try:
            for name in names():
                if chosen.only in name:
                    print(json.dumps(measured(session, name, chosen.events, chosen.ticks)), flush=True)
        finally:
            session.stop()


if __name__ == "__main__":
    main()
