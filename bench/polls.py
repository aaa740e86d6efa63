"""Measures polls of a view with 100 rows, and look-ups by key, during ticks; PostgreSQL 15 for comparison.

    python bench/polls.py [--seconds 6] [--connections 8]                    as fast as they are answered
    python bench/polls.py --rate 1000 --seconds 60                           at a fixed rate; a tick per second
    python bench/polls.py --idle 5000                                        the cost of idle connections
    python bench/polls.py --dsn postgresql://… --relation v --key column     a running gateway with its own ticks

The script starts its own lake, writer and gateway. Load comes from one thread over plain sockets. The
servers are measured in turns, and PostgreSQL's table is updated at the same times. The last line is
JSON: answers per second, latencies in ms, and ratios to PostgreSQL. `stolen_ms` is the CPU time that the
host took from this machine during the measurement.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pyarrow as pa
from _load import Client, execute, figures, offered, parse, query, steady  # a module of this folder
from _processes import resident_mib, stolen_ms

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tailgate.lake.catalog import Change, Item, MaterializedView  # noqa: E402
from tailgate.lake.folder import Lake  # noqa: E402
from tailgate.lake.types import INT8, TEXT, WEIGHT, Field  # noqa: E402
from tailgate.lake.writer.log_writer import open_epoch  # noqa: E402
from testing.postgres import Postgres  # noqa: E402

ROWS, CHANGED = 100, 20
TICK_S = 0.2  # seconds between ticks; a second when polling at a fixed rate
SLICE_S = 10.0  # seconds of one server's turn at a fixed rate
MARK_MS = {"p95": 5, "max": 10}
FORM = (Field("id", INT8, False), Field("segment", TEXT), Field("views", INT8), Field("last_page", TEXT))


@contextmanager
def own_gateway(folder: Path) -> Iterator[tuple[str, Callable[[int], None], int]]:
    """Starts a gateway over a new lake.

    Yields its DSN, a function that writes a tick, its process id.
    """
    writer = open_epoch(Lake.create(folder / "lake"))
    item = MaterializedView(16384, "v", FORM, (0,), stored=True, errors=16385)
    writer.append(kind="catalog", catalog=Change(put=(item,)))
    writer.append([(item.id, rows(range(ROWS), 0, 1))])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"Path({str(folder / 'lake')!r}), port={port}"
    program = f"from tailgate.gateway.main import Options, run; from pathlib import Path; run(Options({options}))"
    child = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        assert child.stdout.readline().startswith("ready"), "the gateway did not start"
        yield f"postgresql://bench@127.0.0.1:{port}/tailgate", lambda step: tick(writer, item, step), child.pid
    finally:
        child.terminate()
        child.wait()
        child.stdout.close()
        writer.close()


def values(ids: range | list[int], version: int) -> list[tuple[int, str, int, str]]:
    return [(i, f"segment {i % 7}", version * 10 + i, f"/page/{(i + version) % 50}") for i in ids]


def rows(ids: range | list[int], version: int, weight: int) -> pa.Table:
    columns = list(zip(*values(ids, version), strict=True))
    weights = pa.array([weight] * len(ids), pa.int64())
    return pa.Table.from_arrays([*(pa.array(c) for c in columns), weights], names=[*(f.name for f in FORM), WEIGHT])


def touched(step: int) -> list[tuple[int, int]]:
    """Returns the ids that a tick changes, with their versions before it."""
    first = step * CHANGED % ROWS
    return [(i, step * CHANGED // ROWS) for i in range(first, first + CHANGED)]


def tick(writer, item: Item, step: int) -> None:
    ids, (version, *_) = [i for i, _ in touched(step)], [v for _, v in touched(step)]
    writer.append([(item.id, pa.concat_tables([rows(ids, version, -1), rows(ids, version + 1, 1)]))])


@contextmanager
def postgresql() -> Iterator[tuple[str, Callable[[int], None]]]:
    server = Postgres()
    try:
        server.start()
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE v (id bigint PRIMARY KEY, segment text, views bigint, last_page text)")
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO v VALUES (%s, %s, %s, %s)", values(range(ROWS), 0))
            connection.execute("VACUUM ANALYZE v")

            def tick(step: int) -> None:
                changes = [(views, page, i) for i, _, views, page in values([i for i, _ in touched(step)], touched(step)[0][1] + 1)]
                with connection.transaction(), connection.cursor() as cursor:
                    cursor.executemany("UPDATE v SET views = %s, last_page = %s WHERE id = %s", changes)

            yield server.dsn, tick
    finally:
        server.stop()


@contextmanager
def ticking(*ticks: Callable[[int], None], every: float = TICK_S) -> Iterator[list[int]]:
    """Runs ticks in a thread, at the same times on all servers."""
    stop, count = threading.Event(), [0]

    def run() -> None:
        while not stop.wait(every):
            for one in ticks:
                one(count[0])
            count[0] += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield count
    finally:
        stop.set()
        thread.join()


def measure(options: argparse.Namespace) -> dict[str, object]:
    with ExitStack() as stack:
        theirs, their_tick = stack.enter_context(postgresql())
        if options.dsn:
            ours, ticks = options.dsn, [their_tick]
        else:
            ours, our_tick, _ = stack.enter_context(own_gateway(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
            ticks = [our_tick, their_tick]
        keys = list(range(ROWS))
        if options.dsn:
            with psycopg.connect(options.dsn) as connection:
                keys = [k for (k,) in connection.execute(f"SELECT {options.key} FROM {options.relation}").fetchall()]
        count = stack.enter_context(ticking(*ticks))
        out: dict[str, object] = {
            "connections": options.connections,
            "seconds": options.seconds,
            "load": [round(x, 1) for x in os.getloadavg()],
        }
        for name, prepare, of in (
            ("scan", lambda r, k: None, lambda r, k, keys: lambda: query(f"SELECT * FROM {r}")),
            (
                "look_up",
                lambda r, k: parse("p", f"SELECT * FROM {r} WHERE {k} = $1"),
                lambda r, k, keys: lambda: execute("p", str(random.choice(keys))),
            ),
        ):
            got: dict[str, list[float]] = {"tailgate": [], "postgresql": []}
            for _ in range(2):  # in turns, so that both see the same variance of the machine
                for who, dsn, relation, key, some in (
                    ("tailgate", ours, options.relation, options.key, keys),
                    ("postgresql", theirs, "v", "id", list(range(ROWS))),
                ):
                    got[who] += offered(dsn, options.connections, options.seconds / 2, prepare(relation, key), of(relation, key, some))
            both = {who: figures(latencies, options.seconds) for who, latencies in got.items()}
            out[name] = both | {"ratio": round(both["tailgate"]["per_second"] / both["postgresql"]["per_second"], 2)}
        out["ticks"] = count[0]
        return out


def at_a_rate(options: argparse.Namespace) -> dict[str, object]:
    """Polls the view `given.rate` times per second, from another process than that of the ticks."""
    with ExitStack() as stack:
        theirs, their_tick = stack.enter_context(postgresql())
        ours, our_tick, _ = stack.enter_context(own_gateway(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
        load = stack.enter_context(multiprocessing.get_context("spawn").Pool(1))
        count = stack.enter_context(ticking(our_tick, their_tick, every=1.0))
        got: dict[str, list[float]] = {"tailgate": [], "postgresql": []}
        stolen = {"tailgate": 0.0, "postgresql": 0.0}
        for _ in range(max(round(options.seconds / SLICE_S), 1)):
            for who, dsn in (("tailgate", ours), ("postgresql", theirs)):
                part, before = min(SLICE_S, options.seconds), stolen_ms()
                got[who] += load.apply(steady, (dsn, options.connections, options.rate, part, "SELECT * FROM v"))
                stolen[who] += stolen_ms() - before
        both = {who: {**figures(latencies, options.seconds), "stolen_ms": stolen[who]} for who, latencies in got.items()}
        held = {who: all(quantiles[name] < mark for name, mark in MARK_MS.items()) for who, quantiles in both.items()}
        return {"rate": options.rate, "connections": options.connections, **both, "within_the_mark": held, "ticks": count[0]}


def at_rest(options: argparse.Namespace) -> dict[str, object]:
    """Measures connections that have run one query and then stay open."""
    with tempfile.TemporaryDirectory() as folder, own_gateway(Path(folder)) as (dsn, _, pid):
        first = Client(dsn)
        first.ask(query("SELECT * FROM v"))
        before = resident_mib(pid)
        clients = [Client(dsn) for _ in range(options.idle)]
        for one in clients:
            one.ask(query("SELECT * FROM v"))
        after = resident_mib(pid)
        began = time.perf_counter()
        first.ask(query("SELECT * FROM v"))
        return {
            "idle": options.idle,
            "mib_before": before,
            "mib_with_them": after,
            "a_poll_beside_ms": round((time.perf_counter() - began) * 1000, 2),
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dsn")
    parser.add_argument("--relation", default="v")
    parser.add_argument("--key", default="id")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--rate", type=float, help="polls a second")
    parser.add_argument("--idle", type=int, help="connections that do nothing")
    options = parser.parse_args()
    print(json.dumps((at_a_rate if options.rate else at_rest if options.idle else measure)(options)))
