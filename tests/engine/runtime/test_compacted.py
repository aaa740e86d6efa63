"""Views created before and after a topic was compacted have different rows.

They do not share operators.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

import tailgate.embedded.kafka
from tailgate.embedded.kafka import Kafka
from tailgate.engine.runtime.kafka import requests as asked
from tailgate.lake.tables import checkpoints
from testing.engine_process import until
from tests.engine.runtime.test_topics import World

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]


def test_views_of_a_compacted_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tailgate.embedded.kafka.SETTINGS, "log.cleaner.backoff.ms", 100)
    kafka = Kafka(tmp_path / "kafka")
    kafka.start()
    world = World(tmp_path, kafka)
    kafka.create_topic("compacted", settings={"segment.ms": "100", "min.cleanable.dirty.ratio": "0.001", "max.compaction.lag.ms": "100"})
    world.engine.execute(f"CREATE SOURCE compacted FROM KAFKA BROKER '{kafka.address}' TOPIC 'compacted' FORMAT TEXT")
    world.engine.execute("CREATE MATERIALIZED VIEW first AS SELECT count(*) AS n FROM compacted")
    for n in range(3):
        world.send("compacted", f"{n}", key="same")
    until(lambda: world.rows("first") == [(3,)])
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "compacted", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": kafka.address})  # must exist until the result is there
    admin.incremental_alter_configs([resource])[resource].result(30)
    time.sleep(0.2)  # a later record starts a new segment; only older segments are compacted
    world.send("compacted", "last", key="other")

    def held() -> list[bytes | None]:
        return [r.value for r in asked.history(kafka.address, "compacted", {"0": 0}, {"0": 4}, {})]

    until(lambda: held() == [b"2", b"last"])
    world.engine.execute("CREATE MATERIALIZED VIEW second AS SELECT count(*) AS n FROM compacted")
    world.engine.execute("CREATE MATERIALIZED VIEW third AS SELECT count(*) AS n FROM compacted")
    assert [world.rows(v) for v in ("first", "second", "third")] == [[(4,)], [(2,)], [(2,)]]
    nodes = {v: world.lake.catalog().relation(v).nodes for v in ("first", "second", "third")}
    assert nodes["first"][0][0] == nodes["second"][0][0]  # equal digests
    assert nodes["first"] != nodes["second"] == nodes["third"]
    world.send("compacted", "more", key="more")
    until(lambda: [world.rows(v) for v in ("first", "second", "third")] == [[(5,)], [(3,)], [(3,)]])
    newest = world.lake.log.newest()
    assert newest is not None

    def followed() -> bool:
        checkpoint = checkpoints.newest(world.lake)
        return checkpoint is not None and min(checkpoint.positions.values()) >= newest.n

    until(followed)
    world.engine.stop()
    kafka.stop()
