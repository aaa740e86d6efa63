"""Counts the requests of all processes of a lake in a bucket, by process and by kind: while nothing changes, and for ticks.

Requests that are delayed show how many of them a write or a tick waits for, one after the other.
"""

from __future__ import annotations

import re
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import Producer

from tailgate.embedded.children import Child, free_port
from tailgate.embedded.kafka import Kafka
from tailgate.lake.folder import Lake
from tailgate.lake.store import documents
from tailgate.lake.store.bucket import BucketStore
from tailgate.lake.writer import sweep_state
from testing.engine_process import until
from testing.s3 import S3

pytestmark = [pytest.mark.spark, pytest.mark.long]

READY = timedelta(seconds=120)
WAIT_S = 120.0
IDLE_TICKS = 6  # an idle engine appends an entry every ten seconds
PER_SECOND_MAX = 2.0  # of all processes together
DELAY_MS = 2000  # of each request, while writes are timed
ON_PATH = 2  # requests that a write waits for: its entry of the inbox, and that of the log
TICKS = 40  # ticks of one record, whose requests are counted
RATED_S = 12.0  # for which ticks are counted while records arrive
NAMES = ("engine", "gateway", "sinks", "watch")


class Processes:
    """An engine, a gateway, the sinks and the watch of a lake in a bucket."""

    def __init__(self, lake: str, s3: S3, folder: Path, running: ExitStack) -> None:
        self.s3, self._lake, self._folder, self._running = s3, lake, folder, running
        port = free_port()
        self._start("engine")
        self._start("gateway", "--listen", f"127.0.0.1:{port}")
        self._start("sinks")
        self._start("watch")
        self.connection = running.enter_context(psycopg.connect(f"host=127.0.0.1 port={port} user=a dbname=b", autocommit=True))

    def _start(self, name: str, *arguments: str) -> None:
        command = [sys.executable, "-m", "tailgate", name, "--data", self._lake, "--work-dir", str(self._folder / "work"), *arguments]
        log = self._folder / f"{name}.log"
        child = Child(name, command, log=log, environment=self.s3.environment_of(name), announces="ready ")
        self._running.callback(child.stop)
        child.wait_ready(child.announced, READY)

    def requests(self) -> Counter[tuple[str, str, str]]:
        """Returns the requests since the last call by process, method and kind of name. Those of the test itself are left out."""
        prefix = self._lake.removeprefix("s3://bucket/")
        return Counter(
            (request.process, request.method, re.sub(r"part-[^.]+|\d+", "N", request.name.removeprefix(f"{prefix}/")))
            for request in self.s3.request_log()
            if request.process in NAMES
        )


def shown(requests: Counter[tuple[str, str, str]]) -> str:
    return "".join(f"\n  {n} {' '.join(kind)}" for kind, n in sorted(requests.items()))


class Orders:
    """A topic with a source and a view that counts its records."""

    def __init__(self, kafka: Kafka, connection: psycopg.Connection) -> None:
        kafka.create_topic("counted-requests")
        self._producer, self._connection = Producer({"bootstrap.servers": kafka.address, "linger.ms": 0}), connection
        self.sent = 0
        connection.execute(f"CREATE SOURCE orders (n int) FROM KAFKA BROKER '{kafka.address}' TOPIC 'counted-requests' FORMAT JSON")
        connection.execute("CREATE MATERIALIZED VIEW ordered AS SELECT n % 10 AS digit, count(*) AS n FROM orders GROUP BY n % 10")

    def send(self) -> None:
        self.sent += 1
        self._producer.produce("counted-requests", f'{{"n": {self.sent}}}')
        self._producer.flush()

    def wait(self) -> float:
        """Returns the seconds until the gateway shows all records."""
        began = time.monotonic()
        until(lambda: self._connection.execute("SELECT sum(n) FROM ordered").fetchone() == (self.sent,), WAIT_S)
        return time.monotonic() - began


@pytest.fixture
def processes(s3: S3, bucket: BucketStore, tmp_path: Path) -> Iterator[Processes]:
    with ExitStack() as running:
        yield Processes(bucket.location(""), s3, tmp_path, running)


