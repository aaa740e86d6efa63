"""A Spark master with two workers, and a session whose executors they run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tailgate.engine.runtime.spark.cluster import class_path
from testing.spark_cluster import SparkCluster


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory, spark_cluster: SparkCluster) -> Iterator[Any]:
    """Replaces the local session of other tests. Executors also have the test classes."""
    from tailgate.engine.runtime.spark import session

    cluster = spark_cluster.cluster(spark__executor__extraClassPath=f"{class_path()}:{os.environ['SPARK_DIST_CLASSPATH']}")
    running = session.start(tmp_path_factory.mktemp("spark"), 2, cluster=cluster)
    yield running
    running.stop()
