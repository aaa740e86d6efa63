"""What a changed row costs, operator by operator: microseconds of CPU of the engine's JVM, the decoding of its input included.

Views over two tables, `a` (100,000 rows) and `b` (10,000), that hold rows already; then ticks of changes of `a` alone, each half inserts
and half deletes. The circuit is driven straight, without a streaming query, so a tick's own cost (about 20 ms) is measured too, by ticks
of one row, and taken off.

    .venv/bin/python bench/operators.py [--rows 100000] [--changes 5000] [--only join]
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

from engine.runtime import session as spark
from lake.types import INT4, INT8, TEXT, Field, Type
from tests.engine.plan.test_law import Views
from tests.worlds import Row, Table, World

QUERIES = {
    "filter and projection": "SELECT k, v + 1 AS w FROM a WHERE v % 2 = 0",
    "inner join": "SELECT a.id, b.name FROM a JOIN b ON a.k = b.k",
    "left join": "SELECT a.id, b.name FROM a LEFT JOIN b ON a.k = b.k",
    "semi join": "SELECT id FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k)",
    "count and sum by group": "SELECT k, count(*) AS n, sum(v) AS s FROM a GROUP BY k",
    "sum of numeric by group": "SELECT k, sum(amount) AS s FROM a GROUP BY k",
    "max by group": "SELECT k, max(v) AS m FROM a GROUP BY k",
    "count distinct by group": "SELECT k, count(DISTINCT v) AS n FROM a GROUP BY k",
    "string_agg by group": "SELECT k, string_agg(name, ',' ORDER BY id) AS names FROM a GROUP BY k",
    "distinct": "SELECT DISTINCT k, v FROM a",
    "union all": "SELECT id FROM a UNION ALL SELECT k FROM a",
    "except": "SELECT k FROM a EXCEPT SELECT k FROM b",
    "top 3 by group": "SELECT k, v FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM a) q WHERE n <= 3",
    "row_number over groups": "SELECT id, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM a",
    "temporal filter": "SELECT id FROM a WHERE mz_now() < v + 1000000",
    "join and sum by group": "SELECT b.name, count(*) AS n, sum(a.v) AS s FROM a JOIN b ON a.k = b.k GROUP BY b.name",
}
KEYS = 10_000
TICKS = 6


def tables(rows: int, chance: random.Random) -> World:
    a = Table(
        16384, "a", (Field("id", INT4), Field("k", INT4), Field("v", INT8), Field("amount", Type("numeric", (12, 2))), Field("name", TEXT))
    )
    b = Table(16388, "b", (Field("k", INT4), Field("name", TEXT)))
    world = World(0, tables=0)
    world.tables = (a, b)
    world.rows = {a.id: Counter(row(i, chance) for i in range(rows)), b.id: Counter((k, f"segment {k % 100}") for k in range(KEYS))}
    return world


def row(id: int, chance: random.Random) -> Row:
    return (id, chance.randrange(KEYS), chance.randrange(1000), Decimal(chance.randrange(100_000)) / 100, f"name {id}")


def cpu_us(session: Any) -> float:
    """Of the JVM since it began."""
    return int(session._jvm.java.lang.ProcessHandle.current().info().totalCpuDuration().get().toNanos()) / 1000


def measured(session: Any, name: str, query: str, rows: int, changes: int) -> dict[str, Any] | None:
    chance = random.Random(1)
    world = tables(rows, chance)
    a = world.tables[0]
    with tempfile.TemporaryDirectory(prefix="tailgate-bench-") as folder:
        views = Views(session, Path(folder), world, 1)
        if not views.add("v", query):
            return None
        views.build()
        for table in world.tables:
            everything = [(table, r, 1) for r in world.rows[table.id]]
            for at in range(0, len(everything), 20_000):
                views.tick(everything[at : at + 20_000])
        present, id = sorted(world.rows[a.id]), rows
        costs: dict[int, list[float]] = {1: [], changes: []}
        for tick in range(2 * TICKS):
            count = changes if tick % 2 else 1
            gone = [present.pop(chance.randrange(len(present))) for _ in range(count // 2)]
            new = [row(id + i, chance) for i in range(count - len(gone))]
            id += count
            present += new
            before = cpu_us(session)
            views.tick([(a, r, -1) for r in gone] + [(a, r, 1) for r in new])
            costs[count].append(cpu_us(session) - before)
    tick_us = statistics.median(costs[1][2:])
    return {
        "operator": name,
        "us_per_changed_row": round((statistics.median(costs[changes][2:]) - tick_us) / changes, 1),
        "tick_ms": round(tick_us / 1000, 1),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--changes", type=int, default=5_000)
    options.add_argument("--only", default="")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailgate-bench-") as scratch:
        session = spark.start(Path(scratch), 1)
        try:
            measured(session, "", next(iter(QUERIES.values())), chosen.rows, chosen.changes)  # the JVM's compiler
            for name, query in QUERIES.items():
                if chosen.only in name:
                    found = measured(session, name, query, chosen.rows, chosen.changes)
                    print(json.dumps(found or {"operator": name, "refused": True}), flush=True)
        finally:
            session.stop()


if __name__ == "__main__":
    main()
