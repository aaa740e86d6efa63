"""State that is missing, or of another planner: views are backfilled in order, and sources stay."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tailgate.cli import main
from tailgate.embedded.kafka import Kafka
from tailgate.lake.catalog import Change
from tailgate.lake.folder import Lake
from tailgate.lake.readers import reading
from tailgate.lake.writer.log_writer import open_epoch
from testing.engine_process import EngineProcess, rows, until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

WAIT_S = 180.0  # for an engine start and the rebuild; takes seconds on an idle machine


class World:
    """An engine with keyed users, append-only clicks and views, and a model of the rows."""

    def __init__(self, folder: Path, kafka: Kafka) -> None:
        self.lake_folder, self.kafka = folder / "lake", kafka
        self.engine = EngineProcess(self.lake_folder)
        self.engine.start()
        self.lake = Lake(self.lake_folder)
        self.producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 0, "log_level": 2})
        self.users: dict[str, str] = {}
        self.views: list[str] = []
        for topic in ("users", "clicks"):
            kafka.create_topic(topic)
        at = f"FROM KAFKA BROKER '{kafka.address}' TOPIC"
        self.engine.execute(f"CREATE SOURCE users {at} 'users' KEY FORMAT TEXT VALUE FORMAT JSON ENVELOPE UPSERT")
        self.engine.execute(f"CREATE SOURCE clicks {at} 'clicks' FORMAT JSON")
        self.change()
        self.engine.execute(
            "CREATE MATERIALIZED VIEW by_city AS SELECT u.data->>'city' AS city, count(*) AS n FROM users u "
            "JOIN clicks c ON c.data->>'user' = u.key0 GROUP BY 1"
        )
        self.engine.execute("CREATE VIEW cities AS SELECT city, n FROM by_city WHERE n > 0")
        self.engine.execute("CREATE MATERIALIZED VIEW doubled AS SELECT city, n * 2 AS n FROM cities")
        self.engine.execute("CREATE MATERIALIZED VIEW sizes AS SELECT n, count(*) AS cities FROM doubled GROUP BY n")

    def change(self) -> None:
        """Sends more clicks, moves users to other cities, and deletes one."""
        turn = len(self.views)
        for i in range(6):
            self.users[f"u{i}"] = f"city {(i + turn) % 3}"
            self.send("users", json.dumps({"city": self.users[f"u{i}"]}), f"u{i}")
            for _ in range(i + 1):
                self.views.append(f"u{i}")
                self.send("clicks", json.dumps({"user": f"u{i}"}))
        self.send("users", None, "u5")
        self.send("clicks", '{"broken')
        del self.users["u5"]
        self.producer.flush()

    def send(self, topic: str, value: str | None, key: str | None = None) -> None:
        self.producer.produce(topic, value, key)

    def expected(self) -> dict[str, dict[tuple[Any, ...], int]]:
        cities: dict[str, int] = {}
        for user in self.views:
            if user in self.users:
                cities[self.users[user]] = cities.get(self.users[user], 0) + 1
        sizes: dict[int, int] = {}
        for n in cities.values():
            sizes[2 * n] = sizes.get(2 * n, 0) + 1
        return {
            "users": {(k, json.dumps({"city": c})): 1 for k, c in self.users.items()},
            "by_city": dict.fromkeys(cities.items(), 1),
            "doubled": {(c, 2 * n): 1 for c, n in cities.items()},
            "sizes": dict.fromkeys(sizes.items(), 1),
        }

    def equal(self) -> bool:
        actual = {name: dict(rows(self.lake, name)) for name in self.expected()}
        catalog = self.lake.catalog()
        failing = [reading.error(self.lake, catalog.relation(name)) for name in ("by_city", "doubled", "sizes")]
        return actual == self.expected() and failing == [None] * 3 and not catalog.replacements()

    def log(self) -> str:
        return (self.lake_folder.parent / "engine.log").read_text()


@pytest.fixture(scope="module")
def world(module_kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("rebuilding"), module_kafka)
    yield world
    world.engine.stop()


def check_continues(world: World) -> None:
    """Checks the views after the start, and after more changes."""
    until(world.equal, WAIT_S)
    world.change()
    until(world.equal, WAIT_S)
    letters = rows(world.lake, "clicks_dead_letters")
    assert letters
    assert set(letters.values()) == {1}


def test_the_state_folder_is_gone(world: World) -> None:
    until(world.equal, WAIT_S)
    world.engine.stop()
    shutil.rmtree(world.lake_folder / "state")
    world.engine.start()
    check_continues(world)
    assert "all state is made again" in world.log()


def test_a_file_of_the_state_is_damaged_by_a_kill(world: World) -> None:
    until(world.equal, WAIT_S)
    world.engine.kill(jvm=True)
    for path in (world.lake_folder / "state").rglob("*.changelog"):
        path.write_bytes(path.read_bytes()[:7])
    for path in (world.lake_folder / "state").rglob("*.zip"):
        path.unlink()
    world.engine.start(crash="catalog.entry:1")  # the engine is killed while it rebuilds the state
    world.engine.died()
    world.engine.start()
    check_continues(world)


def test_digests_of_another_planner(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the lowest view has another digest.

    It and all its dependents are backfilled and switch at one time. Until then they are readable as they were.
    """
    until(world.equal, WAIT_S)
    world.engine.stop()
    writer = open_epoch(world.lake)
    item = writer.catalog.relation("by_city")
    other = tuple(("another planner's", node) for _, node in item.nodes)
    writer.append(kind="catalog", catalog=Change(put=(replace(item, nodes=other),)))
    n = writer.newest.n
    writer.close()
    assert main(["check", "--data", str(world.lake_folder)]) == 1
    reported = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in reported[:-1]] == ["public.by_city", "public.doubled", "public.sizes"]
    assert "plans it differently" in reported[0]
    assert "reads a view" in reported[2]
    world.engine.start()
    check_continues(world)
    assert main(["check", "--data", str(world.lake_folder)]) == 0
    changes = [e.header for e in world.lake.log.after(n) if e.header.catalog is not None]
    start_change, switched = (h.catalog for h in changes)
    assert start_change is not None
    assert switched is not None
    errors = {s.relation for s in changes[0].relations}
    assert errors.isdisjoint(i.errors for i in start_change.put)  # no reader gets an error
    assert {i.name for i in start_change.put if i.replaces} == {"by_city", "doubled", "sizes"}
    assert {i.name for i in switched.put} == {"by_city", "doubled", "sizes"}
    relations = {s.relation for s in changes[1].relations}
    assert world.lake.catalog().relation("by_city").id not in relations  # no rows changed for readers
