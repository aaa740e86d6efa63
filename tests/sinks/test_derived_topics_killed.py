"""The engine and the sinks are killed at random: no event of a derived topic is missing, doubled or out of order."""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tailgate.embedded.children import Child
from tailgate.embedded.kafka import Kafka
from testing.engine_process import EngineProcess, until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

PARTITIONS = 2
KEYS = "abcde"
ELEMENTS = 3  # of the array of each record
VICTIMS = ("driver", "jvm", "sinks")
KILLS = int(os.environ.get("TAILGATE_KILLS", str(len(VICTIMS))))
RECORDS = 400  # that are written around each kill
PAUSE_S = 0.005  # between two records, so that a kill is in the middle of them
WAIT_S = 150.0  # for a process that starts again on a busy machine


class Written:
    """The records of the stream: each key has an increasing number."""

    def __init__(self, kafka: Kafka, topic: str, chosen: random.Random) -> None:
        self._topic, self._random = topic, chosen
        self._sent: dict[str, int] = defaultdict(int)
        self._producer = Producer({"bootstrap.servers": kafka.address, "enable.idempotence": True, "log_level": 2})

    @contextmanager
    def writing(self, count: int) -> Iterator[None]:
        """Writes `count` records during the block, and waits at its end until the broker has them."""
        thread = threading.Thread(target=self._write, args=(count,), name="records")
        thread.start()
        try:
            yield
        finally:
            thread.join()

    def _write(self, count: int) -> None:
        for _ in range(count):
            key = self._random.choice(KEYS)
            self._producer.produce(self._topic, json.dumps({"N": self._sent[key], "PARTS": list(range(ELEMENTS))}), key)
            self._sent[key] += 1
            self._producer.poll(0)
            time.sleep(PAUSE_S)
        self._producer.flush()

    @property
    def results(self) -> dict[str, list[int]]:
        """Returns the numbers of the rows that result from the records of each key, in order."""
        return {key: list(range(ELEMENTS * count)) for key, count in self._sent.items()}

    @property
    def total(self) -> int:
        """Returns the number of these rows."""
        return ELEMENTS * sum(self._sent.values())


class Results:
    """The committed messages of a topic, by key and in order, as they arrive."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self.numbers: dict[str, list[int]] = defaultdict(list)

    def count(self) -> int:
        """Reads the messages that have arrived and returns the number of all."""
        for message in self._consumer.consume(RECORDS * ELEMENTS, 0.01):
            if message.error() is None:
                self.numbers[(message.key() or b"").decode()].append(json.loads(message.value() or b"")["N"])
        return sum(map(len, self.numbers.values()))


@contextmanager
def following(kafka: Kafka, topic: str) -> Iterator[Results]:
    """Returns the results in a topic, read up to the end of the block."""
    consumer = Consumer(
        {"bootstrap.servers": kafka.address, "group.id": topic, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    try:
        yield Results(consumer)
    finally:
        consumer.close()


def test_kills_leave_every_event_once_and_in_order(tmp_path: Path, kafka: Kafka, seed: int) -> None:
    chosen = random.Random(seed)
    source, topic = f"lists{seed}", f"NUMBERS{seed}"
    engine = EngineProcess(tmp_path / "lake", "--kafka", kafka.address)
    command = [sys.executable, "-m", "tailgate", "sinks", "--data", str(tmp_path / "lake")]
    engine.start()
    sinks = Child("sinks", command, log=tmp_path / "sinks.log")
    engine.execute(
        "CREATE STREAM lists (k VARCHAR KEY, n INT, parts ARRAY<INT>)"
        f" WITH (kafka_topic = '{source}', partitions = {PARTITIONS}, value_format = 'json')"
    )
    engine.execute(f"CREATE STREAM parts WITH (kafka_topic = 'PARTS{seed}') AS SELECT k, n, EXPLODE(parts) AS part FROM lists EMIT CHANGES")
    query = f"SELECT k, n * {ELEMENTS} + part AS n FROM parts EMIT CHANGES"
    engine.execute(f"CREATE STREAM numbers WITH (kafka_topic = '{topic}') AS {query}")
    written = Written(kafka, source, chosen)
    victims = [victim for _ in range(KILLS) for victim in chosen.sample(VICTIMS, len(VICTIMS))][:KILLS]
    with following(kafka, topic) as results:
        for victim in victims:
            awaited = results.count() + chosen.randrange(RECORDS * ELEMENTS)
            with written.writing(RECORDS):
                until(lambda count=awaited: results.count() >= count, WAIT_S)
                if victim == "sinks":
                    sinks.kill()
                    sinks = Child("sinks", command, log=tmp_path / "sinks.log")
                else:
                    engine.kill(python=victim == "driver", jvm=victim == "jvm")
                    engine.start()
            print(f"{victim} was killed after {awaited} messages")
        until(lambda: results.count() >= written.total, WAIT_S)
        with written.writing(1):  # a repeated message would be before its results
            pass
        until(lambda: results.count() >= written.total, WAIT_S)
        assert dict(results.numbers) == written.results
    sinks.stop()
    engine.stop()
