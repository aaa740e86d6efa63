"""A topic whose records views sum up."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from confluent_kafka import Producer

from tailgate.embedded.kafka import Kafka
from testing.engine_process import EngineProcess
from tests.engine.runtime.inside import Inside

PARTITIONS = 3  # of a topic
GROUPS = 7


class Topic:
    """A topic of several partitions, and the sums of its records by group."""

    def __init__(self, kafka: Kafka, name: str) -> None:
        self.name, self.sums = name, Counter[int]()
        kafka.create_topic(name, partitions=PARTITIONS)
        self._producer = Producer({"bootstrap.servers": kafka.address})
        self.source = f"FROM KAFKA BROKER '{kafka.address}' TOPIC '{name}' FORMAT JSON"
        self._sent = 0

    def send(self, n: int) -> None:
        for _ in range(n):
            self._sent += 1
            group = self._sent % GROUPS
            self.sums[group] += self._sent
            self._producer.produce(self.name, json.dumps({"g": group, "x": self._sent}).encode(), partition=self._sent % PARTITIONS)
        self._producer.flush()

    def rows(self) -> Counter[tuple[Any, ...]]:
        """Returns the rows of a view of the sums."""
        return Counter(dict.fromkeys(self.sums.items(), 1))


def create_sums(engine: Inside | EngineProcess, topic: Topic) -> None:
    engine.execute(f"CREATE SOURCE events (g int, x bigint) {topic.source}")
    engine.execute("CREATE MATERIALIZED VIEW sums AS SELECT g, sum(x)::bigint AS total FROM events GROUP BY g")
