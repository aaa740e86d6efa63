"""Malformed records are dead letters, and a failing expression is an error of its view only.

A service that does not answer stalls only its sources.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tailgate.examples.shop.load import USERS, Load
from tailgate.lake.errors import TailgateError
from tailgate.lake.folder import Lake
from tailgate.lake.readers import reading
from testing.engine_process import EngineProcess, rows, until

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


class World:
    """An engine with a separate Kafka and registry."""

    def __init__(self, folder: Path, kafka: Kafka) -> None:
        self.kafka, self.registry = kafka, Registry(folder / "registry")
        self.registry.start()
        self.engine = EngineProcess(folder / "lake")
        self.engine.start()
        self.lake = Lake(folder / "lake")
        self.producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 0, "log_level": 2})

    def send(self, topic: str, value: bytes | None, key: bytes | None = None) -> None:
        self.producer.produce(topic, value, key)
        self.producer.flush()

    def source(self, name: str, rest: str) -> None:
        self.kafka.create_topic(name)
        self.engine.execute(f"CREATE SOURCE {name} FROM KAFKA BROKER '{self.kafka.address}' TOPIC '{name}' {rest}")

    def rows(self, name: str) -> dict[tuple[Any, ...], int]:
        return dict(rows(self.lake, name))

    def letters(self, source: str) -> list[str]:
        return [row[6] for row in rows(self.lake, f"{source}_dead_letters")]

    def error(self, view: str) -> TailgateError | None:
        return reading.error(self.lake, self.lake.catalog().relation(view))


@pytest.fixture(scope="module")
def world(module_kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("bad-input"), module_kafka)
    yield world
    world.engine.stop()
    world.registry.stop()


def test_malformed_json_is_a_dead_letter_and_the_stream_continues(world: World) -> None:
    world.source("events", "FORMAT JSON")
    world.engine.execute("CREATE MATERIALIZED VIEW kinds AS SELECT data->>'kind' AS kind, count(*) AS n FROM events GROUP BY 1")
    world.send("events", b'{"kind": "a"}')
    world.send("events", b'{"kind": ')
    world.send("events", b"\xff\xfe")
    world.send("events", b'{"kind": "a"}')
    until(lambda: world.rows("kinds") == {("a", 2): 1})
    until(lambda: len(world.letters("events")) == 2)
    until(lambda: world.engine.get("/status")["sources"]["events"]["dead_letters"] == 2)


def test_a_null_key_where_one_is_needed(world: World) -> None:
    world.source("names", "KEY FORMAT TEXT VALUE FORMAT TEXT ENVELOPE UPSERT")
    world.send("names", b"Ann", b"1")
    world.send("names", b"nobody", None)
    world.send("names", b"Bea", b"2")
    world.send("names", None, b"1")
    until(lambda: world.rows("names") == {("2", "Bea"): 1})
    assert world.letters("names") == ["null key"]


def test_malformed_avro_and_an_unknown_schema(world: World) -> None:
    load = Load(world.kafka.address, world.registry.url, rate=0, users=3)
    load.prepare()
    world.engine.execute(
        f"CREATE SOURCE users FROM KAFKA BROKER '{world.kafka.address}' TOPIC '{USERS}' "
        f"FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{world.registry.url}' ENVELOPE DEBEZIUM"
    )
    until(lambda: len(world.rows("users")) == 3)
    key = struct.pack(">bI", 0, 1) + b"\x02"
    world.send(USERS, b"no Avro", key)
    world.send(USERS, struct.pack(">bI", 0, 4711) + b"\x00", key)
    until(lambda: len(world.letters("users")) == 2)
    assert any("4711" in reason for reason in world.letters("users"))
    assert len(world.rows("users")) == 3


def test_a_row_that_fails_is_an_error_of_that_view_alone(world: World) -> None:
    world.source("numbers", "FORMAT JSON")
    world.engine.execute("CREATE MATERIALIZED VIEW shares AS SELECT 100 / (data->>'n')::int AS share FROM numbers")
    world.engine.execute("CREATE MATERIALIZED VIEW numbered AS SELECT count(*) AS n FROM numbers")
    for n in (5, 0, 10):
        world.send("numbers", json.dumps({"n": n}).encode())
    until(lambda: world.rows("numbered") == {(3,): 1})
    error = world.error("shares")
    assert error is not None
    assert (error.sqlstate, error.message) == ("22012", "division by zero")
    assert world.error("numbered") is None
    views = world.engine.get("/status")["views"]
    assert views["shares"] == {"status": "failing", "error": "division by zero (22012)", "rows": None, "percent": None}
    assert views["numbered"] == {"status": "running", "error": None, "rows": None, "percent": None}
    world.engine.execute("CREATE MATERIALIZED VIEW half_shares AS SELECT share / 2 AS half FROM shares")
    until(lambda: world.error("half_shares") is not None)  # a view also has the errors of its inputs


def test_a_registry_that_does_not_answer_stalls_its_sources_only(world: World) -> None:
    world.source("clicks", "FORMAT JSON")
    world.engine.execute("CREATE MATERIALIZED VIEW clicked AS SELECT count(*) AS n FROM clicks")
    registry = Registry(world.lake.path.parent / "other-registry")
    registry.start()
    load = Load(world.kafka.address, registry.url, rate=0, users=2)
    world.kafka.create_topic("people")
    world.engine.execute("DROP SOURCE IF EXISTS users CASCADE")
    load.prepare()
    world.engine.execute(
        f"CREATE SOURCE people FROM KAFKA BROKER '{world.kafka.address}' TOPIC '{USERS}' "
        f"FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{registry.url}' ENVELOPE DEBEZIUM"
    )
    until(lambda: len(world.rows("people")) >= 2)
    world.engine.stop()
    registry.stop()
    world.engine.start()
    load.prepare()
    world.send("clicks", b"{}")
    until(lambda: world.rows("clicked") == {(1,): 1})
    until(lambda: world.engine.get("/status")["sources"]["people"]["status"] == "stalled")
    world.send("clicks", b"{}")
    until(lambda: world.rows("clicked") == {(2,): 1})
    registry.start()
    until(lambda: world.engine.get("/status")["sources"]["people"]["status"] == "running")


def test_a_lost_broker_stalls_its_sources_until_it_returns(world: World, tmp_path: Path) -> None:
    other = Kafka(tmp_path / "kafka")
    other.start()
    other.create_topic("far")
    world.source("near", "FORMAT TEXT")
    world.engine.execute(f"CREATE SOURCE far FROM KAFKA BROKER '{other.address}' TOPIC 'far' FORMAT TEXT")
    world.engine.execute("CREATE MATERIALIZED VIEW nears AS SELECT count(*) AS n FROM near")
    world.engine.execute("CREATE MATERIALIZED VIEW fars AS SELECT count(*) AS n FROM far")
    other.stop()
    world.send("near", b"x")
    until(lambda: world.engine.get("/status")["sources"]["far"]["status"] == "stalled")
    until(lambda: world.rows("nears") == {(1,): 1})
    other.start()
    until(lambda: world.engine.get("/status")["sources"]["far"]["status"] == "running")
    producer = Producer({"bootstrap.servers": other.address, "log_level": 2})
    producer.produce("far", b"y")
    producer.flush()
    until(lambda: world.rows("fars") == {(1,): 1})
    world.engine.execute("DROP SOURCE far CASCADE")
    other.stop()


def test_statements_that_are_refused(world: World) -> None:
    with pytest.raises(TailgateError) as refused:
        world.engine.execute("CREATE SOURCE nowhere FROM KAFKA BROKER '127.0.0.1:9' TOPIC 'x' FORMAT BYTES")
    assert refused.value.sqlstate == "08006"
    with pytest.raises(TailgateError) as refused:
        world.engine.execute(f"CREATE SOURCE nothing FROM KAFKA BROKER '{world.kafka.address}' TOPIC 'absent' FORMAT BYTES")
    assert refused.value.sqlstate == "42704"


def test_a_constant_that_fails(world: World) -> None:
    world.source("constants", "FORMAT TEXT")
    with pytest.raises(TailgateError) as refused:
        world.engine.execute("CREATE MATERIALIZED VIEW never AS SELECT length(text) / (1 - 1) AS x, 5 / (2 * 0) AS y FROM constants")
    assert refused.value.sqlstate == "22012"
    assert world.lake.catalog().find("never") is None
