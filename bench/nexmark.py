"""Nexmark: events per second that each query's view takes in, alone in a circuit, beside DuckDB's recompute of the whole query.

The circuit is driven straight, a tick per batch of events, durable state included, the log and Kafka not. Seconds are of CPU of Spark's
task, one core's; what this program does to make batches and to keep the answer is not counted, nor are the first ticks, which warm the
JVM's compiler up. `ticks_per_recompute`: how many ticks DuckDB's one recompute over all rows so far takes.

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
from operators import tasks_us  # beside this file

from engine.runtime import session as spark
from lake.types import arrow_schema
from tests.engine.plan.views import Views
from tests.nexmark import FUNCTION, TABLES, Row, duckdb_query, events, names, query
from tests.worlds import Table, World

WARM = 4  # ticks


def recompute_s(name: str, rows: dict[str, list[Row]]) -> float:
    with duckdb.connect() as engine:
        for table, columns in TABLES.items():
            made = [dict(zip((c.name for c in columns), row, strict=True)) for row in rows[table]]
            engine.register("given", pa.Table.from_pylist(made, schema=arrow_schema(columns)))
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
