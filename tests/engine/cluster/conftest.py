"""A Spark master with two workers for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testing.spark_cluster import SparkCluster


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster
