"""Topics that lose records before they are read: a fill begins again."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from embedded.kafka import Kafka
from tests.engine.runtime.parts import until
from tests.engine.runtime.test_topics import World

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

RECORDS = 1_000


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("trimmed")
    kafka = Kafka(folder / "kafka")
    kafka.start()
    made = World(folder, kafka)
    yield made
    made.engine.stop()
    kafka.stop()


def trim(world: World, topic: str, before: int) -> None:
    """Removes the records before an offset of partition 0."""
    admin = AdminClient({"bootstrap.servers": world.kafka.address})
    (done,) = admin.delete_records([TopicPartition(topic, 0, before)]).values()
    done.result(30)


def produce(world: World, topic: str, begin: int, end: int) -> None:
    for n in range(begin, end):
        world.producer.produce(topic, str(n).encode())
    assert world.producer.flush(30) == 0


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_a_fill_begins_again_at_the_new_head(world: World) -> None:
    """The head goes between the moment at which the view's beginning is fixed and the first fetch."""
    log = world.lake.path.parent / "engine.log"
    for attempt in range(5):
        topic = f"head-{attempt}"
        world.kafka.create_topic(topic)
        produce(world, topic, 0, RECORDS)
        world.engine.execute(f"CREATE SOURCE head_{attempt} FROM KAFKA BROKER '{world.kafka.address}' TOPIC '{topic}' FORMAT TEXT")
        create = f"CREATE MATERIALIZED VIEW held_{attempt} AS SELECT count(*) AS n FROM head_{attempt}"
        thread = threading.Thread(target=world.engine.execute, args=(create,))
        with stopped(world.engine.jvm):  # the view's beginning is looked up by the driver alone
            thread.start()
            time.sleep(1.0)
            trim(world, topic, 400)
        thread.join(60)
        assert not thread.is_alive(), "the statement waits for records that are gone"
        assert world.rows(f"held_{attempt}") == [(600,)]
        produce(world, topic, RECORDS, RECORDS + 5)
        until(lambda attempt=attempt: world.rows(f"held_{attempt}") == [(605,)])  # type: ignore[misc]
        world.engine.execute(f"DROP SOURCE head_{attempt} CASCADE")
        if f"filling held_{attempt} begins again" in log.read_text():
            return
    raise AssertionError("the head was never trimmed in time")
