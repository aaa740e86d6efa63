"""Tests that nothing fires while real processes work and rest without a failure. TAILGATE_QUIET_S is the number of seconds.

Sources, views, tables, a sink, a follower, an objective and an alert of a query are used for LOADED_S, and then rest for as long.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import psycopg
import pytest

from tailgate.embedded.kafka import Kafka
from testing.engine_process import until
from tests.following import Tail
from tests.operations.watch.alerted import Alerted

SECONDS = float(os.environ.get("TAILGATE_QUIET_S", "300"))
LOADED_S = 45.0  # longer than all times after which a default alert fires
RECORDS = 40  # in a step of the load, of about 0.2 s
CHECKS_S = 600.0  # of the limit of the test, for its start and its checks
MACHINE = ("memory_full", "disk_full")  # depend on what else runs on the machine

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(SECONDS + CHECKS_S)]


@pytest.fixture
def system(tmp_path_factory: pytest.TempPathFactory, kafka: Kafka) -> Iterator[Alerted]:
    system = Alerted(tmp_path_factory.mktemp("quiet"), kafka)
    try:
        system.wait_ready()
        system.send("watched", {"id": 0, "n": 1})
        source = f"FROM KAFKA BROKER '{kafka.address}' TOPIC 'watched' FORMAT JSON"
        system.run(f"CREATE MATERIALIZED SOURCE watched (id bigint, n bigint) {source}")
        system.create_observed()
        system.run(
            "CREATE MATERIALIZED VIEW totals AS SELECT n, count(*) AS number FROM watched GROUP BY n",
            "CREATE OBJECTIVE fresh ON totals (FRESHNESS p95 '5 s', FRESHNESS max '10 s', AVAILABILITY '99 %') OVER '1 minute'",
            f"CREATE ALERT negative AS SELECT id FROM notes WHERE id < 0 NOTIFY WEBHOOK '{system.receiver.url}'",
        )
        yield system
    finally:
        system.stop()


def load(system: Alerted, connection: psycopg.Connection[Any], number: int) -> None:
    """Sends records, writes a row, and reads a view."""
    system.send("watched", *({"id": number * RECORDS + i, "n": i + 1} for i in range(RECORDS)))
    connection.execute("INSERT INTO notes VALUES (%s)", [number])
    connection.execute("SELECT * FROM totals").fetchall()


def test_a_quiet_time_raises_no_alert(system: Alerted) -> None:
    start, numbers, tail = time.monotonic(), count(1), Tail("totals")
    with psycopg.connect(system.dsn, autocommit=True) as connection, psycopg.connect(system.dsn) as follower:
        tail.open(follower)
        while (passed := time.monotonic() - start) < SECONDS:
            if passed % (2 * LOADED_S) < LOADED_S:
                load(system, connection, next(numbers))
            tail.fetch(follower)
        sums = {(n,): number for n, number in connection.execute("SELECT n, number FROM totals").fetchall()}
        until(lambda: tail.fetch(follower) or {row[:1]: row[1] for row in tail.rows} == sums)  # type: ignore[func-returns-value]
    assert [body for body in system.receiver.bodies if body["alert"] not in MACHINE] == []
    assert system.problems() == []
    assert system.run("SELECT state FROM tailgate.objectives WHERE name = 'fresh'") == [("met",)]
