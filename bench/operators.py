"""The cost of a changed row by operator: microseconds of CPU of the circuit's task, including decoding.

The views read two tables, `a` (100,000 rows) and `b` (10,000). After the initial load, ticks change `a`
only, half of the changes inserts and half deletes. The circuit is driven directly, without a streaming
query. The fixed cost of a tick, measured with ticks of one row, is subtracted. `process` is the CPU of
the whole JVM over the same ticks, with its compiler and garbage collector.

`append-only`: the same operator without deletions. `one_row_ms`: the task's CPU for a tick of one row.
With `--keys 1` all rows have the same key; if this tick then takes much longer, the operator reads all
rows of a key.

    .venv/bin/python bench/operators.py [--rows 100000] [--keys 10000] [--changes 5000] [--only join]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from tailgate.engine.plan.circuit.graph import Graph
from tailgate.engine.runtime.spark import session as spark
from tailgate.engine.runtime.spark.circuits import Circuits
from tailgate.lake.types import INT4, INT8, TEXT, Field, Type
from testing.random_queries import Row, Table
from testing.views import Views
from testing.worlds import World

QUERIES = {
    "filter and projection": "SELECT k, v + 1 AS w FROM a WHERE v % 2 = 0",
    "inner join": "SELECT a.id, b.name FROM a JOIN b ON a.k = b.k",
    "left join": "SELECT a.id, b.name FROM a LEFT JOIN b ON a.k = b.k",
    "semi join": "SELECT id FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k)",
    "count and sum by group": "SELECT k, count(*) AS n, sum(v) AS s FROM a GROUP BY k",
    "sum of numeric by group": "SELECT k, sum(amount) AS s FROM a GROUP BY k",
    "sum of double precision by group": "SELECT k, sum(v::float8) AS s FROM a GROUP BY k",
    "max by group": "SELECT k, max(v) AS m FROM a GROUP BY k",
    "count distinct by group": "SELECT k, count(DISTINCT v) AS n FROM a GROUP BY k",
    "string_agg by group": "SELECT k, string_agg(name, ',' ORDER BY id) AS names FROM a GROUP BY k",
    "percentile_cont by group": "SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY v::float8) AS p FROM a GROUP BY k",
    "distinct": "SELECT DISTINCT k, v FROM a",
    "union all": "SELECT id FROM a UNION ALL SELECT k FROM a",
    "except": "SELECT k FROM a EXCEPT SELECT k FROM b",
    "top 3 by group": "SELECT k, v FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM a) q WHERE n <= 3",
    "row_number over groups": "SELECT id, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM a",
    "temporal filter": "SELECT id FROM a WHERE mz_now() < v + 1000000",
    "join and sum by group": "SELECT b.name, count(*) AS n, sum(a.v) AS s FROM a JOIN b ON a.k = b.k GROUP BY b.name",
}
APPEND_ONLY = ("inner join", "max by group")
TICKS = 6
TASK = "Executor task"  # name prefix of the threads that run the circuit


class Growing(Circuits):
    """Circuits whose joins and reduces treat all inputs as append-only."""

    def build(self, graph: Graph, forgotten: Iterable[int] = ()) -> Any:
        operators = tuple(
            replace(o, append_only=(True, True))
            if isinstance(o, graph.Join)
            else replace(o, append_only=True)
            if isinstance(o, graph.Reduce)
            else o
            for o in graph.operators
        )
        return super().build(replace(graph, operators=operators), forgotten)


def tables(rows: int, keys: int, chance: random.Random) -> World:
    a = Table(
        16384, "a", (Field("id", INT4), Field("k", INT4), Field("v", INT8), Field("amount", Type("numeric", (12, 2))), Field("name", TEXT))
    )
    b = Table(16388, "b", (Field("k", INT4), Field("name", TEXT)))
    world = World(0, tables=0)
    world.tables = (a, b)
    world.rows = {a.id: Counter(row(i, keys, chance) for i in range(rows)), b.id: Counter((k, f"segment {k % 100}") for k in range(keys))}
    return world


def row(id: int, keys: int, chance: random.Random) -> Row:
    return (id, chance.randrange(keys), chance.randrange(100_000), Decimal(chance.randrange(100_000)) / 100, f"name {id}")


def cpu_us(session: Any) -> float:
    """Returns the CPU microseconds of the JVM so far."""
    return int(session._jvm.java.lang.ProcessHandle.current().info().totalCpuDuration().get().toNanos()) / 1000


def tasks_us(pid: int) -> dict[str, float]:
    """Returns the CPU microseconds so far of each thread that runs tasks."""
    times = {}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the thread may have ended
            if (thread / "comm").read_text().startswith(TASK):
                times[thread.name] = int((thread / "schedstat").read_text().split()[0]) / 1e3
    return times


def measured(session: Any, name: str, query: str, options: argparse.Namespace, append_only: bool = False) -> dict[str, Any] | None:
    chance = random.Random(1)
    world = tables(options.rows, options.keys, chance)
    a, pid = world.tables[0], spark.jvm_pid(session)
    with tempfile.TemporaryDirectory(prefix="tailgate-bench-") as folder:
        views = Views(session, Path(folder), world, 1)
        if append_only:
            views.circuits = Growing(session)
        if not views.add("v", query):
            return None
        views.build()
        for table in world.tables:
            everything = [(table, r, 1) for r in world.rows[table.id]]
            for at in range(0, len(everything), 20_000):
                views.tick(everything[at : at + 20_000])
        present, id = sorted(world.rows[a.id]), options.rows
        costs: dict[int, list[tuple[float, float, float]]] = {1: [], options.changes: []}
        for tick in range(2 * TICKS):
            count = options.changes if tick % 2 else 1
            removed = [] if append_only else [present.pop(chance.randrange(len(present))) for _ in range(count // 2)]
            new = [row(id + i, options.keys, chance) for i in range(count - len(removed))]
            id += count
            present += new
            tasks, process, wall = tasks_us(pid), cpu_us(session), time.perf_counter()
            views.tick([(a, r, -1) for r in removed] + [(a, r, 1) for r in new])
            took = (time.perf_counter() - wall) * 1e6, cpu_us(session) - process
            costs[count].append((sum(us - tasks.get(t, 0.0) for t, us in tasks_us(pid).items()), *took))
    of_one, of_many = ([statistics.mean(c) for c in zip(*costs[n][2:], strict=True)] for n in (1, options.changes))
    task, wall, process = ((many - one) / (options.changes - 1) for one, many in zip(of_one, of_many, strict=True))
    return {
        "operator": name + (", append-only" if append_only else ""),
        "us_per_changed_row": round(task, 1),
        "process": round(process, 1),
        "wall": round(wall, 1),
        "one_row_ms": round(of_one[0] / 1000, 2),
        "one_row_process_ms": round(of_one[2] / 1000, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=5_000)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailgate-bench-") as scratch:
        session = spark.start(Path(scratch), 1)
        try:
            measured(session, "", next(iter(QUERIES.values())), options)  # warms up the JVM's compiler
            for name, query in QUERIES.items():
                for append_only in (False, True) if name in APPEND_ONLY else (False,):
                    if options.only in name:
                        figures = measured(session, name, query, options, append_only)
                        print(json.dumps(figures or {"operator": name, "refused": True}), flush=True)
        finally:
            session.stop()


if __name__ == "__main__":
    main()
