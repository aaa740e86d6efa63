"""PAUSE, RESUME and RETRY of sources, PRINT and SHOW TOPICS, and the status of sources."""

from __future__ import annotations

import io
import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tailgate.formats import registry as schemas
from tailgate.lake.errors import TailgateError
from testing.engine_process import until
from tests.engine.runtime.test_topics import World

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

SCHEMA = {"type": "record", "name": "V", "fields": [{"name": "n", "type": "int"}]}


@pytest.fixture(scope="module")
def world(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("attending"), kafka)
    yield world
    world.engine.stop()


def encoded(id: int, record: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(dict(SCHEMA)), record)
    return struct.pack(">bI", 0, id) + out.getvalue()


def test_letters_are_retried_when_their_schema_is_there(world: World, tmp_path: Path) -> None:
    registry = Registry(tmp_path / "registry")
    registry.start()
    first = schemas.register(registry.url, {}, "retried-value", SCHEMA)
    world.kafka.create_topic("retried")
    world.source("retried", "retried", f"FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{registry.url}'")
    for id, n in ((first, 1), (first + 1, 2)):
        world.producer.produce("retried", encoded(id, {"n": n}))
    world.producer.produce("retried", b"never")
    world.producer.flush()
    until(lambda: len(world.rows("retried_dead_letters")) == 2)
    assert world.rows("retried_v") == [(1,)]
    other = {"type": "record", "name": "V", "fields": [*SCHEMA["fields"], {"name": "m", "type": ["null", "int"], "default": None}]}
    world.engine.stop()  # a process asks for a missing id again after ten seconds; a new process asks at once
    assert schemas.register(registry.url, {}, "other-value", {**other, "fields": SCHEMA["fields"], "doc": "another id"}) == first + 1
    world.engine.start()
    assert world.engine.execute("RETRY DEAD LETTERS OF retried")["tag"] == "RETRY 2"
    until(lambda: world.rows("retried_v") == [(1,), (2,)])
    (left,) = world.rows("retried_dead_letters")
    assert (left[2], left[5], left[7]) == (2, b"never", 2)
    registry.stop()


def test_a_paused_source_continues_at_its_position(world: World) -> None:
    world.kafka.create_topic("paused")
    world.source("paused", "paused", "FORMAT TEXT")
    world.source("twin", "paused", "FORMAT TEXT")
    with pytest.raises(TailgateError, match='source "twin" reads its topic together'):
        world.engine.execute("PAUSE SOURCE paused")
    world.send("paused", "before")
    until(lambda: world.rows("paused_v") == [("before",)])
    assert world.engine.execute("PAUSE SOURCE paused, twin")["tag"] == "PAUSE SOURCE"
    world.send("paused", "meanwhile")
    until(lambda: world.status("paused")["lag"] == 1)
    assert world.status("paused")["status"] == "paused"
    assert world.rows("paused_v") == [("before",)]
    world.engine.execute("RESUME SOURCE paused, twin")
    until(lambda: world.rows("paused_v") == [("before",), ("meanwhile",)])
    status = world.status("paused")
    assert (status["status"], status["lag"], status["last_error"]) == ("running", 0, None)
    assert status["bytes"] >= len("beforemeanwhile")
    assert status["last_message"] > 1_700_000_000_000


def test_a_source_that_fails_waits_for_resume(world: World) -> None:
    world.kafka.create_topic("strict")
    world.source("strict", "strict", "FORMAT JSON ON ERROR FAIL")
    world.send("strict", "{}")
    world.send("strict", "{")
    until(lambda: world.status("strict")["status"] == "failed")
    assert "offset 1: invalid input syntax for type json" in world.status("strict")["error"]
    world.engine.execute("RESUME SOURCE strict")
    until(lambda: world.status("strict")["status"] == "failed")
    world.send("paused", "goes on")
    until(lambda: ("goes on",) in world.rows("paused_v"))
    world.engine.execute("DROP SOURCE strict CASCADE")


def test_looking_into_topics(world: World) -> None:
    world.kafka.create_topic("seen", partitions=2)
    world.engine.execute(f"CREATE SOURCE seen_source FROM KAFKA BROKER '{world.kafka.address}' TOPIC 'seen' FORMAT TEXT")
    now = int(time.time() * 1000)  # the broker removes records with old timestamps
    for n in range(3):
        world.producer.produce("seen", json.dumps({"n": n}), key=b"\xff", partition=0, timestamp=now + n)
    world.producer.flush()
    lines = world.engine.execute("PRINT 'seen' FROM BEGINNING LIMIT 2")["lines"]
    assert lines[0] == f'timestamp: {now}, key: \\xff, value: {{"n": 0}}, partition: 0, offset: 0'
    assert len(lines) == 2
    assert world.engine.execute("PRINT 'seen' LIMIT 1")["lines"][0].endswith("offset: 2")
    assert "seen\t2\t1\t3" in world.engine.execute("SHOW TOPICS")["lines"]
    with pytest.raises(TailgateError, match='topic "nowhere" does not exist'):
        world.engine.execute("PRINT 'nowhere'")
