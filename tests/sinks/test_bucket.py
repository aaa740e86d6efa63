"""Two processes that run the sinks of a lake in a bucket begin at once, again and again: no event is missing or doubled."""

from __future__ import annotations

import os

import pytest

from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tailgate.lake.folder import Lake
from tailgate.lake.store.bucket import BucketStore
from tests.sinks.feed import Feed, events, fold, until
from tests.sinks.running import Running, reached

TIMES = int(os.environ.get("TAILGATE_TIMES", "20"))
TICKS = 3


@pytest.mark.long
@pytest.mark.parametrize("times", [2, TIMES])
def test_two_sinks_at_once(times: int, bucket: BucketStore, kafka: Kafka, registry: Registry, topic: str) -> None:
    feed = Feed(bucket.location(""))
    feed.create_sink(kafka.address, registry.url, topic)
    for _ in range(times):
        both = [Running(Lake(feed.lake.location)) for _ in range(2)]
        for _ in range(TICKS):
            feed.random_tick()
        until(lambda: reached(feed))
        for one in both:
            one.stop()
    written = events(kafka.address, topic)
    assert written == feed.expected
    assert fold(written) == feed.rows
