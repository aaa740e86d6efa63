"""Tests NOTIFY KAFKA: each notification is in the topic once, also if the process is killed at any step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import Consumer, TopicPartition

from tailgate.embedded.kafka import Kafka
from tailgate.lake.folder import Lake
from tailgate.lake.host import crash
from tailgate.operations.watch import alert_items, main, states
from tailgate.operations.watch.alerts import Condition, Event
from tailgate.operations.watch.delivery import Deliverer
from tailgate.operations.watch.notifications import Writer
from tailgate.operations.watch.targets import topics
from tailgate.operations.watch.targets.topics import Topic
from testing.engine_process import until
from tests.chaos.forgetting import forgetting
from tests.wire.live import Live

pytestmark = pytest.mark.kafka
STALLED = Condition("source_stalled", "orders", "page", "source orders is stalled", "Look.")
COUNT = 4
# a process that delivers all notifications of a lake to a topic
DELIVER = """
import sys, time
from tailgate.lake.folder import Lake
from tailgate.operations.watch.delivery import Deliverer
from tailgate.operations.watch.targets.topics import Topic
path, brokers, topic, newest = sys.argv[1:]
lake = Lake(path)
deliverer = Deliverer(lake, Topic(topic, brokers, lake.id, dict, lambda notification: True, "7"), 0)
deliverer.start()
while deliverer.position < int(newest):
    time.sleep(0.01)
deliverer.end()
deliverer.join()
"""


def committed(kafka: Kafka, topic: str) -> list[dict[str, Any]]:
    """Returns the messages of the topic that its readers see."""
    consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": "reader", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    bodies: list[dict[str, Any]] = []
    try:
        while (message := consumer.poll(20)) is not None and message.error() is None:
            bodies.append(json.loads(message.value() or b""))
        return bodies
    finally:
        consumer.close()


@pytest.mark.parametrize("point", ["watch.produced", "watch.positioned", "watch.committed"])
@pytest.mark.parametrize("count", [1, 3])
def test_a_process_that_is_killed(kafka: Kafka, tmp_path: Path, point: str, count: int) -> None:
    lake = Lake.create(tmp_path / "lake")
    writer = Writer(lake)
    for _ in range(COUNT):
        writer.append(Event("fired", STALLED))
    topic = f"alerts.{point}.{count}"
    command = [sys.executable, "-c", DELIVER, str(lake.path), kafka.address, topic, str(COUNT)]
    killed = subprocess.run(command, env={**os.environ, "TAILGATE_CRASH": f"{point}:{count}"}, timeout=60, check=False)
    assert killed.returncode == -9
    assert subprocess.run(command, timeout=60, check=False).returncode == 0
    writer.close()
    assert [body["id"] for body in committed(kafka, topic)] == list(range(1, COUNT + 1))


def test_a_position_that_was_not_written(kafka: Kafka, tmp_path: Path) -> None:
    """The topic has the position, too, so that nothing is repeated."""
    lake = Lake.create(tmp_path / "lake")
    writer = Writer(lake)
    topic = Topic("alerts.positions", kafka.address, lake.id, dict, lambda notification: True, "7")
    for _ in range(2):
        writer.append(Event("fired", STALLED))
        deliverer = Deliverer(lake, topic, 0)
        deliverer.position = 0
        deliverer.start()
        until(partial(lambda started: started.position == writer.newest, deliverer), 30)
        deliverer.end()
        deliverer.join(10)
    writer.close()
    assert [body["id"] for body in committed(kafka, "alerts.positions")] == [1, 2]


def test_a_transaction_that_a_killed_broker_has_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator's last records are lost, and those of the transaction are not. No timeout ends it, but the next producer does."""
    lake = Lake.create(tmp_path / "lake")
    writer, kafka = Writer(lake), Kafka(tmp_path / "kafka")
    first, second = (writer.append(Event("fired", STALLED)) for _ in range(2))
    writer.close()

    def killed(point: str) -> None:
        if point == "watch.positioned":
            raise RuntimeError("killed")

    kafka.start()
    topic = Topic("alerts", kafka.address, lake.id, dict, lambda notification: True, "7")
    try:
        until(lambda: topic.send(first) is None, 30)
        with forgetting(kafka), monkeypatch.context() as patch:
            patch.setattr(crash, "point", killed)
            with pytest.raises(RuntimeError):
                topic.send(second)
        topic.close()
        until(lambda: topic.send(second) is None, 60)
        assert [body["id"] for body in committed(kafka, "alerts")] == [1, 2]
    finally:
        topic.close()
        kafka.stop()


def test_an_alert(kafka: Kafka, live: Live, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, seconds in ((states, "QUIET_S", 0.1), (main, "POLL_S", 0.05), (alert_items, "ASK_S", 0.05)):
        monkeypatch.setattr(module, name, seconds)
    watcher = main.Watcher(live.model.lake, [])
    watcher_thread = threading.Thread(target=watcher.run)
    watcher_thread.start()
    try:
        query = "SELECT id FROM v WHERE id = 77"
        sql.execute(f"CREATE ALERT sent AS {query} NOTIFY KAFKA BROKER '{kafka.address}' TOPIC 'alerts.sent'".encode())
        assert sql.execute("SHOW ALERTS").fetchall() == [("sent", None, "page", 0, 0, 0, 1)]
        live.tick([((77, "a", 1.0), 1)])
        until(lambda: watcher.newest and not any(watcher.undelivered().values()), 30)
        live.tick([((77, "a", 1.0), -1)])
        until(lambda: [body["event"] for body in committed(kafka, "alerts.sent")] == ["fired", "resolved"], 30)
    finally:
        watcher.stop()
        watcher_thread.join(30)


def test_brokers_that_do_not_answer(live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "CALL_S", 0.5)
    writer = Writer(live.model.lake)
    notification = writer.append(Event("fired", STALLED))
    writer.close()
    topic = Topic("alerts", "127.0.0.1:9", live.model.lake.id, dict, lambda notification: True, "7")
    assert topic.send(notification)
