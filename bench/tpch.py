"""TPC-H's 22 queries as views: CPU of the engine's JVM per changed row; recomputes by DuckDB and Spark.

The tables are loaded, then rounds of the refresh functions add 1 % new orders with their lines and
remove as many. The circuit is driven directly, without a streaming query. Needs the package
duckdb-extension-tpch.

    .venv/bin/python bench/tpch.py [--scale 0.01] [--rounds 4] [--only q03]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
from operators import cpu_us  # a module of this folder

from tailgate.engine.runtime.spark import session as spark
from testing.tpch import QUERIES, TABLES, Shop, generated
from testing.views import Views


def milliseconds(run: Callable[[], Any]) -> float:
    """Returns the milliseconds of the second run."""
    run()
    start = time.perf_counter()
    run()
    return round((time.perf_counter() - start) * 1000, 1)


def measured(session: Any, server: duckdb.DuckDBPyConnection, path: Path, rounds: int) -> dict[str, Any]:
    text = path.read_text()
    shop = Shop(server, 1)
    server.execute("BEGIN")  # every query begins with the same rows
    with tempfile.TemporaryDirectory(prefix="tailgate-bench-") as folder:
        views = Views(session, Path(folder), shop, 1)
        assert views.add("v", text), f"{path.stem} is refused"
        before = cpu_us(session)
        everything = shop.all()
        for at in range(0, len(everything), 20_000):
            views.tick(everything[at : at + 20_000])
        filled = cpu_us(session) - before
        costs: list[float] = []
        for _ in range(rounds):
            changes = shop.refreshed()
            before = cpu_us(session)
            views.tick(changes)
            costs.append((cpu_us(session) - before) / len(changes))
    figures = {
        "query": path.stem,
        "us_per_row_filled": round(filled / len(everything), 1),
        "us_per_changed_row": round(statistics.median(costs), 1),
        "duckdb_ms": milliseconds(lambda: server.execute(text).fetchall()),
        "spark_ms": milliseconds(lambda: session.sql(text).collect()),
    }
    server.execute("ROLLBACK")
    return figures


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--scale", type=float, default=0.01)
    options.add_argument("--rounds", type=int, default=4)
    options.add_argument("--only", default="")
    chosen = options.parse_args()
    server = generated(chosen.scale)
    with tempfile.TemporaryDirectory(prefix="tailgate-bench-") as scratch:
        session = spark.start(Path(scratch), 1)
        try:
            for name in TABLES:
                file = f"{scratch}/{name}.parquet"
                server.execute(f"COPY {name} TO '{file}' (FORMAT parquet)")
                session.read.parquet(file).createOrReplaceTempView(name)
            for path in QUERIES:
                if chosen.only in path.stem:
                    print(json.dumps(measured(session, server, path, chosen.rounds)), flush=True)
        finally:
            session.stop()


if __name__ == "__main__":
    main()
