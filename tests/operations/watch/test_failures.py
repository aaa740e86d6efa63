"""Tests that real failures of real processes raise alerts at a webhook, and that the alerts are resolved."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from tailgate.embedded.kafka import Kafka
from testing.engine_process import stopped, until
from tests.operations.watch.alerted import RAISED_S, REPAIRED_S, Alerted

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

ROUNDS = 900_000  # of a recursive view, which take longer than a tick may


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory, kafka: Kafka) -> Iterator[Alerted]:
    system = Alerted(tmp_path_factory.mktemp("alerts"), kafka)
    try:
        system.wait_ready()
        system.send("watched", {"id": 1, "n": 1})
        system.run(
            f"CREATE SOURCE watched (id bigint, n bigint) FROM KAFKA BROKER '{kafka.address}' TOPIC 'watched' FORMAT JSON ON ERROR FAIL",
        )
        system.create_observed()
        yield system
    finally:
        system.stop()


def test_nothing_fires_without_a_failure(system: Alerted) -> None:
    time.sleep(10)
    assert [body for body in system.receiver.bodies if body["alert"] not in ("memory_full", "disk_full")] == []


def test_a_view_that_divides_by_zero(system: Alerted) -> None:
    system.send("watched", {"id": 2, "n": 0})
    until(lambda: system.receiver.events("view_failing", "quotients") == ["fired"], RAISED_S)
    system.run("CREATE OR REPLACE MATERIALIZED VIEW quotients AS SELECT id, 10 / nullif(n, 0) AS q FROM watched")
    until(lambda: system.receiver.events("view_failing", "quotients") == ["fired", "resolved"], REPAIRED_S)


def test_an_alert_of_a_query_and_an_objective(system: Alerted) -> None:
    system.run(
        f"CREATE ALERT large AS SELECT id FROM notes WHERE id > 1000 NOTIFY WEBHOOK '{system.receiver.url}'",
        "CREATE OBJECTIVE impossible ON notes (FRESHNESS max '1 ms') OVER '10 s'",
        "INSERT INTO notes VALUES (1001)",
    )
    until(lambda: system.receiver.events("large", "1001") == ["fired"], RAISED_S)
    system.run("DELETE FROM notes WHERE id > 1000")
    until(lambda: system.receiver.events("large", "1001") == ["fired", "resolved"], RAISED_S)
    until(lambda: system.receiver.events("objective_violated", "impossible")[:1] == ["fired"], 3 * RAISED_S)
    system.run("DROP OBJECTIVE impossible", "DROP ALERT large")
    ((samples, unknown),) = system.run("SELECT sum(samples), max(unknown) FROM tailgate.freshness_history WHERE name = 'notes'")
    assert samples > 0 and unknown is not None


def test_a_poison_record(system: Alerted) -> None:
    system.send("watched", "no JSON")
    until(lambda: system.receiver.events("source_stalled", "watched") == ["fired"], RAISED_S)
    system.run("DROP SOURCE watched CASCADE")
    until(lambda: system.receiver.events("source_stalled", "watched") == ["fired", "resolved"], REPAIRED_S)


def test_a_tick_that_does_not_end(system: Alerted) -> None:
    """A row of a recursive view that needs ROUNDS rounds. The view's only row is the largest number, so nothing else grows."""
    system.receiver.clear()
    counts = f"SELECT n FROM numbers UNION ALL SELECT n + 1 FROM counts WHERE n < {ROUNDS}"
    system.run(
        "CREATE TABLE numbers (n bigint PRIMARY KEY)",
        f"""CREATE MATERIALIZED VIEW largest WITH (recursion_limit = 1000000) AS
            WITH RECURSIVE counts AS ({counts}) SELECT max(n) FROM counts""",
        "SET synchronous_commit = off; INSERT INTO numbers VALUES (0)",
    )
    system.fires("ticks_stopped")
    system.resolves("ticks_stopped")
    until(lambda: system.run("SELECT * FROM largest") == [(ROUNDS,)], REPAIRED_S)
    system.run("DROP MATERIALIZED VIEW largest", "DROP TABLE numbers")


@pytest.mark.parametrize(
    ("process", "alert"),
    [
        ("tailgate engine", "engine_unavailable"),
        ("PythonGatewayServer", "engine_unavailable"),
        ("tailgate gateway", "gateway_unavailable"),
        ("tailgate sinks", "sinks_unavailable"),
    ],
)
def test_a_process_that_is_stopped(process: str, alert: str, system: Alerted) -> None:
    """A stopped process answers nothing, but its id exists."""
    system.receiver.clear()
    with stopped(system.pid(process)):
        until(lambda: any("fired" in system.receiver.events(name) for name in (alert, "ticks_stopped")), RAISED_S)
    until(lambda: all(events[-1] == "resolved" for events in system.receiver.all_events()), REPAIRED_S)


@pytest.mark.parametrize("process", ["tailgate engine", "PythonGatewayServer"])
def test_an_engine_that_is_killed(process: str, system: Alerted) -> None:
    system.receiver.clear()
    kill_engine(process, system)


def kill_engine(process: str, system: Alerted) -> None:
    """Kills a process of the engine. The supervisor might start the next one before the alert fires."""
    pid = system.pid(process)
    with system.unrepaired():
        os.kill(pid, signal.SIGKILL)
        system.fires("engine_unavailable")
    system.resolves("engine_unavailable")


def test_ids_have_no_gap(system: Alerted) -> None:
    killed = system.pid("tailgate watch")
    os.kill(killed, signal.SIGKILL)
    until(lambda: system.pid("tailgate watch") != killed, REPAIRED_S)
    system.receiver.clear()
    kill_engine("tailgate engine", system)
    ids = list(dict.fromkeys(body["id"] for body in system.receiver.everything))
    assert ids == list(range(1, len(ids) + 1))
