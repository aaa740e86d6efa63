"""The cost of a tick with many views: 20 separate joins and aggregates, 20 over a shared join, and one alone.

Orders and changes of customers come from Kafka at a steady rate. A tick's time is read from the log,
from its start to its durable entry. CPU is that of the driver and its JVM, all threads, and of the driver's thread that runs the
ticks, for which one view may take THREAD_MS, and each further changed relation RELATION_MS. In the same run
DuckDB recomputes the same queries over the same rows, in memory: the cost of equally fresh results
without maintenance. At the end each view must equal DuckDB's result. With `--scrape` the engine's metrics are read
once a second in every second slice of SLICE_S, and the ticks of both kinds of slices are compared.

    .venv/bin/python bench/views.py [--views 20] [--rate 1000] [--seconds 60] [--only own] [--scrape]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
from _processes import cpu_s, main_thread_cpu_s, scraped  # modules of this folder
from _repeated import repeated

from bench.w1.load import Load, Produced
from bench.w1.orders import Workload
from bench.w1.systems import SOURCES
from bench.w1.turns import BROKER
from tailgate.embedded.children import free_port
from tailgate.embedded.kafka import Kafka
from tailgate.engine.runtime.kafka import requests as broker
from tailgate.lake.folder import Lake
from testing.engine_process import EngineProcess, rows, until

BEFORE = 50_000  # orders produced before the views are created
CUSTOMERS = 10_000
WARM_S = 30.0  # for the JVM's compiler
ANSWER_S = 300.0
SLICE_S, SCRAPE_S = 10.0, 1.0
THREAD_MS, RELATION_MS = 3.0, 0.3  # marks of the CPU of the driver's thread for a tick

OWN = """SELECT c.segment, o.item, count(*) AS orders, sum(o.amount) AS amount
         FROM orders o JOIN customers c ON o.customer_id = c.id WHERE o.amount > {n} GROUP BY c.segment, o.item"""
SHARED = """SELECT c.segment, o.item, count(*) AS orders, sum(o.amount + {n}) AS amount
            FROM orders o JOIN customers c ON o.customer_id = c.id GROUP BY c.segment, o.item"""


def caught_up(lake: Lake, brokers: str) -> bool:
    """Returns whether all messages of the topics are in the log."""
    newest = lake.log.newest()
    assert newest is not None
    at = {topic: parts for reader in newest.offsets.values() for topic, parts in reader.items()}
    topics = broker.look(brokers, ["orders", "customers"], {})
    return all(at.get(t, {}).get(p, 0) >= high for t, state in topics.items() for p, (_, high) in state.bounds.items())


def ticks_ms(lake: Lake, seconds: float) -> list[float]:
    """Returns the sorted times of the ticks of an interval: from the tick's time to the link of its entry."""
    durations = []
    newest = lake.log.newest()
    assert newest is not None
    n, until = newest.n, time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(1.0)
        newest = lake.log.newest()
        assert newest is not None
        for n in range(n + 1, newest.n + 1):  # noqa: B020  # continues after the last entry
            header = lake.log.header(n)
            if header.kind == "tick":
                durations.append((lake.path / "log" / str(n)).stat().st_ctime * 1000 - header.time)
    return sorted(durations)


def duckdb_ms(produced: Produced, queries: list[str]) -> tuple[float, list[Counter[tuple[Any, ...]]]]:
    with duckdb.connect() as engine:
        Workload(CUSTOMERS).fill(engine, len(produced.times), produced.changes)
        began = time.monotonic()
        answers = [Counter(engine.execute(q).fetchall()) for q in queries]
        return (time.monotonic() - began) * 1000, answers


def scrape(port: int, took_ms: list[float]) -> None:
    """Reads the metrics, and adds the time that it took."""
    began = time.monotonic()
    scraped(port)
    took_ms.append((time.monotonic() - began) * 1000)


