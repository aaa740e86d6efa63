"""Readers join and leave between two ticks, and no other reader is interrupted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tailgate.embedded.kafka import Kafka
from tailgate.engine.runtime.kafka.readers import readers
from tailgate.lake.errors import ConnectionFailure
from testing.engine_process import until
from tests.engine.runtime.inside import Inside

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


class World:
    """An engine in this process, and sources of own topics."""

    def __init__(self, session: Any, folder: Path, kafka: Kafka) -> None:
        self.kafka, self._prefix = kafka, f"{folder.name}-"
        self.producer = Producer({"bootstrap.servers": self.kafka.address})
        self.inside = Inside(session, folder / "lake")

    def topic(self, source: str) -> str:
        return self._prefix + source

    def source(self, name: str, options: str = "") -> None:
        """Creates a topic, a source of it, and a view of the source."""
        self.kafka.create_topic(self.topic(name))
        at = f"KAFKA BROKER '{self.kafka.address}' TOPIC '{self.topic(name)}'"
        self.inside.execute(f"CREATE SOURCE {name} FROM {at} {options} FORMAT TEXT")
        self.inside.execute(f"CREATE MATERIALIZED VIEW {name}_v AS SELECT text FROM {name}")

    def send(self, source: str, *texts: str) -> None:
        for text in texts:
            self.producer.produce(self.topic(source), text.encode())
        self.producer.flush()

    def texts(self, name: str) -> list[str]:
        return sorted(row[0] for row in self.inside.rows(f"{name}_v").elements())

    def opened(self) -> dict[str, int]:
        """Returns the identity of each connected reader, by the sources that it reads."""
        connections = self.inside.engine.inputs._connections
        return {",".join(t.removeprefix(self._prefix) for t in c.reader.topics): id(c) for c in list(connections.values())}

    def connected(self, *sources: str) -> dict[str, int]:
        """Waits until exactly these groups of sources are read. Returns the readers' identities."""
        until(lambda: sorted(self.opened()) == sorted(sources))
        return self.opened()


@pytest.fixture
def world(session: Any, tmp_path: Path, kafka: Kafka) -> Iterator[World]:
    world = World(session, tmp_path, kafka)
    yield world
    world.inside.end()


LIMITED = "WITH (max_records_per_second = 1000)"  # a source with a rate has its own reader


def test_a_reader_joins_and_leaves_alone(world: World) -> None:
    world.source("a", LIMITED)
    first = world.connected("a")
    world.send("a", "1")
    world.source("b", LIMITED)
    world.send("b", "2")
    both = world.connected("a", "b")
    assert both["a"] == first["a"], "CREATE SOURCE has interrupted another source"
    until(lambda: (world.texts("a"), world.texts("b")) == (["1"], ["2"]))
    world.inside.execute("PAUSE SOURCE b")
    assert world.connected("a") == first
    world.send("a", "3")
    world.send("b", "4")
    until(lambda: world.texts("a") == ["1", "3"])
    assert world.texts("b") == ["2"]
    world.inside.execute("RESUME SOURCE b")
    until(lambda: world.texts("b") == ["2", "4"])
    world.inside.execute("DROP SOURCE b CASCADE")
    assert world.connected("a") == first
    assert not any(world.topic("b") in topics for topics in world.inside.engine.newest.offsets.values())


def test_a_reader_gets_more_topics_and_loses_none_of_its_records(world: World) -> None:
    world.source("a")
    world.connected("a")
    world.send("a", *map(str, range(100)))
    world.source("b")
    world.send("a", *map(str, range(100, 200)))
    world.send("b", "first")
    world.connected("a,b")
    world.send("a", *map(str, range(200, 300)))
    until(lambda: world.texts("a") == sorted(map(str, range(300))))
    until(lambda: world.texts("b") == ["first"])


def test_a_source_with_a_rate_advances_beside_a_busy_one(world: World) -> None:
    world.source("slow", LIMITED)
    world.source("busy")
    world.connected("slow", "busy")
    done = threading.Event()

    def load() -> None:
        while not done.wait(0.002):
            world.send("busy", "x")

    thread = threading.Thread(target=load)
    thread.start()
    try:
        for n in range(10):
            world.send("slow", str(n))
            until(lambda n=n: len(world.texts("slow")) == n + 1)  # type: ignore[misc]
    finally:
        done.set()
        thread.join()


def test_a_tick_without_an_entry_is_repeated_from_the_same_positions(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.source("a")
    world.connected("a")
    runner, failed = world.inside.engine.runner, []
    commit = runner._commit

    def failing(*args: Any) -> None:
        if len(failed) < 3 and args[3]:  # the changes
            failed.append(args[2])  # the ends
            raise OSError("no entry")
        commit(*args)

    monkeypatch.setattr(runner, "_commit", failing)
    world.send("a", "1", "2", "3")
    until(lambda: world.texts("a") == ["1", "2", "3"])
    assert len(failed) == 3


def test_a_reader_that_fails_is_stalled_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.source("a", LIMITED)
    world.source("b", LIMITED)
    first = world.connected("a", "b")
    health = world.inside.engine.health
    name = next(c.reader.name for c in world.inside.engine.inputs._connections.values() if c.reader.topics == (world.topic("b"),))
    look = health.look

    def unreachable(reader: Any) -> Any:
        if reader.name == name:
            raise ConnectionFailure("the broker of b does not answer")
        return look(reader)

    with monkeypatch.context() as patched:
        patched.setattr(health, "look", unreachable)
        patched.setattr(health, "_works", lambda *args: False)
        with world.inside.engine.boundary:
            world.inside.engine.inputs._loop.remove(name)  # as the loop does
        world.inside.engine.inputs.failed(name, RuntimeError("no fetch"))
        until(lambda: name in health.stalls)
        assert world.connected("a") == {"a": first["a"]}
        assert health.stalls[name].error == "the broker of b does not answer"
        reader = next(r for r in readers(health.sources, world.inside.engine.catalog) if r.name == name)
        health.examine(reader, "no fetch")  # its reconnection may have stalled it before
        assert health.stalls[name].error == "the broker of b does not answer"
        world.send("a", "goes on")
        world.send("b", "later")
        until(lambda: world.texts("a") == ["goes on"])
    until(lambda: world.texts("b") == ["later"])
    assert name not in health.stalls
