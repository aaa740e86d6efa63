"""A sinks process that stands by continues after one that is killed or hangs, and no event is missing or doubled."""

from __future__ import annotations

import signal
import uuid
from pathlib import Path

import pytest

from tailgate.embedded.children import free_port
from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tailgate.lake.readers import sinks_process
from tailgate.lake.store import stand_by
from tests.operations.system import status
from tests.sinks.feed import Feed, Process, copy, events, fold, until


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_the_process_that_stands_by_continues(tmp_path: Path, kafka: Kafka, registry: Registry, end: signal.Signals) -> None:
    feed = Feed(tmp_path / "lake")
    topic = "stand-by-" + uuid.uuid4().hex[:8]
    feed.create_sink(kafka.address, registry.url, topic)
    first = Process(feed.lake.path)
    _reached(feed)
    second = Process(feed.lake.path, "--stand-by")
    until(lambda: stand_by.standing_by(feed.lake.store, sinks_process.PLACE))
    feed.random_tick()
    _reached(feed)
    assert second.process.poll() is None
    first.process.send_signal(end)
    for _ in range(5):
        feed.random_tick()
    _reached(feed)
    first.process.send_signal(signal.SIGCONT if end is signal.SIGSTOP else signal.SIGKILL)
    assert first.process.wait(30) == (1 if end is signal.SIGSTOP else -signal.SIGKILL)
    feed.random_tick()
    _reached(feed)
    assert second.stop() == 0
    assert not sinks_process.ended_unexpectedly(feed.lake)
    assert fold(events(kafka.address, topic)) == feed.rows


def test_a_process_that_stands_by_can_be_stopped(tmp_path: Path) -> None:
    feed = Feed(tmp_path / "lake")
    running = sinks_process.SinksProcess(feed.lake)
    port = free_port()
    waiting = Process(feed.lake.path, "--stand-by", "--metrics", str(port))
    until(lambda: status(port, "/startupz") == 200)
    assert status(port, "/readyz") == 503
    assert stand_by.standing_by(feed.lake.store, sinks_process.PLACE)
    assert waiting.stop() == 0
    assert running.renew()
    running.end()


def _reached(feed: Feed) -> None:
    """Waits until the sink has reached the end of the log."""
    newest = feed.lake.log.newest()
    assert newest is not None
    until(lambda: copy(feed.lake).get("n") == newest.n and copy(feed.lake)["status"] == "running")
