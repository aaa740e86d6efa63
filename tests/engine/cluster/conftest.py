"""A Spark master with two workers, and a session whose executors they run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailgate.embedded.kafka import Kafka
from testing.spark_cluster import SparkCluster
from tests.engine.cluster.topics import Topic


@pytest.fixture(scope="package")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory, spark_cluster: SparkCluster) -> Iterator[Any]:
    """Replaces the local session of other tests."""
    from tailgate.engine.runtime.spark import session

    _forget_secret(spark_cluster)
    running = session.start(tmp_path_factory.mktemp("spark"), 2, cluster=spark_cluster.cluster())
    yield running
    running.stop()


def _forget_secret(cluster: SparkCluster) -> None:
    """Replaces the random secret of a local session, which Spark keeps in the JVM and prefers to the one of its settings."""
    from pyspark import SparkContext

    if SparkContext._gateway is None:
        return
    hadoop: Any = SparkContext._gateway.jvm.org.apache.hadoop
    credentials = hadoop.security.Credentials()
    credentials.addSecretKey(hadoop.io.Text("sparkCookie"), cluster.secret_file.read_bytes())
    hadoop.security.UserGroupInformation.getCurrentUser().addCredentials(credentials)


@pytest.fixture
def topic(kafka: Kafka, tmp_path: Path) -> Topic:
    return Topic(kafka, tmp_path.name)