def paired(lake: Lake, port: int, seconds: float, pids: dict[str, int]) -> dict[str, Any]:
    """Returns the median of the ticks without and with scrapes, CPU of the engine in percent of a core, and the time of a scrape."""
    durations: dict[bool, list[float]] = {False: [], True: []}
    cpu_percent: dict[bool, list[float]] = {False: [], True: []}
    took_ms: list[float] = []
    for number in range(round(seconds / SLICE_S)):
        scrapes = number % 2 == 1
        before = sum(map(cpu_s, pids.values()))
        with repeated(SCRAPE_S, lambda: scrape(port, took_ms)) if scrapes else contextlib.nullcontext():
            durations[scrapes] += ticks_ms(lake, SLICE_S)
        cpu_percent[scrapes].append((sum(map(cpu_s, pids.values())) - before) / SLICE_S * 100)
    without, with_them = (sorted(durations[scrapes]) for scrapes in (False, True))
    return {
        "p50_ms_without_scrapes": round(without[len(without) // 2], 2),
        "p50_ms_with_scrapes": round(with_them[len(with_them) // 2], 2),
        "cpu_percent_without_scrapes": round(sum(cpu_percent[False]) / len(cpu_percent[False]), 1),
        "cpu_percent_with_scrapes": round(sum(cpu_percent[True]) / len(cpu_percent[True]), 1),
        "scrape_ms": round(sorted(took_ms)[len(took_ms) // 2], 1),
    }


def created(engine: EngineProcess, name: str, query: str) -> float:
    """Creates a view. Returns the time in ms until it is filled."""
    began = time.monotonic()
    engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    return (time.monotonic() - began) * 1000


def measured(name: str, queries: list[str], rate: int, seconds: float, *, scrape: bool = False) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tailgate-bench-") as folder:
        kafka = Kafka(Path(folder) / "kafka", jvm=BROKER)
        kafka.start()
        load = Load(kafka.address, Workload(CUSTOMERS))
        port = free_port()
        engine = EngineProcess(Path(folder) / "lake", "--metrics", f"127.0.0.1:{port}")
        try:
            load.prepare()
            load.fill(BEFORE)
            engine.start()
            for statement in SOURCES:
                engine.execute(statement.format(kafka=kafka.address))
            created_ms = [created(engine, f"v{i}", query) for i, query in enumerate(queries)]
            lake = Lake(Path(folder) / "lake")
            load.start(rate, rate / 100)
            time.sleep(WARM_S)
            pids = {"driver": engine.pid, "jvm": engine.jvm}
            before, thread, began = {p: cpu_s(pid) for p, pid in pids.items()}, main_thread_cpu_s(engine.pid), time.monotonic()
            durations = ticks_ms(lake, seconds)
            after, took = {p: cpu_s(pid) for p, pid in pids.items()}, time.monotonic() - began
            thread_ms = (main_thread_cpu_s(engine.pid) - thread) * 1000 / len(durations)
            compared = paired(lake, port, seconds, pids) if scrape else {}
            produced = load.finish()
            until(lambda: caught_up(lake, kafka.address), ANSWER_S)
            recomputed, answers = duckdb_ms(produced, queries)
            for i, answer in enumerate(answers):
                assert rows(lake, f"v{i}") == answer, f"v{i} is not DuckDB's answer"
            return {
                "case": name,
                "views": len(queries),
                # of the views around the tenth, and of the last ones
                "created_p50_ms": [round(statistics.median(part)) for part in (created_ms[5:15] or created_ms, created_ms[-10:])],
                "ticks": len(durations),
                "p50_ms": round(durations[len(durations) // 2], 1),
                "p95_ms": round(durations[int(len(durations) * 0.95)], 1),
                "max_ms": round(durations[-1], 1),
                **{f"{p}_cpu_ms_per_tick": round((after[p] - before[p]) * 1000 / len(durations), 1) for p in pids},
                "tick_thread_cpu_ms": round(thread_ms, 2),
                "tick_thread_mark_ms": round(THREAD_MS + RELATION_MS * (len(queries) - 1), 1),
                "cpu_percent": round(sum(after[p] - before[p] for p in pids) / took * 100),
                "duckdb_ms": round(recomputed, 1),
                **compared,
                "load": os.getloadavg()[0],
            }
        finally:
            if engine.child is not None:
                engine.stop()
            load.stop()
            kafka.stop()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--views", type=int, default=20)
    options.add_argument("--rate", type=int, default=1000)
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--only", default="", choices=("", "one", "own", "shared"))
    options.add_argument("--scrape", action="store_true", help="compare ticks with and without scrapes of the metrics")
    chosen = options.parse_args()
    cases = {
        "one": [OWN.format(n=0)],
        "own": [OWN.format(n=n) for n in range(chosen.views)],
        "shared": [SHARED.format(n=n) for n in range(chosen.views)],
    }
    for name, queries in cases.items():
        if chosen.only in ("", name):
            print(json.dumps(measured(name, queries, chosen.rate, chosen.seconds, scrape=chosen.scrape)), flush=True)


if __name__ == "__main__":
    main()
