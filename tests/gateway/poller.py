"""`python -m tests.gateway.poller DSN`: polls until its input ends, then prints how many seconds each answer took, as JSON,
and by how much the longest pause between two statements was too long: the time for which the machine did not run a process that was ready.

Three statements in turn: a row by its key, one that reads nothing, and one that is computed each time. For each line of input it says
`polled` after three that began since.
"""

from __future__ import annotations

import json
import random
import select
import sys
import time

import psycopg

PAUSE_S = 0.01


def main(dsn: str) -> None:
    chance = random.Random(1)
    took: list[float] = []
    late = 0.0
    with psycopg.connect(dsn, autocommit=True) as connection:
        while True:
            report_due = bool(select.select([sys.stdin], [], [], 0)[0])
            if report_due and not sys.stdin.readline():
                break
            for text in (
                f"SELECT name FROM v WHERE id = {chance.randrange(100)}",
                "SELECT 1",
                f"SELECT sum(amount) FROM v WHERE id < {chance.random() * 100 + 1}",
            ):
                began = time.perf_counter()
                row = connection.execute(text).fetchone()  # type: ignore[arg-type]
                paused = time.perf_counter()
                took.append(paused - began)
                assert row is not None
                time.sleep(PAUSE_S)
                late = max(late, time.perf_counter() - paused - PAUSE_S)
            if report_due:
                print("polled", flush=True)
    print(json.dumps([took, late]))


main(sys.argv[1])
