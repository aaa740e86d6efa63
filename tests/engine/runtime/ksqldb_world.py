"""An engine with the address of a Kafka, for tests of ksqlDB."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tailgate.embedded.kafka import Kafka
from tailgate.lake.catalog import MaterializedView, hidden_positions
from tailgate.lake.folder import Lake
from testing import engine_process
from testing.engine_process import EngineProcess


def rows(lake: Lake, name: str) -> Counter[tuple[Any, ...]]:
    """Returns a relation's current rows, with their number of copies, without the columns that `*` leaves out."""
    item = lake.catalog().relation(name)
    hidden, out = hidden_positions(item), Counter[tuple[Any, ...]]()
    for row, count in engine_process.rows(lake, name).items():
        out[tuple(value for n, value in enumerate(row) if n not in hidden)] += count
    return out


class World:
    """An engine with the address of a Kafka."""

    def __init__(self, folder: Path, kafka: Kafka, *options: str) -> None:
        self.kafka = kafka
        self.engine = EngineProcess(folder / "lake", "--kafka", kafka.address, *options)
        self.engine.start()
        self.lake = Lake(folder / "lake")
        self._producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 0, "log_level": 2})
        self._when_killed: list[tuple[Callable[[], None], Callable[[], None]]] = []

    def when_killed(self, check: Callable[[], None], meanwhile: Callable[[], None] = lambda: None) -> None:
        """Keeps a check for the test that kills the engine, which starts again once for all tests. `meanwhile` runs before the start."""
        self._when_killed.append((meanwhile, check))

    def start_again(self) -> None:
        """Starts the engine, which was killed, and runs the checks that the tests before have left."""
        assert self._when_killed, "the tests whose checks this test runs have not run"
        for meanwhile, _ in self._when_killed:
            meanwhile()
        self.engine.start()
        for _, check in self._when_killed:
            check()

    def enqueue(self, topic: str, key: str, n: int) -> None:
        self._producer.produce(topic, json.dumps({"N": n}), key=key)

    def send(self, topic: str, key: str, n: int, timestamp: int = 0) -> None:
        self.put(topic, key, json.dumps({"N": n}), timestamp)

    def put(self, topic: str, key: str, value: str | None, timestamp: int = 0) -> None:
        self._producer.produce(topic, value, key=key, timestamp=timestamp)
        self._producer.flush()

    def produce(self, topic: str, key: bytes, value: bytes | None, headers: dict[str, bytes] | None = None) -> None:
        self._producer.produce(topic, value, key=key, headers=dict(headers or {}))
        self._producer.flush()

    def times(self, name: str) -> dict[str, int]:
        """Returns ROWTIME of the rows of a table, in ms, by their first column."""
        return {row[0]: round(row[-1].timestamp() * 1000) for row in engine_process.rows(self.lake, name)}

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        return sorted(row[:2] for row in rows(self.lake, name))

    def stream(self, name: str) -> None:
        self.engine.execute(
            f"CREATE STREAM {name} (k VARCHAR KEY, n INT) WITH (kafka_topic = '{name}', partitions = 1, value_format = 'json')"
        )

    def view(self, name: str) -> MaterializedView:
        item = self.lake.catalog().relation(name)
        assert isinstance(item, MaterializedView)
        return item

    def query(self, name: str) -> str:
        properties = self.view(name).ksqldb
        assert properties is not None
        return properties.query
