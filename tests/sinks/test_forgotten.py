"""A broker that stops at the end of a transaction may forget it, although it has acknowledged it. Its events are sent again."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tests.sinks.feed import FIRST_SINK, Feed, copy, events, until
from tests.sinks.running import Running, reached


def test_events_that_kafka_has_forgotten_are_sent_again(tmp_path: Path, kafka: Kafka, registry: Registry) -> None:
    feed, topic = Feed(tmp_path / "lake"), "forgotten-" + uuid.uuid4().hex[:8]
    feed.create_sink(kafka.address, registry.url, topic)
    running = Running(feed.lake)
    feed.tick({1: (1, "a", None)})
    until(lambda: reached(feed))
    running.stop()
    feed.tick({2: (2, "b", None)})
    newest = feed.lake.log.newest()
    assert newest is not None
    path = feed.lake.path / "readers" / f"sink-{FIRST_SINK}"  # as it is after the acknowledgement
    path.write_text(json.dumps({**copy(feed.lake), "n": newest.n, "time": newest.time, "sent": newest.n}))
    feed.tick({3: (3, "c", None)})
    running = Running(feed.lake)
    until(lambda: reached(feed))
    running.stop()
    assert events(kafka.address, topic) == feed.expected
