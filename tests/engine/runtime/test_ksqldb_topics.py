"""Topics and subjects of statements of ksqlDB: an existing topic's retention, and the subjects of a topic that is deleted."""

from __future__ import annotations

import json
import urllib.request

import pytest
from confluent_kafka import Consumer

from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tailgate.engine.runtime.kafka import producing
from tailgate.engine.runtime.kafka.consumer_groups import consumers
from tailgate.formats import registry as schemas
from tailgate.lake.errors import InvalidParameterValue
from testing.engine_process import until


def test_the_retention_of_an_existing_topic_is_compared(kafka: Kafka) -> None:
    config = {producing.RETENTION: "3600000"}
    assert producing.create_topic(kafka.address, "kept", 1, None, {}, config)
    assert not producing.create_topic(kafka.address, "kept", 1, None, {}, config)
    assert not producing.create_topic(kafka.address, "kept", 1, None, {})
    with pytest.raises(InvalidParameterValue, match=r"KSQL expects 60000 retention \(topic has 3600000\)"):
        producing.create_topic(kafka.address, "kept", 1, None, {}, {producing.RETENTION: "60000"})


def test_a_subject_is_deleted(registry: Registry) -> None:
    schemas.register(registry.url, {}, "gone-value", {"type": "string"})
    schemas.delete(registry.url, {}, "gone-value")
    schemas.delete(registry.url, {}, "gone-value")
    with urllib.request.urlopen(f"{registry.url}/subjects") as answer:
        assert b"gone-value" not in answer.read()


def test_schemas_are_registered_together_or_not_at_all(registry: Registry) -> None:
    with pytest.raises(InvalidParameterValue):
        schemas.register_all(registry.url, {}, {"both-key": {"type": "string"}, "both-value": {"type": "nothing"}})
    with urllib.request.urlopen(f"{registry.url}/subjects") as answer:
        assert b"both" not in answer.read()
    schemas.register_all(registry.url, {}, {"both-key": {"type": "string"}, "both-value": {"type": "int"}})
    with urllib.request.urlopen(f"{registry.url}/subjects") as answer:
        assert {"both-key", "both-value"} <= set(json.load(answer))


def test_consumers_and_groups_of_a_topic(kafka: Kafka) -> None:
    producing.create_topic(kafka.address, "consumed", 1, None, {})
    client = Consumer({"bootstrap.servers": kafka.address, "group.id": "readers", "auto.offset.reset": "earliest"})
    client.subscribe(["consumed"])
    try:
        until(lambda: client.poll(0.1) is None and bool(client.assignment()))
        assert consumers(kafka.address, {})["consumed"] == (1, 1)
    finally:
        client.close()
    assert "consumed" not in consumers(kafka.address, {})
