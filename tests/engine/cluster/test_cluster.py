"""An engine whose ticks run in executors of a Spark master, in other processes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tailgate.embedded.kafka import Kafka
from tailgate.lake.folder import Lake
from testing.engine_process import EngineProcess, rows, until
from testing.spark_cluster import SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
PARTITIONS = 3


class System:
    """An engine on a cluster, and a topic of several partitions."""

    def __init__(self, kafka: Kafka, cluster: SparkCluster, folder: Path, parallelism: int) -> None:
        self.kafka, self.topic = kafka, folder.parent.name + folder.name
        self.kafka.create_topic(self.topic, partitions=PARTITIONS)
        self.producer = Producer({"bootstrap.servers": kafka.address})
        self.engine = EngineProcess(folder / "lake", *cluster.arguments, "--parallelism", str(parallelism))
        self.engine.start()
        self.lake = Lake.open(folder / "lake")

    def send(self, *records: dict[str, int]) -> None:
        for n, record in enumerate(records):
            self.producer.produce(self.topic, json.dumps(record).encode(), partition=n % PARTITIONS)
        self.producer.flush()

    def shows(self, view: str, expected: Counter[tuple[object, ...]]) -> None:
        until(lambda: rows(self.lake, view) == expected or rows(self.lake, view))
        until(lambda: rows(self.lake, view) == expected)


@pytest.fixture(params=[1, 2])
def system(request: pytest.FixtureRequest, kafka: Kafka, spark_cluster: SparkCluster, tmp_path: Path) -> Iterator[System]:
    system = System(kafka, spark_cluster, tmp_path, request.param)
    yield system
    system.engine.stop()


def test_views_have_history_and_news(system: System) -> None:
    """The records that are in the topic before a view, and those that come after, reach it by tasks of other processes."""
    system.send(*({"g": n % 7, "x": n} for n in range(1000)))
    system.engine.execute(
        f"CREATE SOURCE events (g int, x bigint) FROM KAFKA BROKER '{system.kafka.address}' TOPIC '{system.topic}' FORMAT JSON"
    )
    system.engine.execute("CREATE MATERIALIZED VIEW sums AS SELECT g, sum(x) AS total, count(*) AS n FROM events GROUP BY g")
    expected = Counter((g, sum(range(g, 1000, 7)), len(range(g, 1000, 7))) for g in range(7))
    system.shows("sums", expected)
    system.send({"g": 7, "x": 1})
    system.shows("sums", expected + Counter({(7, 1, 1): 1}))
