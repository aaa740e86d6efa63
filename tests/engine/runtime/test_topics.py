"""Kafka topics: start offsets, new partitions, transactions, headers, recreated topics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from tailgate.embedded.kafka import Kafka
from tailgate.engine.runtime.kafka import requests
from tailgate.lake.folder import Lake
from tailgate.lake.readers.reading import changes
from testing.engine_process import EngineProcess, rows, stopped, until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]


class World:
    """An engine with a separate Kafka."""

    def __init__(self, folder: Path, kafka: Kafka) -> None:
        self.kafka = kafka
        self.engine = EngineProcess(folder / "lake")
        self.engine.start()
        self.lake = Lake(folder / "lake")
        self.producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 0, "log_level": 2})

    def send(self, topic: str, value: str, **more: Any) -> None:
        self.producer.produce(topic, value.encode(), **more)
        self.producer.flush()

    def source(self, name: str, topic: str, rest: str, with_: str = "") -> None:
        self.engine.execute(f"CREATE SOURCE {name} FROM KAFKA BROKER '{self.kafka.address}' TOPIC '{topic}' {with_} {rest}")
        if "ENVELOPE" not in rest:
            self.engine.execute(f"CREATE MATERIALIZED VIEW {name}_v AS SELECT * FROM {name}")

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        return sorted(rows(self.lake, name))

    def status(self, source: str) -> dict[str, Any]:
        return dict(self.engine.get("/status")["sources"][source])


@pytest.fixture(scope="module")
def world(module_kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("topics"), module_kafka)
    yield world
    world.engine.stop()


def test_where_reading_begins(world: World) -> None:
    world.kafka.create_topic("old", partitions=2)
    for i in range(4):
        world.send("old", f"a{i}", partition=0, timestamp=1000 * (i + 1), key=f"k{i}")
        world.send("old", f"b{i}", partition=1, timestamp=1000 * (i + 1), key=f"l{i}")
    world.source("from_offset", "old", "FORMAT TEXT", "WITH (start_offset = (3, 2))")
    world.source("from_first", "old", "FORMAT TEXT", "WITH (start_offset = 3)")
    world.source("from_time", "old", "FORMAT TEXT", "WITH (kafka_time_offset = 3000)")
    world.source("keyed", "old", "KEY FORMAT TEXT VALUE FORMAT TEXT ENVELOPE UPSERT", "WITH (kafka_time_offset = 4000)")
    assert world.rows("from_offset_v") == [("a3",), ("b2",), ("b3",)]
    assert world.rows("from_first_v") == [("a3",), ("b0",), ("b1",), ("b2",), ("b3",)]
    assert world.rows("from_time_v") == [("a2",), ("a3",), ("b2",), ("b3",)]
    until(lambda: world.rows("keyed") == [("k3", "a3"), ("l3", "b3")])
    world.send("old", "a4", partition=0, key="k4")
    until(lambda: ("a4",) in world.rows("from_offset_v") and ("k4", "a4") in world.rows("keyed"))


def test_topics_are_looked_up_together(world: World) -> None:
    world.kafka.create_topic("several", partitions=2)
    world.kafka.create_topic("empty")
    world.send("several", "one", partition=1)
    world.send("several", "two", partition=1)
    topics = requests.look(world.kafka.address, ["several", "missing", "empty", "no valid name"], {})
    assert {name: topic.bounds for name, topic in topics.items()} == {"several": {"0": (0, 0), "1": (0, 2)}, "empty": {"0": (0, 0)}}
    assert topics["several"].id != topics["empty"].id
    assert requests.look(world.kafka.address, ["missing"], {}) == {}


def test_a_partition_that_is_added_later(world: World) -> None:
    world.kafka.create_topic("growing")
    world.source("growing", "growing", "FORMAT TEXT INCLUDE PARTITION, HEADERS, HEADER 'h' AS h")
    world.send("growing", "one", headers=[("h", b"v")])
    until(lambda: world.rows("growing_v") == [("one", 0, '[{"key": "h", "value": "v"}]', "v")])
    admin = AdminClient({"bootstrap.servers": world.kafka.address})
    admin.create_partitions([NewPartitions("growing", 2)])["growing"].result(10)
    until(lambda: world.producer.list_topics("growing").topics["growing"].partitions.get(1) is not None)
    world.send("growing", "two", partition=1)
    until(lambda: [r[:2] for r in world.rows("growing_v")] == [("one", 0), ("two", 1)])
    world.engine.execute("CREATE MATERIALIZED VIEW grown AS SELECT text, h FROM growing")
    assert world.rows("grown") == [("one", "v"), ("two", None)]


def test_transactions_that_are_aborted_are_not_read(world: World) -> None:
    world.kafka.create_topic("transacted")
    world.source("transacted", "transacted", "FORMAT TEXT")
    producer = Producer({"bootstrap.servers": world.kafka.address, "transactional.id": "test", "log_level": 2})
    producer.init_transactions(10)
    for value, commit in (("aborted", False), ("committed", True)):
        producer.begin_transaction()
        producer.produce("transacted", value.encode())
        producer.flush()
        (producer.commit_transaction if commit else producer.abort_transaction)(10)
    until(lambda: world.rows("transacted_v") == [("committed",)])
    world.engine.execute("CREATE MATERIALIZED VIEW transacted_later AS SELECT * FROM transacted")
    assert world.rows("transacted_later") == [("committed",)]


def test_a_recreated_topic_is_not_mixed_with_the_old_one(world: World) -> None:
    """Other sources on the same broker continue."""
    world.kafka.create_topic("remade")
    world.kafka.create_topic("neighbour")
    world.source("remade", "remade", "FORMAT TEXT")
    world.source("neighbour", "neighbour", "FORMAT TEXT")
    world.send("remade", "old")
    until(lambda: world.rows("remade_v") == [("old",)])
    world.engine.stop()
    admin = AdminClient({"bootstrap.servers": world.kafka.address})
    admin.delete_topics(["remade"])["remade"].result(10)
    until(lambda: "remade" not in admin.list_topics().topics)
    world.kafka.create_topic("remade")
    for value in ("new", "newer", "newest"):  # more records than before, so offsets alone do not reveal the new topic
        world.send("remade", value)
    world.engine.start()
    until(lambda: world.status("remade")["status"] == "stalled")
    assert "was deleted and recreated" in world.status("remade")["error"]
    world.send("neighbour", "here")
    until(lambda: world.rows("neighbour_v") == [("here",)])
    assert world.rows("remade_v") == [("old",)]
    world.engine.execute("DROP SOURCE remade CASCADE")
    world.source("remade", "remade", "FORMAT TEXT")
    assert world.rows("remade_v") == [("new",), ("newer",), ("newest",)]
    admin.delete_topics(["neighbour"])["neighbour"].result(10)
    until(lambda: world.status("neighbour")["status"] == "stalled")
    world.send("remade", "still read")
    until(lambda: ("still read",) in world.rows("remade_v"))


def test_a_topic_recreated_between_two_ticks(world: World) -> None:
    """The engine sees only offsets, which are larger than before.

    It reads no row of the new topic.
    """
    world.kafka.create_topic("swapped")
    world.source("swapped", "swapped", "KEY FORMAT TEXT VALUE FORMAT TEXT ENVELOPE UPSERT")
    world.send("swapped", "old", key="a")
    until(lambda: world.rows("swapped") == [("a", "old")])
    admin = AdminClient({"bootstrap.servers": world.kafka.address})
    with stopped(world.engine.pid, world.engine.jvm):
        admin.delete_topics(["swapped"])["swapped"].result(10)
        until(lambda: "swapped" not in admin.list_topics().topics)
        world.kafka.create_topic("swapped")
        # the other producer still has metadata of the old topic
        producer = Producer({"bootstrap.servers": world.kafka.address, "log_level": 2})
        for key in "bcd":
            producer.produce("swapped", b"new", key)
        assert producer.flush(30) == 0
    until(lambda: world.status("swapped")["status"] == "stalled")
    assert "was deleted and recreated" in world.status("swapped")["error"]
    assert world.rows("swapped") == [("a", "old")]
    world.engine.execute("DROP SOURCE swapped")


def test_rows_that_only_come_are_kept(world: World) -> None:
    """CREATE MATERIALIZED SOURCE, with a view that is created later, also after a restart."""
    world.kafka.create_topic("heard")
    world.send("heard", "one")
    where = f"FROM KAFKA BROKER '{world.kafka.address}' TOPIC 'heard' FORMAT TEXT"
    world.engine.execute(f"CREATE MATERIALIZED SOURCE heard {where}")
    until(lambda: world.rows("heard") == [("one",)])
    world.send("heard", "two")
    world.send("heard", "one")
    until(lambda: rows(world.lake, "heard") == {("one",): 2, ("two",): 1})
    world.engine.execute("CREATE MATERIALIZED VIEW heard_often AS SELECT text, count(*) AS n FROM heard GROUP BY text")
    assert world.rows("heard_often") == [("one", 2), ("two", 1)]
    world.engine.kill(jvm=True)
    world.engine.start()
    world.send("heard", "two")
    until(lambda: world.rows("heard_often") == [("one", 2), ("two", 2)])
    assert rows(world.lake, "heard") == {("one",): 2, ("two",): 2}
    world.engine.execute("DROP SOURCE heard CASCADE")


def test_limits_of_a_source(world: World) -> None:
    world.kafka.create_topic("bounded")
    for i in range(30):
        world.send("bounded", f"{i}")
    world.send("bounded", "x" * 90, key="k" * 11)
    world.source("unbounded", "bounded", "FORMAT TEXT INCLUDE OFFSET")
    from_kafka = f"FROM KAFKA BROKER '{world.kafka.address}' TOPIC 'bounded'"
    limits = "WITH (max_message_bytes = 100, max_records_per_second = 10)"
    world.engine.execute(f"CREATE MATERIALIZED SOURCE bounded {from_kafka} {limits} FORMAT TEXT")
    until(lambda: len(world.rows("bounded")) == 30 and world.status("bounded")["lag"] == 0)
    letters = [(row[2], row[6]) for row in world.rows("bounded_dead_letters")]
    assert letters == [(30, "the message has 101 bytes, and max_message_bytes is 100")]
    assert len(world.rows("unbounded_v")) == 31
    came = [(header.time, table.num_rows) for header, table in changes(world.lake, world.lake.catalog().relation("bounded").id, 0)]
    for time, _ in came:
        # the rate limit of a second, and the unused part of the previous one
        assert sum(n for t, n in came if time <= t < time + 1000) <= 20
    assert came[-1][0] - came[0][0] >= 1500
