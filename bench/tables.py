"""Measures COPY into a table with a key and without views, then single inserts; PostgreSQL 15 for comparison.

    .venv/bin/python bench/tables.py [--rows 400000] [--repeat 3] [--sessions 16]

The inserts come from one session, then from many. Both servers get the same bytes from the same client.
When Tailgate answers COPY, the rows are durable in the lake, committed by a tick and readable.
PostgreSQL runs with its defaults (fsync and synchronous_commit on). CPU is that of all processes of the
server, per row copied.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
from _processes import tree_cpu_s  # a module of this folder
from psycopg.conninfo import conninfo_to_dict

from tailgate.embedded.children import Child, free_port
from testing.postgres import Postgres

SINGLES = 50
TOGETHER_S = 5.0
TABLE = "CREATE TABLE orders (id bigint PRIMARY KEY, customer int, item text, amount numeric(10,2), at timestamp)"


def data(first: int, rows: int) -> bytes:
    lines = (
        f"{i}\t{i % 10_000}\titem {i % 97}\t{i % 1000}.{i % 100:02d}\t2026-01-{i % 28 + 1:02d} 10:{i % 60:02d}:00\n"
        for i in range(first, first + rows)
    )
    return "".join(lines).encode()


def copied(connection: psycopg.Connection[Any], body: bytes) -> float:
    began = time.perf_counter()
    with connection.cursor() as cursor, cursor.copy("COPY orders FROM STDIN") as copy:
        for at in range(0, len(body), 1 << 16):
            copy.write(body[at : at + (1 << 16)])
    return time.perf_counter() - began


async def together(dsn: str, sessions: int) -> tuple[int, float]:
    """Runs inserts in parallel sessions, as prepared statements. Returns inserts per second, and the median in ms."""
    took: list[float] = []
    options = conninfo_to_dict(dsn)
    address = {"host": options["host"], "port": int(options["port"] or 0), "user": options["user"], "database": options["dbname"]}

    async def insert(session: int) -> None:
        connection = await asyncpg.connect(**address)
        statement = await connection.prepare("INSERT INTO orders (id) VALUES ($1)")
        until = time.perf_counter() + TOGETHER_S
        for i in range(1_000_000):
            began = time.perf_counter()
            if began > until:
                break
            await statement.fetch(-1_000_000 * (session + 1) - i)
            took.append((time.perf_counter() - began) * 1e3)
        await connection.close()

    await asyncio.gather(*(insert(n) for n in range(sessions)))
    return round(len(took) / TOGETHER_S), statistics.median(took)


def measure(name: str, dsn: str, pid: int, options: argparse.Namespace) -> float:
    rows, repeat = options.rows, options.repeat
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(TABLE)
        copied(connection, data(-10_000, 10_000))  # warm-up
        bodies = [data(i * rows, rows) for i in range(repeat)]
        before = tree_cpu_s(pid)
        took = [copied(connection, body) for body in bodies]
        used = (tree_cpu_s(pid) - before) * 1e6 / (rows * repeat)
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (rows * repeat + 10_000,)
        singles = []
        for i in range(SINGLES):
            began = time.perf_counter()
            connection.execute("INSERT INTO orders (id) VALUES (%s)", (-20_000 - i,))
            singles.append((time.perf_counter() - began) * 1e3)
    rate = rows / statistics.median(took)
    each = ", ".join(f"{rows / t:,.0f}" for t in took)
    each_s, median = asyncio.run(together(dsn, options.sessions))
    print(
        f"{name:12} COPY {rate:10,.0f} rows/s ({each}), {used:.1f} us of CPU a row   INSERT of one row {statistics.median(singles):6.1f} ms"
        f"   {options.sessions} sessions: {each_s:,} inserts/s, {median:.1f} ms each",
        flush=True,
    )
    return rate


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=400_000, help="of one COPY")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=16)
    options = parser.parse_args()
    postgres = Postgres({"fsync": "on"})
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tailgate", "up", "--data", f"{folder}/lake", "--listen", f"127.0.0.1:{port}"]
        tailgate = Child("tailgate", command, log=Path(folder) / "log", announces="ready postgresql=")
        try:
            postgres.start()
            tailgate.wait_ready(tailgate.announced, timedelta(seconds=120))
            time.sleep(10)  # the engine's first ticks
            theirs = measure("PostgreSQL", postgres.dsn, postgres.pid, options)
            ours = measure("Tailgate", f"host=127.0.0.1 port={port} user=a dbname=b", tailgate.pid, options)
            print(f"ratio {ours / theirs:.2f}")
        finally:
            tailgate.stop()
            postgres.stop()


if __name__ == "__main__":
    main()
