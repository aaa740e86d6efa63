"""Tests that data and address of the embedded broker survive its end, including a kill."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from tailgate.embedded import children
from tailgate.embedded import kafka as module
from tailgate.embedded.children import ChildFailed, free_port
from tailgate.embedded.kafka import Kafka

pytestmark = pytest.mark.kafka


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Kafka]:
    broker = Kafka(tmp_path / "kafka")
    yield broker
    broker.stop()


def produce(broker: Kafka, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": broker.address})
    for value in values:
        producer.produce(topic, value.encode())
    assert producer.flush(30) == 0


def consume(broker: Kafka, topic: str, count: int, seconds: float = 20) -> list[str]:
    """Returns the first `count` values of a topic, read with `read_committed`."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "test", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[str] = []
    deadline = time.monotonic() + seconds
    while len(values) < count and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            values.append(message.value().decode())
    consumer.close()
    return values


def test_data_and_port_stay_over_a_stop_and_a_kill(broker: Kafka) -> None:
    broker.start()
    address = broker.address
    broker.create_topic("events")
    produce(broker, "events", "a", "b")
    broker.stop()
    assert not broker.running()

    again = Kafka(broker.data)
    again.start()
    try:
        assert again.address == address
        assert consume(again, "events", 2) == ["a", "b"]
        produce(again, "events", "c")
        os.killpg(again.pid, signal.SIGKILL)
        while again.running():
            time.sleep(0.01)
        again.start()
        assert again.address == address
        assert consume(again, "events", 3) == ["a", "b", "c"]
    finally:
        again.stop()


def test_a_topic_made_twice_is_one(kafka: Kafka) -> None:
    kafka.create_topic("twice", partitions=2, settings={"cleanup.policy": "compact"})
    kafka.create_topic("twice")
    metadata = Consumer({"bootstrap.servers": kafka.address, "group.id": "test"}).list_topics("twice", timeout=10)
    assert len(metadata.topics["twice"].partitions) == 2


def test_old_records_are_kept(kafka: Kafka) -> None:
    """A broker with default settings deletes records whose time is more than a week ago, 30 s after its start."""
    kafka.create_topic("old")
    resource = ConfigResource(ConfigResource.Type.TOPIC, "old")
    admin = AdminClient({"bootstrap.servers": kafka.address})
    settings = admin.describe_configs([resource])[resource].result(10)
    assert [settings[name].value for name in ("retention.ms", "retention.bytes")] == ["-1", str(module.RETENTION_BYTES)]


def test_an_invalid_topic_is_an_error(kafka: Kafka) -> None:
    with pytest.raises(KafkaException):
        kafka.create_topic("no/such name")


def test_transactions_are_seen_when_committed(kafka: Kafka) -> None:
    kafka.create_topic("transactions")
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": "test"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("transactions", b"given up")
    producer.flush(10)
    producer.abort_transaction(30)
    producer.begin_transaction()
    producer.produce("transactions", b"kept")
    producer.commit_transaction(30)
    assert consume(kafka, "transactions", 2, seconds=2) == ["kept"]


def test_another_port_is_refused_for_a_folder_that_has_one(tmp_path: Path) -> None:
    port = free_port()
    assert Kafka(tmp_path, port).port == port
    assert Kafka(tmp_path, port).port == port
    with pytest.raises(ValueError, match=f"has port {port}"):
        Kafka(tmp_path, port + 1)


def test_a_port_in_use_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "PREDECESSOR_ENDS", timedelta(milliseconds=100))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(ChildFailed, match=f"port {port} of 127.0.0.1 is in use by process {os.getpid()}"):
            Kafka(tmp_path, port).start()


def test_missing_jars_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "JARS", tmp_path)
    with pytest.raises(FileNotFoundError, match="make setup"):
        Kafka(tmp_path / "kafka").start()
