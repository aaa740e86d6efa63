"""The sinks process is killed at every step, and at random, while the log grows.

No event is missing or duplicated.
"""

from __future__ import annotations

import random
import signal
import threading
import time
import uuid
from pathlib import Path

import pytest

from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tests.sinks.feed import FIRST_SINK, Feed, Process, copy, events, fold, until

TICK_PAUSE = 0.02
SNAPSHOT_ROWS = 25_000  # three batches
REPLACED_S = 60.0  # limits the wait until a process has started, and the one that it replaces has ended


class Ticking:
    """A thread that commits ticks, independently of the sinks."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        while not self.ending.wait(TICK_PAUSE):
            self.feed.random_tick()

    def stop(self) -> None:
        self.ending.set()
        self.thread.join()


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    return Feed(tmp_path / "lake")


@pytest.fixture
def topic() -> str:
    return "kill-" + uuid.uuid4().hex[:8]


def finish(feed: Feed, kafka: Kafka, topic: str) -> None:
    """Runs the sinks to the end of the log and checks that all events are there, once, in order."""
    process = Process(feed.lake.path)
    newest = feed.lake.log.newest()
    assert newest is not None
    until(lambda: copy(feed.lake).get("n") == newest.n and copy(feed.lake)["status"] == "running")
    assert process.stop() == 0
    got = events(kafka.address, topic)
    assert len(got) == len(feed.expected)
    assert got == feed.expected
    assert fold(got) == feed.rows


POINTS = [
    "produced:1",
    "produced:3",
    "committed:1",
    *(pytest.param(point, marks=pytest.mark.long) for point in ("claimed", "snapshot", "committed:3", "copy:1", "copy:3")),
]


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_point(feed: Feed, kafka: Kafka, registry: Registry, topic: str, point: str) -> None:
    feed.tick({k: (k, f"v{k}", None) for k in range(100)})
    feed.create_sink(kafka.address, registry.url, topic)
    ticking = Ticking(feed)
    Process(feed.lake.path, crash=f"sink.{point}").wait_killed()
    time.sleep(0.1)
    ticking.stop()
    finish(feed, kafka, topic)


@pytest.mark.long
@pytest.mark.parametrize("point", ["sink.produced:2", "sink.committed:2"])
def test_killed_between_pieces_of_the_snapshot(feed: Feed, kafka: Kafka, registry: Registry, topic: str, point: str) -> None:
    feed.tick({k: (k, "", None) for k in range(SNAPSHOT_ROWS)})
    feed.create_sink(kafka.address, registry.url, topic)
    feed.tick({1: None})
    Process(feed.lake.path, crash=point).wait_killed()
    assert len(events(kafka.address, topic)) in (10_000, 20_000)
    feed.tick({2: None})
    finish(feed, kafka, topic)


@pytest.mark.long
def test_killed_at_random_again_and_again(feed: Feed, kafka: Kafka, registry: Registry, topic: str) -> None:
    feed.tick({k: (k, f"v{k}", None) for k in range(100)})
    feed.create_sink(kafka.address, registry.url, topic)
    ticking = Ticking(feed)
    for _ in range(8):
        process = Process(feed.lake.path)
        time.sleep(random.uniform(0.5, 3))
        assert process.process.poll() is None
        process.kill()
    ticking.stop()
    finish(feed, kafka, topic)


@pytest.mark.long
def test_two_processes_fight_over_a_sink(feed: Feed, kafka: Kafka, registry: Registry, topic: str) -> None:
    feed.create_sink(kafka.address, registry.url, topic)
    ticking = Ticking(feed)
    process = Process(feed.lake.path)
    until(lambda: copy(feed.lake).get("claimed"))
    for _ in range(2):
        replaced, process = process, Process(feed.lake.path)
        assert replaced.process.wait(REPLACED_S) == 1
    ticking.stop()
    assert process.stop() == 0
    finish(feed, kafka, topic)


@pytest.mark.long
def test_a_paused_process_continues(feed: Feed, kafka: Kafka, registry: Registry, topic: str) -> None:
    feed.create_sink(kafka.address, registry.url, topic)
    ticking = Ticking(feed)
    process = Process(feed.lake.path)
    until(lambda: copy(feed.lake).get("claimed"))
    process.process.send_signal(signal.SIGSTOP)
    time.sleep(2)
    process.process.send_signal(signal.SIGCONT)
    time.sleep(1)
    ticking.stop()
    newest = feed.lake.log.newest()
    assert newest is not None
    until(lambda: copy(feed.lake).get("n") == newest.n)
    assert process.stop() == 0
    assert events(kafka.address, topic) == feed.expected


@pytest.mark.long
def test_the_broker_stops_and_returns(feed: Feed, registry: Registry, topic: str, tmp_path: Path) -> None:
    broker = Kafka(tmp_path / "kafka")
    broker.start()
    try:
        feed.create_sink(broker.address, registry.url, topic)
        ticking = Ticking(feed)
        process = Process(feed.lake.path)
        until(lambda: copy(feed.lake).get("n", 0) > 50)
        broker.stop()
        until(lambda: copy(feed.lake).get("status") == "retrying")
        # at the latest on the second attempt, if the broker was shutting down during the first
        until(lambda: broker.address in copy(feed.lake)["error"])
        position = copy(feed.lake)["n"]
        time.sleep(1)
        assert copy(feed.lake)["n"] == position
        broker.start()
        until(lambda: copy(feed.lake).get("status") == "running")
        ticking.stop()
        newest = feed.lake.log.newest()
        assert newest is not None
        until(lambda: copy(feed.lake).get("n") == newest.n)
        assert process.stop() == 0
        assert events(broker.address, topic) == feed.expected
        assert copy(feed.lake, FIRST_SINK)["status"] == "stopped"
    finally:
        broker.stop()
