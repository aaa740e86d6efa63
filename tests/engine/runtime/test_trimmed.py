"""Topics lose records before they are read.

A backfill starts again, and a live source stalls until the loss is accepted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from tailgate.embedded.kafka import Kafka
from tailgate.lake.errors import TailgateError
from testing.engine_process import stopped, until
from tests.engine.runtime.test_topics import World

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

RECORDS = 1_000
FETCH_END_S = 0.5  # the longest wait of a fetch at the broker; it would otherwise answer with the records before they are removed


@pytest.fixture(scope="module")
def world(module_kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("trimmed"), module_kafka)
    yield world
    world.engine.stop()


def trim(world: World, topic: str, before: int) -> None:
    """Removes the records before an offset of partition 0."""
    admin = AdminClient({"bootstrap.servers": world.kafka.address})
    (future,) = admin.delete_records([TopicPartition(topic, 0, before)]).values()
    future.result(30)


def produce(world: World, topic: str, begin: int, end: int) -> None:
    for n in range(begin, end):
        world.producer.produce(topic, str(n).encode())
    assert world.producer.flush(30) == 0


def test_a_fill_begins_again_at_the_new_head(world: World) -> None:
    """Records are removed between the choice of the start offset and the first fetch."""
    log = world.lake.path.parent / "engine.log"
    for attempt in range(5):
        topic = f"head-{attempt}"
        world.kafka.create_topic(topic)
        produce(world, topic, 0, RECORDS)
        world.engine.execute(f"CREATE SOURCE head_{attempt} FROM KAFKA BROKER '{world.kafka.address}' TOPIC '{topic}' FORMAT TEXT")
        create = f"CREATE MATERIALIZED VIEW held_{attempt} AS SELECT count(*) AS n FROM head_{attempt}"
        thread = threading.Thread(target=world.engine.execute, args=(create,))
        with stopped(world.engine.jvm):  # the driver alone looks up the view's start offset
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


def test_a_live_source_that_lost_records_stalls_until_the_loss_is_accepted(world: World) -> None:
    for topic in ("trimmed", "untouched"):
        world.kafka.create_topic(topic)
        world.engine.execute(f"CREATE SOURCE {topic} FROM KAFKA BROKER '{world.kafka.address}' TOPIC '{topic}' FORMAT TEXT INCLUDE OFFSET")
        world.engine.execute(f'CREATE MATERIALIZED VIEW {topic}_v AS SELECT count(*) AS n, max("offset") AS last FROM {topic}')
    produce(world, "trimmed", 0, 10)
    until(lambda: world.rows("trimmed_v") == [(10, 9)])
    assert (
        world.engine.execute("ALTER SOURCE trimmed RESUME AT EARLIEST")["notices"][0]["message"] == 'source "trimmed" has lost no records'
    )
    with stopped(world.engine.pid, world.engine.jvm):
        time.sleep(FETCH_END_S)
        produce(world, "trimmed", 10, 30)
        trim(world, "trimmed", 20)
    until(lambda: world.status("trimmed")["status"] == "stalled")
    assert "records were deleted" in world.status("trimmed")["error"]
    produce(world, "untouched", 0, 3)
    until(lambda: world.rows("untouched_v") == [(3, 2)])
    world.engine.kill(jvm=True)
    world.engine.start()
    until(lambda: world.status("trimmed")["status"] == "stalled")
    assert world.rows("trimmed_v") == [(10, 9)]
    answer = world.engine.execute("ALTER SOURCE trimmed RESUME AT EARLIEST")
    loss = "topic trimmed, partition 0: the records from offset 10 to 19 are lost"
    assert (answer["tag"], [n["message"] for n in answer["notices"]]) == ("ALTER SOURCE", [loss])
    until(lambda: world.rows("trimmed_v") == [(20, 29)])
    assert world.status("trimmed")["status"] == "running"
    assert f'source "trimmed": {loss}' in (world.lake.path.parent / "engine.log").read_text()
    assert world.lake.catalog().relation("trimmed").lost == (loss,)
    produce(world, "trimmed", 30, 31)
    until(lambda: world.rows("trimmed_v") == [(21, 30)])
    with pytest.raises(TailgateError, match="is not a source"):
        world.engine.execute("ALTER SOURCE trimmed_v RESUME AT EARLIEST")
    assert world.engine.execute("ALTER SOURCE IF EXISTS nothing RESUME AT EARLIEST")["tag"] == "ALTER SOURCE"
