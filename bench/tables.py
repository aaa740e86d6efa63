"""COPY into a keyed table with no view on it, beside PostgreSQL 15 on the same machine in the same run; then inserts one at a time.

.venv/bin/python bench/tables.py [--rows 400000] [--repeat 3]

Both servers get the same bytes from the same client. Tailgate's rows are durable in the lake, committed by a tick and readable when COPY
answers; PostgreSQL runs with its defaults (fsync and synchronous_commit on).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

from embedded.children import Child, free_port
from tests.postgres import Postgres

SINGLES = 50
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


def measure(name: str, dsn: str, rows: int, repeat: int) -> float:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(TABLE)
        copied(connection, data(-10_000, 10_000))  # warm
        took = [copied(connection, data(i * rows, rows)) for i in range(repeat)]
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (rows * repeat + 10_000,)
        singles = []
        for i in range(SINGLES):
            began = time.perf_counter()
            connection.execute("INSERT INTO orders (id) VALUES (%s)", (-20_000 - i,))
            singles.append((time.perf_counter() - began) * 1e3)
    rate = rows / statistics.median(took)
    each = ", ".join(f"{rows / t:,.0f}" for t in took)
    print(f"{name:12} COPY {rate:10,.0f} rows/s ({each})   INSERT of one row {statistics.median(singles):6.1f} ms", flush=True)
    return rate


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=400_000, help="of one COPY")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    postgres = Postgres({"fsync": "on"})
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "cli", "up", "--data", f"{folder}/lake", "--listen", f"127.0.0.1:{port}"]
        tailgate = Child("tailgate", command, log=Path(folder) / "log", announces="ready postgresql=")
        try:
            postgres.start()
            tailgate.wait_ready(tailgate.announced, timedelta(seconds=120))
            time.sleep(10)  # the engine's first ticks
            theirs = measure("PostgreSQL", postgres.dsn, options.rows, options.repeat)
            ours = measure("Tailgate", f"host=127.0.0.1 port={port} user=a dbname=b", options.rows, options.repeat)
            print(f"ratio {ours / theirs:.2f}")
        finally:
            tailgate.stop()
            postgres.stop()


if __name__ == "__main__":
    main()