def test_few_requests(processes: Processes, bucket: BucketStore) -> None:
    lake = Lake(bucket.location(""))

    def newest() -> int:
        header = lake.log.newest()
        return 0 if header is None else header.n

    c = processes.connection
    c.execute("CREATE TABLE t (k int PRIMARY KEY, n int)")
    c.execute("CREATE MATERIALIZED VIEW v AS SELECT n, count(*) FROM t GROUP BY n")
    c.execute("INSERT INTO t VALUES (1, 1)")
    assert c.execute("SELECT * FROM v").fetchall() == [(1, 1)]
    while not (documents.read(lake.store, sweep_state.NAME) or {}).get("age"):  # the first sweep, after a minute
        assert lake.log.wait(newest(), WAIT_S) is not None
    assert lake.log.wait(newest(), WAIT_S) is not None

    processes.requests()
    began, begin = time.monotonic(), newest()
    assert lake.log.wait(begin + IDLE_TICKS - 1, WAIT_S) is not None
    requests, seconds = processes.requests(), time.monotonic() - began
    for name in NAMES:
        print(f"{name}: {sum(n for kind, n in requests.items() if kind[0] == name) / seconds:.2f} requests a second while idle")
    print(f"in {seconds:.0f} s:{shown(requests)}")
    assert sum(requests.values()) <= PER_SECOND_MAX * seconds, requests
    assert requests[("engine", "PUT", "log/N")] in (IDLE_TICKS, IDLE_TICKS + 1)
    assert not [kind for kind in requests if "tables/" in kind[2]], "an idle tick has no round"

    c.execute("INSERT INTO t VALUES (2, 1)")
    assert c.execute("SELECT * FROM v").fetchall() == [(1, 2)]
    requests = processes.requests()
    assert requests[("engine", "PUT", "inbox/N/N")] == requests[("engine", "PUT", "log/N")] == 1
    readers = [kind for kind in requests if kind[0] in ("gateway", "sinks") and kind[2].startswith("log/")]
    assert not readers, "the engine sends the entry"
    looks = [kind for kind in requests if kind[0] == "gateway" and kind[2] in ("engine.json", "stand-by.json")]
    assert not looks, "the gateway knows the engine, also after its connections have been closed"

    processes.s3.set(put_ms=DELAY_MS, get_ms=DELAY_MS)
    for k in range(3, 6):
        began = time.monotonic()
        c.execute("INSERT INTO t VALUES (%s, 1)", [k])
        seconds = time.monotonic() - began
        print(f"a write takes {seconds:.1f} s with requests of {DELAY_MS} ms")
        assert seconds < (ON_PATH + 1) * DELAY_MS / 1000
    processes.s3.set()


def test_a_tick_waits_for_one_request(processes: Processes, bucket: BucketStore, kafka: Kafka) -> None:
    """With one partition, a record is shown after one request, the PUT of its entry. The next tick runs meanwhile."""
    lake, orders = Lake(bucket.location("")), Orders(kafka, processes.connection)

    def newest() -> int:
        header = lake.log.newest()
        return 0 if header is None else header.n

    for _ in range(3):
        orders.send()
        orders.wait()
    processes.requests()
    began, begin = time.monotonic(), newest()
    for _ in range(TICKS):
        orders.send()
        orders.wait()
    requests, ticks = processes.requests(), newest() - begin
    print(f"{ticks} ticks in {time.monotonic() - began:.1f} s:{shown(requests)}")
    assert requests[("engine", "PUT", "log/N")] == ticks >= TICKS
    readers = [kind for kind in requests if kind[0] in ("gateway", "sinks") and kind[2].startswith("log/")]
    assert not readers, "the engine sends its entries"
    assert not [kind for kind in requests if kind[2].startswith("inbox/")]

    processes.s3.set(put_ms=DELAY_MS, get_ms=DELAY_MS)
    seconds = []
    for _ in range(5):
        orders.send()
        seconds.append(orders.wait())
    print("a record is shown after", *(f"{s:.1f}" for s in seconds), f"s with requests of {DELAY_MS} ms")
    assert statistics.median(seconds) < 2 * DELAY_MS / 1000

    delay_s = DELAY_MS / 4000
    processes.s3.set(put_ms=delay_s * 1000, get_ms=delay_s * 1000)
    ended = threading.Event()
    sender = threading.Thread(target=lambda: [orders.send() for _ in iter(lambda: ended.wait(0.02), True)])
    sender.start()
    began, begin = time.monotonic(), newest()
    time.sleep(RATED_S)
    interval_s = (time.monotonic() - began) / (newest() - begin)
    ended.set()
    sender.join()
    print(f"a tick each {interval_s:.2f} s with requests of {delay_s:.1f} s")
    assert interval_s < delay_s, "ticks run while the entries of earlier ones are put"
    processes.s3.set()
    orders.wait()
