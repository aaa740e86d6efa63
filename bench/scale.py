"""The growth of one keyed relation: 10,000,000 rows of Kafka, of which 5,000 random keys change each second.

A source with ENVELOPE UPSERT reads all keys, then the changes at their rate. A gateway mirrors it, and a client looks rows up by
their key, at a fixed rate. Once a second the script compares the newest entry of the log with the newest checkpoint of the
tables. At the end a table has each value and its mark.

    .venv/bin/python bench/scale.py [--rows 10000000] [--changes 5000] [--look-ups 50] [--for 60]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from _processes import cpu_s, proportional_mib, scraped  # a module of this folder
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from prometheus_client.parser import text_string_to_metric_families

from tailgate.embedded.children import Child, free_port
from tailgate.embedded.kafka import Kafka
from tailgate.engine.runtime.kafka import requests as broker
from tailgate.lake.folder import Lake
from tailgate.lake.tables import checkpoints
from testing.engine_process import EngineProcess, until

TOPIC = "users"
SOURCE = """CREATE SOURCE users (name text, orders bigint, amount double precision)
    FROM KAFKA BROKER '{kafka}' TOPIC 'users' KEY FORMAT TEXT VALUE FORMAT JSON INCLUDE KEY AS id ENVELOPE UPSERT"""
BROKER = ("-Xms1g", "-Xmx1g")
READY = timedelta(seconds=60)
FILL_S = 1800.0
BEHIND_S = 300.0  # until the tables have all rows
WARM_S = 15.0
STEP_S = 0.02  # between two batches of changes
GIB = 1024
UPDATES = "tailgate_gateway_mirror_update_seconds"


class Value(NamedTuple):
    """A line of the table."""

    name: str
    value: float
    mark: float


def message(key: int, version: int) -> tuple[str, str]:
    return f"{key:08}", f'{{"name": "name {key % 1000}", "orders": {version}, "amount": {version * 0.5}}}'


def producer(kafka: str) -> Producer:
    return Producer({"bootstrap.servers": kafka, "queue.buffering.max.messages": 1_000_000, "linger.ms": 20})


def fill(kafka: str, rows: int) -> None:
    """Produces one message for each key, as fast as possible."""
    to = producer(kafka)
    for key in range(rows):
        name, value = message(key, 0)
        to.produce(TOPIC, value, name)
        if key % 10_000 == 0:
            to.poll(0)
            while len(to) > 500_000:
                to.poll(0.1)
    to.flush()


def change(kafka: str, rows: int, rate: float) -> None:
    """Produces changes of random keys at a rate, until the process is ended."""
    to, began, sent = producer(kafka), time.monotonic(), 0
    while True:
        due = int((time.monotonic() - began) * rate)
        for sent in range(sent + 1, due + 1):  # noqa: B020  # continues after the last one
            name, value = message(random.randrange(rows), sent)
            to.produce(TOPIC, value, name)
        to.poll(0)
        time.sleep(STEP_S)


class LookUps(threading.Thread):
    """A client that looks up random keys at a fixed rate until `stop`. `seconds`: of each look-up, since it was due."""

    def __init__(self, dsn: str, rows: int, rate: float) -> None:
        super().__init__(daemon=True)
        self._dsn, self._rows, self._rate = dsn, rows, rate
        self._ending = threading.Event()
        self.seconds: list[float] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with psycopg.connect(self._dsn, autocommit=True) as connection:
                due = time.perf_counter()
                while not self._ending.is_set():
                    key = f"{random.randrange(self._rows):08}"
                    row = connection.execute("SELECT name, orders FROM users WHERE id = %s", [key], prepare=True).fetchone()
                    assert row is not None, key
                    self.seconds.append(time.perf_counter() - due)
                    due = max(due + 1 / self._rate, time.perf_counter() - 1.0)  # after a long pause it does not catch up
                    time.sleep(max(0.0, due - time.perf_counter()))
        except BaseException as failure:  # noqa: BLE001  # `stop` raises it
            self.failure = failure

    def stop(self) -> list[float]:
        self._ending.set()
        self.join()
        if self.failure is not None:
            raise self.failure
        return self.seconds


def percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[len(values) * percent // 100]


def behind_s(lake: Lake) -> float:
    """Returns how much older the tables' newest checkpoint is than the newest entry of the log."""
    checkpoint, newest = checkpoints.newest(lake), lake.log.newest()
    assert newest is not None
    return (newest.time - (0 if checkpoint is None else checkpoint.time)) / 1000


def updates(port: int) -> dict[str, float]:
    """Returns the number of updates of the mirrors by the upper limit of their time in seconds."""
    families = text_string_to_metric_families(scraped(port).decode())
    return {s.labels["le"]: s.value for family in families for s in family.samples if s.name == f"{UPDATES}_bucket"}


