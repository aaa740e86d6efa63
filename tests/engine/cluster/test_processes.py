"""`tailgate engine --master`, as a process."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from tailgate import cli
from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tailgate.lake.folder import Lake
from tailgate.lake.log.uploaded_state import UPLOADED
from tailgate.lake.store.bucket import BucketStore
from testing.engine_process import EngineProcess, rows, until
from testing.spark_cluster import SparkCluster
from tests.engine.cluster.topics import Topic, create_sums
from tests.engine.runtime.test_transactions import ACCOUNTS, FEW, Connector, Database, check_open, check_steps, in_avro, make

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


@pytest.mark.long
def test_the_state_of_a_bucket_moves_between_engines(
    kafka: Kafka, topic: Topic, spark_cluster: SparkCluster, bucket: BucketStore, tmp_path: Path
) -> None:
    """The working folder that the executors share is lost. An engine without a cluster continues from the state in the bucket."""
    location, work = bucket.location(""), tmp_path / "work"
    process = EngineProcess(location, "--parallelism", "2", *spark_cluster.arguments, work_dir=work)
    process.start()
    lake = Lake.open(location, tmp_path / "reader")
    topic.send(100)
    create_sums(process, topic)
    until(lambda: rows(lake, "sums") == topic.rows())
    until(lambda: (newest := lake.log.newest()) is not None and newest.extra.get(UPLOADED) is not None)
    topic.send(50)
    os.kill(spark_cluster.executors()[0], signal.SIGKILL)
    until(lambda: rows(lake, "sums") == topic.rows())
    process.kill()
    shutil.rmtree(work)
    topic.send(50)
    alone = EngineProcess(location, "--parallelism", "2", work_dir=tmp_path / "other")
    alone.start()
    until(lambda: rows(lake, "sums") == topic.rows())
    log = (tmp_path / "engine.log").read_text()
    assert log.count("sums is filled") == 1
    assert "the state cannot be downloaded" not in log
    alone.stop()


@pytest.mark.long
def test_no_tick_shows_half_a_transaction(kafka: Kafka, registry: Registry, spark_cluster: SparkCluster, tmp_path: Path) -> None:
    """Tasks read change topics with whole transactions from Kafka, and schemas from a registry, while executors are killed."""
    kafka.create_topic("bank.accounts", partitions=2)
    for topic in ("bank.transfers", "bank.transaction", "other"):
        kafka.create_topic(topic)
    process = EngineProcess(tmp_path / "lake", "--parallelism", "2", *spark_cluster.arguments)
    process.start()
    connector, database = Connector(kafka.address, in_avro(registry)), Database()
    lake = make(process, kafka.address, registry.url)
    connector.send(database.snapshot())
    until(lambda: rows(lake, "accounts").total() == ACCOUNTS)
    for i in range(FEW):
        connector.send(database.transaction())
        if i == FEW // 2:
            os.kill(spark_cluster.executors()[0], signal.SIGKILL)
        if i % 2 == 0:
            until(lambda: rows(lake, "transfers").total() == database.transfers)
    until(lambda: rows(lake, "transfers").total() == FEW)
    assert {r[0]: r[1:] for r in rows(lake, "accounts")} == database.accounts
    check_steps(lake, FEW)
    check_open(process, database, connector)
    assert not any(s["error"] for s in process.get("/status")["sources"].values())
    process.stop()
