"""`tailgate engine --master`, as a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailgate import cli
from tailgate.embedded.kafka import Kafka
from tailgate.lake.folder import Lake
from testing.engine_process import EngineProcess, rows, until
from testing.spark_cluster import SparkCluster
from tests.engine.cluster.topics import Topic, create_sums

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def test_the_state_moves_between_engines(kafka: Kafka, topic: Topic, spark_cluster: SparkCluster, tmp_path: Path) -> None:
    """An engine whose executors have copies of the jars is killed, and an engine without a cluster continues from its state."""
    jars = tmp_path / "jars"
    assert cli.main(["jars", "--to", str(jars)]) == 0
    copies = ("--spark-conf", f"spark.executor.extraClassPath={jars}/*")
    process = EngineProcess(tmp_path / "lake", "--parallelism", "2", *spark_cluster.arguments, *copies)
    process.start()
    lake = Lake.open(tmp_path / "lake")
    topic.send(100)
    create_sums(process, topic)
    until(lambda: rows(lake, "sums") == topic.rows())
    assert any(str(jars).encode() in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in spark_cluster.executors())
    process.kill()
    topic.send(50)
    alone = EngineProcess(tmp_path / "lake", "--parallelism", "2")
    alone.start()
    until(lambda: rows(lake, "sums") == topic.rows())
    log = (tmp_path / "engine.log").read_text()
    assert log.count("sums is filled") == 1
    alone.stop()
