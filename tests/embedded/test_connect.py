"""Tests connectors of ksqlDB with a real worker of Kafka Connect, the connectors for files, Kafka and a registry."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient

from tailgate.embedded.connect import Connect
from tailgate.embedded.connect_options import ConnectOptions
from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tailgate.engine.ddl.ksqldb import Endpoints
from tailgate.engine.runtime.connect import Connectors
from tailgate.lake.errors import DuplicateObject, InvalidParameterValue, UndefinedObject
from tailgate.sql.ksqldb.parser import parse
from testing.engine_process import until

ROOT = Path(__file__).parents[2]
PLUGINS = ROOT / ".jars" / "plugins"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


@pytest.fixture(scope="module")
def worker(kafka: Kafka, registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connect]:
    server = Connect(tmp_path_factory.mktemp("connect"), kafka.address, registry.url, ConnectOptions(PLUGINS))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def connectors(worker: Connect) -> Connectors:
    return Connectors(Endpoints(connect=worker.url))


def run(connectors: Connectors, text: str) -> list[str]:
    return connectors.change(parse(text))  # type: ignore[arg-type]


def creation(name: str, file: Path, topic: str, direction: str = "SOURCE", more: str = "") -> str:
    return (
        f"CREATE {direction} CONNECTOR {more} {name} WITH ('connector.class' = 'FileStreamSource', 'file' = '{file}', 'topic' = '{topic}',"
        " 'tasks.max' = 1, 'sasl.password' = 'guarded')"
    )


def first_record(kafka: Kafka, topic: str, count: int = 1) -> bytes:
    """Returns the last one of the first records of a topic."""
    consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": "never joined", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    deadline = time.monotonic() + 60
    while len(values) < count and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and not message.error():
            values.append(message.value() or b"")
    consumer.close()
    assert len(values) >= count
    return values[count - 1]


def test_a_connector_writes_avro_with_the_registry(connectors: Connectors, kafka: Kafka, registry: Registry, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("one\n")
    assert run(connectors, creation("lines", file, "connect-lines")) == []
    value = first_record(kafka, "connect-lines")
    with SchemaRegistryClient({"url": registry.url}) as client:
        assert client.get_latest_version("connect-lines-value").schema_id == int.from_bytes(value[1:5], "big")
    assert value[5:] == b"\x06one"

    def listed() -> dict[str, Any]:
        (connector,) = connectors.shown("source connectors", "")["connectors"]
        return dict(connector)

    expected = {"name": "LINES", "type": "source", "className": "FileStreamSource", "state": "RUNNING (1/1 tasks RUNNING)"}
    until(lambda: listed() == expected)
    assert connectors.shown("sink connectors", "")["connectors"] == []
    described = connectors.shown("describe connector", "LINES")
    assert described["status"]["connector"]["state"] == "RUNNING"
    assert described["status"]["tasks"][0]["state"] == "RUNNING"
    assert described["topics"] == ["connect-lines"]

    with pytest.raises(DuplicateObject, match="Connector LINES already exists"):
        run(connectors, creation("lines", file, "connect-lines"))
    assert run(connectors, creation("lines", file, "connect-lines", more="IF NOT EXISTS")) == ["Connector LINES already exists, skipping"]
    assert run(connectors, "DROP CONNECTOR lines") == []
    with pytest.raises(UndefinedObject, match="Connector LINES does not exist"):
        run(connectors, "DROP CONNECTOR lines")
    assert run(connectors, "DROP CONNECTOR IF EXISTS lines") == ["Connector LINES does not exist, skipping"]
    with pytest.raises(UndefinedObject):
        connectors.shown("describe connector", "LINES")


@pytest.mark.long
def test_a_connector_survives_a_kill_and_repeats_nothing(worker: Connect, connectors: Connectors, kafka: Kafka, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("one\n")
    run(connectors, creation("kept", file, "connect-kept"))
    assert first_record(kafka, "connect-kept")[5:] == b"\x06one"
    worker._child.kill()  # type: ignore[union-attr]
    worker.start()
    with file.open("a") as more:
        more.write("two\n")
    assert first_record(kafka, "connect-kept", 2)[5:] == b"\x06two"
    run(connectors, "DROP CONNECTOR kept")


def test_errors_have_no_passwords(connectors: Connectors, tmp_path: Path) -> None:
    text = creation("bad", tmp_path, "t").replace("'tasks.max' = 1", "'tasks.max' = 'guarded'")
    with pytest.raises(InvalidParameterValue, match=r"Invalid value \*{8} for configuration tasks\.max") as error:
        run(connectors, text)
    assert "guarded" not in error.value.message
    with pytest.raises(UndefinedObject, match=r'connector class "no\.such" is not installed'):
        run(connectors, "CREATE SINK CONNECTOR c WITH ('connector.class' = 'no.such')")
    with pytest.raises(InvalidParameterValue, match=r'has no property "connector\.class"'):
        run(connectors, "CREATE SINK CONNECTOR c WITH ('a' = 'b')")


def test_plugins(connectors: Connectors) -> None:
    plugins = connectors.shown("connector plugins", "")["connectorsPlugins"]
    assert [(p["className"], p["type"]) for p in plugins if "file" in p["className"]] == [
        ("org.apache.kafka.connect.file.FileStreamSinkConnector", "sink"),
        (SOURCE, "source"),
    ]
