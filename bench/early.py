"""Compares aggregation before a join with aggregation after it: CPU time of the task per tick, and state.

`facts` (200,000 rows of 10,000 customers) is append-only; `customers` has a key. The view counts and
sums facts by the customer's segment. Both plans get the same changes in turn, in one JVM.

    .venv/bin/python bench/early.py [--rows 200000] [--keys 10000]
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

from operators import tasks_us  # a module of this folder

from tailgate.engine.runtime.spark import session as spark
from tailgate.lake.types import INT4, TEXT, Field, Type
from testing.random_queries import Row, Table
from testing.views import Views
from testing.worlds import World

QUERY = "SELECT c.segment, count(*) AS n, sum(f.amount) AS amount FROM facts f JOIN customers c ON f.customer_id = c.id GROUP BY c.segment"
FACTS = Table(16384, "facts", (Field("id", INT4), Field("customer_id", INT4), Field("amount", Type("numeric", (12, 2)))), None, True)
CUSTOMERS = Table(16388, "customers", (Field("id", INT4, False), Field("segment", TEXT)), (0,))
WARM, TICKS = 6, 20
PIECE = 20_000  # facts per tick of the initial load


class Planned(Views):
    """Views planned with known sizes of relations, or without."""

    rows_known: dict[int, int] | None = None

    def planned_by(self, query: str, depends: Iterable[int]) -> dict[int, int] | None:
        return self.rows_known


class Bench:
    def __init__(self, session: Any, folder: Path, options: argparse.Namespace, early: bool) -> None:
        self.pid, self.chance, self.id, self.keys = spark.jvm_pid(session), random.Random(1), 0, options.keys
        world = World(0, tables=0)
        world.tables, world.rows = (FACTS, CUSTOMERS), {FACTS.id: Counter(), CUSTOMERS.id: Counter()}
        self.views = Planned(session, folder, world, 1)
        self.views.rows_known = {FACTS.id: options.rows, CUSTOMERS.id: options.keys} if early else None
        assert self.views.add("v", QUERY)
        self.views.build()
        self.segments = {id: f"segment {id % 100}" for id in range(options.keys)}
        self.fill_us = self.tick([(CUSTOMERS, row, 1) for row in self.segments.items()])
        self.fill_us += sum(self.tick(self.facts(PIECE)) for _ in range(options.rows // PIECE))

    def facts(self, count: int) -> list[tuple[Table, Row, int]]:
        self.id += count
        key, amount = self.chance.randrange, self.chance.randrange
        return [(FACTS, (self.id - i, key(self.keys), Decimal(amount(100_000)) / 100), 1) for i in range(count)]

    def customers(self, count: int) -> list[tuple[Table, Row, int]]:
        changes: list[tuple[Table, Row, int]] = []
        for id in self.chance.sample(range(self.keys), count):
            changes.append((CUSTOMERS, (id, self.segments[id]), -1))
            self.segments[id] = f"segment {self.chance.randrange(100)}"
            changes.append((CUSTOMERS, (id, self.segments[id]), 1))
        return changes

    def tick(self, changes: list[tuple[Table, Row, int]]) -> float:
        before = tasks_us(self.pid)
        self.views.tick(changes)
        return sum(us - before.get(t, 0.0) for t, us in tasks_us(self.pid).items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailgate-bench-") as scratch:
        session = spark.start(Path(scratch), 1)
        try:
            plans = {early: Bench(session, Path(scratch) / str(early), options, early) for early in (False, True)}
            for early, bench in plans.items():
                nodes = bench.views.circuits.figures(str(bench.views.folder), [], 1).nodes.values()
                state = {"entries": sum(n.state_rows for n in nodes), "bytes": sum(n.state_bytes for n in nodes)}
                print(json.dumps({"grouped": "before" if early else "after", "fill_ms": round(bench.fill_us / 1000), **state}), flush=True)
            for what, count in (("facts", 150), ("facts", 3000), ("customers", 10), ("customers", 100)):
                took: dict[bool, list[float]] = {False: [], True: []}
                for _ in range(WARM + TICKS):
                    for early, bench in plans.items():
                        took[early].append(bench.tick(getattr(bench, what)(count)) / 1000)
                means = {("before" if e else "after"): round(statistics.mean(ms[WARM:]), 2) for e, ms in took.items()}
                print(json.dumps({"changed": f"{count} {what}", **means}), flush=True)
            assert plans[False].views.rows[CUSTOMERS.id] == plans[True].views.rows[CUSTOMERS.id]
            answers = [bench.views.rows[bench.views.catalog.relation("v").id] for bench in plans.values()]
            assert answers[0] == answers[1], "both plans have one answer"
        finally:
            session.stop()


if __name__ == "__main__":
    main()
