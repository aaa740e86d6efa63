"""An engine whose ticks run in executors of a Spark master, in other processes."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailgate.embedded.kafka import Kafka
from tailgate.engine.runtime.backfill.fills import Fill
from tailgate.lake.writer.inbox import Record
from testing.engine_process import until
from testing.spark_cluster import SparkCluster
from tests.engine.cluster.law import Distributed, DistributedLaw
from tests.engine.cluster.topics import Topic, create_sums
from tests.engine.runtime.inside import Inside

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
WORKERS = 2
HANG_S = 100.0  # less than the default of spark.network.timeout
FEW, MANY = 20, int(os.environ.get("TAILGATE_CLUSTER_CASES", "60"))  # views


@pytest.fixture
def engine(session: Any, tmp_path: Path) -> Iterator[Inside]:
    engine = Inside(session, tmp_path / "lake", parallelism=3)
    yield engine
    engine.end()


def kill(executors: list[int]) -> None:
    for pid in executors:
        os.kill(pid, signal.SIGKILL)


def test_tasks_run_in_other_processes_and_get_secrets(session: Any, spark_cluster: SparkCluster) -> None:
    secrets, remote = session._jvm.tailgate.security.Secrets, session._jvm.tailgate.security.Remote
    pid, text = remote.text(session._jsparkSession, secrets.keep("open sesame")).split(" ", 1)
    assert int(pid) in spark_cluster.executors()
    assert text == "open sesame"
    assert b"sesame" not in Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()


def test_a_view_has_the_history_of_a_topic_and_its_new_records(engine: Inside, topic: Topic) -> None:
    topic.send(1000)
    create_sums(engine, topic)
    until(lambda: engine.rows("sums") == topic.rows())
    topic.send(100)
    until(lambda: engine.rows("sums") == topic.rows())


def test_another_write_after_a_piece_of_a_backfill(engine: Inside, topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tick of the other write also reads the entry of the piece, which must have its records by then."""
    engine.execute("CREATE TABLE other (n int)")
    topic.send(1000)
    write, pieces = engine.engine.inbox.write, []

    def followed(entry: list[Record], *more: Any) -> int:
        number = write(entry, *more)
        if isinstance(threading.current_thread(), Fill) and not pieces:
            pieces.append(number)
            engine.insert("other", (1,))
        return number

    monkeypatch.setattr(engine.engine.inbox, "write", followed)
    create_sums(engine, topic)
    until(lambda: engine.rows("sums") == topic.rows())
    assert pieces


def test_a_view_of_tables(engine: Inside) -> None:
    engine.execute("CREATE TABLE items (id int PRIMARY KEY, name text)")
    engine.execute("CREATE TABLE orders (item int, n bigint)")
    engine.insert("items", (1, "tea"), (2, "rice"))
    engine.insert("orders", (1, 5), (2, 7))
    engine.execute(
        "CREATE MATERIALIZED VIEW sold AS SELECT name, sum(n)::bigint AS n FROM orders JOIN items ON items.id = orders.item GROUP BY name"
    )
    assert engine.rows("sold") == Counter({("tea", 5): 1, ("rice", 7): 1})
    engine.insert("orders", (1, 1), (2, 1), (3, 9))
    assert engine.rows("sold") == Counter({("tea", 6): 1, ("rice", 8): 1})

    def has_the_time_of_all_partitions() -> bool:
        """Returns whether the statistics have the time of each of the partitions, in which operators work at once."""
        figures = engine.engine.figures()
        assert sum(of.nanoseconds for of in figures.nodes.values()) <= figures.milliseconds * 1e6
        return figures.milliseconds == 3 * sum(list(engine.engine.runner.durations)[-figures.ticks :])

    until(has_the_time_of_all_partitions)  # a tick may end in between


def holders(session: Any, engine: Inside) -> set[str]:
    """Returns the executors that have partitions of the first store open."""
    state, uuid = session._jvm.org.apache.spark.sql.execution.streaming.state, session._jvm.java.util.UUID(0, 1)
    coordinator, path = session._jsparkSession.streams().stateStoreCoordinator(), engine.engine.state_path
    stores = (state.StateStoreId(path, 0, partition, "default") for partition in range(3))
    return {coordinator.getLocation(state.StateStoreProviderId(store, uuid)).get() for store in stores}


def test_an_executor_that_is_killed(session: Any, engine: Inside, topic: Topic, spark_cluster: SparkCluster) -> None:
    """Its partitions of the state open in other executors, at the ids of the log. The executor that replaces it gets some of them."""
    topic.send(100)
    create_sums(engine, topic)
    until(lambda: engine.rows("sums") == topic.rows())
    for victims in (WORKERS, 1):
        until(lambda: len(spark_cluster.executors()) == WORKERS)
        kill(spark_cluster.executors()[:victims])
        topic.send(50)
        until(lambda: engine.rows("sums") == topic.rows())

    def has_divided_the_state() -> bool:
        topic.send(1)
        until(lambda: engine.rows("sums") == topic.rows())
        return len(holders(session, engine)) == WORKERS

    until(has_divided_the_state)
    assert engine.alive


@pytest.mark.long
def test_an_executor_that_hangs(engine: Inside, topic: Topic, spark_cluster: SparkCluster) -> None:
    """Spark replaces it when it has not answered for the time of spark.network.timeout."""
    topic.send(100)
    create_sums(engine, topic)
    until(lambda: engine.rows("sums") == topic.rows())
    until(lambda: len(spark_cluster.executors()) == WORKERS)
    victim = spark_cluster.executors()[0]
    os.kill(victim, signal.SIGSTOP)
    topic.send(50)
    until(lambda: engine.rows("sums") == topic.rows(), timeout=HANG_S)
    assert engine.alive


def test_state_that_is_lost_with_the_executors(engine: Inside, topic: Topic, spark_cluster: SparkCluster) -> None:
    """A task in another process reports it, and the views are filled again."""
    topic.send(100)
    create_sums(engine, topic)
    until(lambda: engine.rows("sums") == topic.rows())
    with engine.engine.boundary:
        shutil.rmtree(engine.lake.path / "state")
        kill(spark_cluster.executors())
    topic.send(50)
    until(lambda: engine.rows("sums") == topic.rows())
    assert engine.alive


def test_an_error_of_a_source_stops_only_that_source(engine: Inside, topic: Topic, kafka: Kafka) -> None:
    create_sums(engine, topic)
    strict = Topic(kafka, f"{topic.name}-strict")
    engine.execute(f"CREATE SOURCE strict (g int, x date) {strict.source} ON ERROR FAIL")
    engine.execute("CREATE MATERIALIZED VIEW dates AS SELECT g, count(*) AS n FROM strict GROUP BY g")
    strict.send(1)
    until(lambda: engine.engine.health.stalls)
    topic.send(10)
    until(lambda: engine.rows("sums") == topic.rows())


@pytest.mark.parametrize(
    ("cases", "kills"),
    [pytest.param(FEW, 0.0, id="all executors live"), pytest.param(MANY, 0.1, id="executors are killed", marks=pytest.mark.long)],
)
def test_every_view_is_its_query(session: Any, spark_cluster: SparkCluster, tmp_path: Path, seed: int, cases: int, kills: float) -> None:
    """The law with two and three partitions, and with one. TAILGATE_CLUSTER_CASES is the number of views."""
    law, number = DistributedLaw(session, tmp_path / "state", spark_cluster, kills), 1
    while law.cases < cases:
        law.world(seed, number)
        number += 1
    assert law.exact > 4 * law.cases, "most comparisons are to be of views without errors"
    assert bool(kills) == bool(Distributed.killed)
