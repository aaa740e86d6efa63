"""Existing records of a topic are read without waiting for more."""

from __future__ import annotations

import time

from confluent_kafka import Producer

from tailgate.embedded.kafka import Kafka
from tailgate.engine.runtime.kafka.requests import IDLE_S, history


def test_few_records_are_not_waited_for(kafka: Kafka) -> None:
    kafka.create_topic("few_records", partitions=2)
    producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 0, "log_level": 2})
    for n in range(10):
        producer.produce("few_records", str(n).encode(), partition=n % 2)
    producer.flush()
    began = time.monotonic()
    values = [int(r.value or b"") for r in history(kafka.address, "few_records", {"1": 2}, {"0": 5, "1": 5}, {})]
    assert sorted(values) == [0, 2, 4, 5, 6, 7, 8, 9]
    assert time.monotonic() - began < IDLE_S / 2
