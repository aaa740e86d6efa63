"""Tests the metrics and health checks of all processes of `tailgate up`, and the freshness lag that the gateway shows."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer

from tailgate.embedded.kafka import Kafka
from tailgate.operations.definitions import ENGINE, GATEWAY, SINKS, UP, WATCH, Metric
from testing.engine_process import until
from tests.operations.system import READY_S, Served, System, samples, status

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

SECRET = "a value of a row"
# Metrics that have no series in this test: nothing fails, no backfill runs at the time of the scrape, and HTTP and webhooks are not used.
UNUSED = {
    "tailgate_metrics_omitted_series",
    "tailgate_gateway_requests_total",
    "tailgate_gateway_request_seconds",
    "tailgate_engine_backfill_percent",
    "tailgate_engine_backfill_rows",
    "tailgate_engine_backfill_left_seconds",
    "tailgate_watch_alerts",
    "tailgate_watch_undelivered",
}

scrape = partial(samples, secret=SECRET)


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory, kafka: Kafka) -> Iterator[System]:
    system = System(tmp_path_factory.mktemp("up"), kafka)
    yield system
    system.stop()


def load(system: System, stop: threading.Event) -> None:
    """Sends records and runs statements until `stop` is set."""
    producer = Producer({"bootstrap.servers": system.kafka.address})
    producer.produce("orders", "no JSON")
    number = 0
    while not stop.is_set():
        for _ in range(50):
            number += 1
            producer.produce("orders", json.dumps({"id": number, "note": SECRET, "amount": number % 7}))
        producer.flush()
        system.run("SELECT count(*) FROM totals", "INSERT INTO notes VALUES (1) ON CONFLICT DO NOTHING")


def without_series(definitions: tuple[Metric, ...], served: Served) -> set[str]:
    return {m.name for m in definitions if not {m.name, f"{m.name}_count"} & served.keys()}


def test_all_processes_serve_their_metrics(system: System) -> None:
    until(lambda: status(system.ports["engine"], "/livez") == 200, READY_S)
    assert status(system.ports["up"], "/readyz") == 503  # the children start
    system.wait_ready()
    for name, port in system.ports.items():
        assert status(port, "/startupz") == status(port, "/readyz") == 200, name
    producer = Producer({"bootstrap.servers": system.kafka.address})
    producer.produce("orders", json.dumps({"id": 0, "note": SECRET, "amount": 0}))
    producer.flush()
    kafka = system.kafka.address
    system.run(
        "CREATE SOURCE orders (id bigint, note text, amount bigint)"
        f" FROM KAFKA BROKER '{kafka}' TOPIC 'orders' FORMAT JSON INCLUDE TIMESTAMP AS at",
        "CREATE MATERIALIZED VIEW minutes AS SELECT window_start, count(*) AS n"
        " FROM tumble(orders, at, interval '1 minute', interval '0 seconds') GROUP BY window_start",
        "CREATE MATERIALIZED VIEW totals AS SELECT amount, count(*) AS n FROM orders GROUP BY amount",
        "CREATE TABLE notes (id bigint PRIMARY KEY)",
        f"CREATE SINK changes FROM totals INTO KAFKA BROKER '{kafka}' TOPIC 'changes' KEY (amount) FORMAT JSON ENVELOPE UPSERT",
    )
    stop = threading.Event()
    loader = threading.Thread(target=load, args=(system, stop))
    loader.start()
    try:
        for _ in range(20):
            served = {name: scrape(port) for name, port in system.ports.items()}
            time.sleep(0.5)
        until(lambda: "tailgate_engine_operator_state_rows" in scrape(system.ports["engine"]), 60)
        until(lambda: scrape(system.ports["sinks"])["tailgate_sinks_events_total"][("public.changes",)] > 0, 60)
        producer.produce("orders", json.dumps({"id": -1, "note": SECRET, "amount": 0}), timestamp=1)
        producer.flush()
        until(lambda: sum(scrape(system.ports["engine"])["tailgate_engine_operator_late_rows_total"].values()) >= 1, 60)
    finally:
        stop.set()
        loader.join()
    served = {name: scrape(port) for name, port in system.ports.items()}
    unused = {
        name: without_series(definitions, served[name])
        for name, definitions in (("engine", ENGINE), ("gateway", GATEWAY), ("sinks", SINKS), ("up", UP), ("watch", WATCH))
    }
    assert set().union(*unused.values()) <= UNUSED
    engine = served["engine"]
    assert engine["tailgate_engine_source_dead_letters_total"][("public.orders",)] == 1
    assert engine["tailgate_engine_source_up"][("public.orders",)] == 1
    of_views, of_operators = (engine[f"tailgate_engine_{what}_state_rows"] for what in ("view", "operator"))
    assert 0 < of_views["public.totals",] <= sum(of_operators.values())
    count = sum(n for _, n in system.run("SELECT amount, n FROM totals"))
    until(lambda: scrape(system.ports["engine"])["tailgate_engine_source_records_total"][("public.orders",)] >= count, 30)
    assert "tailgate_jvm_process_resident_memory_bytes" in engine
    sizes = "SELECT rows FROM tailgate.size_history WHERE name = 'totals' AND bytes > 0 ORDER BY at DESC LIMIT 1"
    until(lambda: system.run(sizes) == system.run("SELECT count(*) FROM totals"), 60)


def test_freshness_lag_is_what_an_observer_measures(system: System) -> None:
    """The observer sends records, and polls the view until it shows them."""
    system.wait_ready()
    kafka = system.kafka.address
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce("visits", json.dumps({"id": 0}))
    producer.flush()
    system.run(
        f"CREATE SOURCE visits (id bigint) FROM KAFKA BROKER '{kafka}' TOPIC 'visits' FORMAT JSON",
        "CREATE MATERIALIZED VIEW newest AS SELECT max(id) AS id FROM visits",
    )
    with psycopg.connect(system.dsn, autocommit=True) as connection:
        until(lambda: _lag(connection)["lag_ms"] == 0, 60)
        observed, ticks = [], []
        for number in range(1, 25):
            sent = time.time()
            producer.produce("visits", json.dumps({"id": number}), timestamp=round(sent * 1000))
            producer.flush()
            while connection.execute("SELECT id FROM newest").fetchone() != (number,):
                time.sleep(0.005)
            observed.append((time.time() - sent) * 1000)
            time.sleep(0.2)
            ticks.append(_lag(connection)["tick_ms"])
        until(lambda: _lag(connection)["lag_ms"] == 0, 10)
        lag = _lag(connection)
    assert lag["max_minute_ms"] == pytest.approx(max(observed), abs=100 + max(ticks)), observed
    assert lag["unknown"] is None
    parts = ("kafka_ms", "wait_ms", "tick_ms", "commit_ms", "mirror_ms")
    assert sum(lag[part] for part in parts) == pytest.approx(observed[-1], abs=100), lag


def test_a_record_that_is_not_shown_has_an_age(system: System) -> None:
    """A record whose time is an hour ago makes the lag an hour until it is shown."""
    system.wait_ready()
    with psycopg.connect(system.dsn, autocommit=True) as connection:
        producer = Producer({"bootstrap.servers": system.kafka.address})
        producer.produce("visits", json.dumps({"id": 1000}), timestamp=round((time.time() - 3600) * 1000))
        producer.flush()
        until(lambda: _lag(connection)["max_minute_ms"] >= 3_600_000, 30)
        until(lambda: _lag(connection)["lag_ms"] == 0, 30)


def test_the_lag_of_a_paused_source_is_unknown(system: System) -> None:
    system.wait_ready()
    with psycopg.connect(system.dsn, autocommit=True) as connection:
        connection.execute("PAUSE SOURCE visits")
        until(lambda: _lag(connection)["unknown"] == "the source cannot be read", 30)
        assert _lag(connection)["lag_ms"] is None
        connection.execute("RESUME SOURCE visits")
        until(lambda: _lag(connection)["lag_ms"] == 0, 60)


def test_the_lag_of_a_table_counts_from_the_acknowledgement(system: System) -> None:
    system.wait_ready()
    with psycopg.connect(system.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE comments (id bigint PRIMARY KEY)")
        began = time.time()
        for id in range(5):
            connection.execute(f"INSERT INTO comments VALUES ({id})")
        took_ms = (time.time() - began) * 1000
        until(lambda: _lag(connection, "comments")["lag_ms"] == 0, 30)
        until(lambda: (_lag(connection, "comments")["max_minute_ms"] or 0) > 0, 30)
        assert _lag(connection, "comments")["max_minute_ms"] <= took_ms


def _lag(connection: psycopg.Connection[Any], name: str = "newest") -> dict[str, Any]:
    cursor = connection.execute("SELECT * FROM tailgate.freshness WHERE name = %s", [name])
    row = cursor.fetchone()
    assert row is not None and cursor.description is not None
    return dict(zip([column.name for column in cursor.description], row, strict=True))
