"""A Spark master with two workers, and a session whose executors they run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailgate.embedded.kafka import Kafka
from testing.spark_cluster import SparkCluster
from tests.engine.cluster.topics import Topic


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory, spark_cluster: SparkCluster) -> Iterator[Any]:
    """Replaces the local session of other tests."""
    from tailgate.engine.runtime.spark import session

    running = session.start(tmp_path_factory.mktemp("spark"), 2, cluster=spark_cluster.cluster())
    yield running
    running.stop()


@pytest.fixture
def topic(kafka: Kafka, tmp_path: Path) -> Topic:
    return Topic(kafka, tmp_path.name)
