"""Tests that `tailgate.freshness` is what an outside observer measures, also while the engine, the gateway and the broker are killed.

    sender: a record every SEND_S, each acknowledged ──► topic ──► source ──► view
    observer: SELECT of the view, lag_ms, SELECT of the view ──► the records that were sent and not shown ──► the ages that lag_ms may have

TAILGATE_OBSERVED_S is the number of seconds.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer

from tailgate.embedded.kafka import Kafka
from testing.engine_process import until
from tests.operations.watch.alerted import Alerted, send

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

SECONDS = float(os.environ.get("TAILGATE_OBSERVED_S", "120"))
KILL_S = 25.0  # between two kills; an engine starts in 10 to 15 s
SEND_S = 0.05
POLL_S = 0.02
ERROR_MS = 100.0  # or the longest tick that the gateway has reported from TICKS_S before until TICKS_S after, from its begin to the mirror
TICKS_S = 3.0
NEW_RECORDS = 20  # after a kill, of which some may still be shown by the process that ends
KNOWN_S = 5.0  # from the first new record that the view shows after a kill, until the lag is known
P95_MS, MAX_MS = 5_000, 10_000  # the objective without kills


@dataclass
class Record:
    """A record: its time, when it was sent, and when the broker acknowledged it; all in ms since the epoch."""

    time: float
    acknowledged: float | None = None

    def counts(self, at: float) -> bool:
        """Returns whether the lag must include the record at a time, if the view does not show it.

        A record that was sent while the broker did not run is old when the topic gets it; ERROR_MS later its age must be known.
        """
        if self.acknowledged is None:
            return False
        return self.acknowledged + (ERROR_MS if self.acknowledged - self.time > ERROR_MS else 0.0) < at


@dataclass(frozen=True, slots=True)
class Sample:
    """The lag that the gateway reports, the newest record that the view shows before and after it, and the times of both."""

    before: float
    after: float
    shown_before: int
    shown_after: int
    lag: float | None
    reason: str | None
    tick: float


def now_ms() -> float:
    return time.time() * 1000


def wait_fresh(system: Alerted) -> None:
    until(lambda: system.run("SELECT lag_ms FROM tailgate.freshness WHERE name = 'newest_observed'") == [(0,)], 60)


@dataclass
class Observer:
    """Sends records and polls the view, from two threads, until `stop`."""

    system: Alerted
    records: list[Record] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    shown: dict[int, float] = field(default_factory=lambda: {0: now_ms()})  # by number of the record: when the view showed it first
    base: int = 0  # the newest record before the first one
    _stopping: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Observer:
        wait_fresh(self.system)  # the view may lack records of an earlier observer
        ((self.base,),) = self.system.run("SELECT id FROM newest_observed")
        self._threads = [threading.Thread(target=run) for run in (self._send, self._poll)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(60)

    def _send(self) -> None:
        producer = Producer({"bootstrap.servers": self.system.kafka.address, "enable.idempotence": True, "reconnect.backoff.max.ms": 500})
        while not self._stopping.wait(SEND_S):
            record = Record(float(int(now_ms())))
            self.records.append(record)
            producer.produce("observed", json.dumps({"id": self.base + len(self.records)}), timestamp=int(record.time))
            while producer.flush(1) and not self._stopping.is_set():
                pass
            record.acknowledged = now_ms()

    def _poll(self) -> None:
        while not self._stopping.is_set():
            try:
                with psycopg.connect(self.system.dsn, autocommit=True) as connection:
                    connection.execute("SET statement_timeout = '5s'")
                    while not self._stopping.wait(POLL_S):
                        self._sample(connection)
            except psycopg.Error:
                self._stopping.wait(0.1)

    def _sample(self, connection: psycopg.Connection[Any]) -> None:
        shown_before = self._shown(connection)
        before = now_ms()
        tick_ms = "tick_ms + commit_ms + mirror_ms"
        query = f"SELECT lag_ms, unknown, {tick_ms} FROM tailgate.freshness WHERE name = 'newest_observed'"
        lag, reason, tick = connection.execute(query).fetchone() or (None, "no row", 0)
        after = now_ms()
        self.samples.append(Sample(before, after, shown_before, self._shown(connection), lag, reason, tick or 0.0))

    def _shown(self, connection: psycopg.Connection[Any]) -> int:
        ((id,),) = connection.execute("SELECT id FROM newest_observed").fetchall()
        self.shown.setdefault(id - self.base, now_ms())
        return int(id - self.base)

    def limits(self, sample: Sample) -> tuple[float, float]:
        """Returns the least and the greatest lag that may be reported.

        A record that is acknowledged and not shown after the request counts; one that was sent, and not shown before it, may count.
        """
        end = bisect_right(self.records, sample.after, key=lambda record: record.time)
        sent = [record.time for record in self.records[sample.shown_before : end]]
        held = [record.time for record in self.records[sample.shown_after : end] if record.counts(sample.before)]
        return max(0.0, sample.before - min(held, default=sample.before)), max(0.0, sample.after - min(sent, default=sample.after))

    def error(self, sample: Sample) -> float:
        """Returns by how many ms a lag is too large, or, if negative, too small."""
        assert sample.lag is not None
        least, greatest = self.limits(sample)
        return min(0.0, sample.lag - least) + max(0.0, sample.lag - greatest)


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alerted]:
    kafka = Kafka(tmp_path_factory.mktemp("kafka"))
    kafka.start()
    system = Alerted(tmp_path_factory.mktemp("observed"), kafka)
    try:
        system.wait_ready()
        send(kafka, "observed", {"id": 0})
        system.run(
            f"CREATE SOURCE observed (id bigint) FROM KAFKA BROKER '{kafka.address}' TOPIC 'observed' FORMAT JSON",
            "CREATE MATERIALIZED VIEW newest_observed AS SELECT max(id) AS id FROM observed",
        )
        yield system
    finally:
        system.stop()
        kafka.stop()


def report(observer: Observer, folder: Path) -> None:
    """Prints the distribution of the errors, and writes the samples to a file."""
    errors = sorted(observer.error(sample) for sample in observer.samples if sample.lag is not None)
    if errors:
        shares = {share: round(errors[int(share * (len(errors) - 1))]) for share in (0.0, 0.001, 0.01, 0.5, 0.99, 0.999, 1.0)}
        print(f"{len(observer.samples)} samples, {len(errors)} of a known lag; errors in ms by quantile: {shares}")
    with (folder / "samples").open("w") as out:
        for sample in observer.samples:
            least, greatest = observer.limits(sample)
            print(f"{sample.before:.0f} {sample.lag} {sample.reason} {least:.0f} {greatest:.0f} {sample}", file=out)


def check(observer: Observer) -> None:
    """Asserts that each known lag is the observed one, but for the error that is allowed."""
    samples, wrong = observer.samples, []
    for sample in samples:
        if sample.lag is None:
            continue
        first = bisect_left(samples, sample.before - TICKS_S * 1000, key=lambda other: other.before)
        end = bisect_right(samples, sample.before + TICKS_S * 1000, key=lambda other: other.before)
        error, allowed = observer.error(sample), max(ERROR_MS, *(other.tick for other in samples[first:end]))
        if abs(error) > allowed:
            wrong.append((error, allowed, sample))
    assert wrong == []


def test_without_kills(system: Alerted, tmp_path: Path) -> None:
    with Observer(system) as observer:
        time.sleep(SECONDS / 4)
    report(observer, tmp_path)
    check(observer)
    assert [sample for sample in observer.samples if sample.lag is None] == []
    ages = [at - observer.records[id - 1].time for id, at in observer.shown.items() if id > 0]
    ((p95, maximum),) = system.run("SELECT p95_hour_ms, max_hour_ms FROM tailgate.freshness WHERE name = 'newest_observed'")
    print(f"observed maximum {max(ages):.0f} ms; reported p95 {p95} ms, maximum {maximum} ms")
    assert p95 <= P95_MS and max(maximum, *ages) <= MAX_MS
    assert max(ages) - ERROR_MS <= maximum


def test_with_kills(system: Alerted, tmp_path: Path) -> None:
    """The lag is right whenever it is known, and it is known soon after the view shows new records."""

    def restart_broker() -> None:
        os.kill(system.kafka.pid, signal.SIGKILL)
        until(lambda: not system.kafka.running(), 20)
        system.kafka.start()

    kills: list[tuple[str, Callable[[], None]]] = [
        (words, lambda words=words: os.kill(system.pid(words), signal.SIGKILL))  # type: ignore[misc]
        for words in ("tailgate engine", "tailgate gateway", "PythonGatewayServer")
    ]
    kills.append(("broker", restart_broker))
    outages: list[tuple[float, float]] = []
    with Observer(system) as observer:
        end = time.monotonic() + SECONDS
        for number in range(max(len(kills), int(SECONDS / KILL_S))):
            name, kill = kills[number % len(kills)]
            start, sent = now_ms(), len(observer.records)
            kill()
            until(lambda sent=sent: max(observer.shown) > sent + NEW_RECORDS, 120)  # type: ignore[misc]
            print(f"{name}: the view shows new records after {(now_ms() - start) / 1000:.1f} s")
            outages.append((start - 1000 * SEND_S, now_ms() + KNOWN_S * 1000))
            time.sleep(max(KNOWN_S, min(KILL_S, end - time.monotonic()) - (now_ms() - start) / 1000))
    report(observer, tmp_path)
    check(observer)
    unknown = [sample for sample in observer.samples if sample.lag is None]
    assert [sample for sample in unknown if not any(start <= sample.before <= end for start, end in outages)] == []
    assert any(sample.reason == "the engine does not answer" for sample in unknown)