def update_ms(before: dict[str, float], after: dict[str, float], percent: int) -> float:
    """Returns a percentile of the time of the mirrors' updates, by linear interpolation in its bucket."""
    counts = {limit: count - before.get(limit, 0.0) for limit, count in after.items()}
    wanted = max(counts.values()) * percent / 100
    lower, below = 0.0, 0.0
    for limit, count in counts.items():
        if count >= wanted:
            return 1000 * (lower + (float(limit) - lower) * (wanted - below) / max(count - below, 1.0))
        lower, below = float(limit), count
    raise AssertionError("not reached")


def read_all(lake: Lake, kafka: str) -> bool:
    newest = lake.log.newest()
    assert newest is not None
    end = broker.topic(kafka, TOPIC, {}).bounds["0"][1]
    return any(topics[TOPIC]["0"] >= end for topics in newest.offsets.values() if TOPIC in topics)


def measured(rows: int, rate: float, look_ups: float, seconds: float) -> tuple[list[Value], dict[str, Any]]:
    """Returns the values with marks, and more figures."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tailgate-bench-")))
        kafka = Kafka(folder / "kafka", jvm=BROKER)
        stack.callback(kafka.stop)
        kafka.start()
        admin = AdminClient({"bootstrap.servers": kafka.address})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)
        fill(kafka.address, rows)
        engine = EngineProcess(folder / "lake")
        stack.callback(engine.stop)
        engine.start()
        began = time.monotonic()
        engine.execute(SOURCE.format(kafka=kafka.address))
        lake = Lake(folder / "lake")
        until(lambda: read_all(lake, kafka.address), FILL_S)
        filled_s = time.monotonic() - began
        until(lambda: behind_s(lake) < 1, BEHIND_S)
        port, metrics = free_port(), free_port()
        words = ["gateway", "--data", str(folder / "lake"), "--listen", f"127.0.0.1:{port}", "--metrics", str(metrics)]
        gateway = Child("gateway", [sys.executable, "-m", "tailgate", *words], log=folder / "gateway.log", announces="ready ")
        stack.callback(gateway.stop)
        gateway.wait_ready(gateway.announced, READY)
        dsn = f"host=127.0.0.1 port={port} user=a dbname=b"
        began = time.monotonic()
        with psycopg.connect(dsn, autocommit=True) as connection:
            assert connection.execute("SELECT count(*) FROM users").fetchone() == (rows,)
        mirrored_s = time.monotonic() - began
        changes = multiprocessing.get_context("spawn").Process(target=change, args=(kafka.address, rows, rate), daemon=True)
        changes.start()
        stack.callback(changes.kill)
        time.sleep(WARM_S)
        client = LookUps(dsn, rows, look_ups)
        client.start()
        processes = {"driver": engine.pid, "jvm": engine.jvm, "gateway": gateway.pid}
        before, cpu, behind, memory = updates(metrics), {name: cpu_s(pid) for name, pid in processes.items()}, [], 0
        first, until_s = lake.log.newest(), time.monotonic() + seconds
        while time.monotonic() < until_s:
            time.sleep(1.0)
            behind.append(behind_s(lake))
            memory = max(memory, proportional_mib(gateway.pid))
        last, after = lake.log.newest(), updates(metrics)
        assert first is not None
        assert last is not None
        cores = {name: round((cpu_s(pid) - cpu[name]) / seconds, 2) for name, pid in processes.items()}
        looked_up = client.stop()
        values = [
            Value("tables behind the log, s, p95", percentile(behind, 95), 3),
            Value("update of the mirror, ms, p95", update_ms(before, after, 95), 10),
            Value("look-up by key, ms, p95", percentile(looked_up, 95) * 1000, 5),
            Value("memory of the gateway, GiB", memory / GIB, 3),
        ]
        return values, {
            "rows": rows,
            "changes_per_s": rate,
            "filled_s": round(filled_s, 1),
            "mirrored_s": round(mirrored_s, 1),
            "ticks_per_s": round((last.n - first.n) / seconds, 1),
            "update_p50_ms": round(update_ms(before, after, 50), 1),
            "look_up_p50_ms": round(percentile(looked_up, 50) * 1000, 1),
            "cores": cores,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--changes", type=float, default=5000.0, help="changed keys per second (%(default)s)")
    parser.add_argument("--look-ups", type=float, default=50.0, help="per second (%(default)s)")
    parser.add_argument("--for", dest="seconds", type=float, default=60.0, metavar="SECONDS", help="measured interval (%(default)s)")
    options = parser.parse_args()
    values, figures = measured(options.rows, options.changes, options.look_ups, options.seconds)
    print(f"{'':32} {'measured':>10} {'mark':>6}")
    for value in values:
        print(f"{value.name:32} {value.value:10.1f} {value.mark:6.0f}  {'reached' if value.value <= value.mark else 'MISSED'}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
