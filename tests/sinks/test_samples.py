"""Sinks over relations of the schema `tailgate`, over a real gateway, broker and log; the engine executes statements without Spark."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer

from tailgate.embedded.kafka import Kafka
from tailgate.gateway.execute.monitoring import sink_queries
from tailgate.lake.catalog import Sink
from tailgate.lake.folder import Lake
from tailgate.lake.readers import holds
from tailgate.operations.sketch import STEP_S
from tailgate.operations.watch import history
from tailgate.operations.watch.history import SETTLE_S, Recorder
from tailgate.sinks import progress
from tailgate.sinks.main import Sinks
from tailgate.sinks.samples import sampler
from tests.sinks.feed import Process, copy, records, until
from tests.sinks.running import Running
from tests.wire.live import Live
from tests.wire.statements import Statements

KEYED = "KEY (schema, name) NOT ENFORCED FORMAT JSON ENVELOPE UPSERT"
FRESHNESS = "SELECT * FROM tailgate.freshness"


class World:
    """A gateway, a connection to it, and sinks. `address`: of the broker."""

    def __init__(self, path: Path, address: str, topic: str) -> None:
        self.live, self.address, self.topic = Live(path), address, topic
        self._statements = Statements(self.live)
        self.lake: Lake = self.live.model.lake
        self.sql = psycopg.connect(self.live.dsn, autocommit=True)

    def close(self) -> None:
        self.sql.close()
        self._statements.stop()
        self.live.close()

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self.sql.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    def create_sink(self, source: str, what: str = KEYED, name: str = "s") -> int:
        """Creates a sink and returns its id."""
        self.run(f"CREATE SINK {name} FROM {source} INTO KAFKA BROKER '{self.address}' TOPIC '{self.topic}' {what}")
        (sink,) = (item for item in self.lake.catalog().each(Sink) if item.name == name)
        return sink.id

    def events(self) -> list[tuple[Any, Any]]:
        """Returns the keys and the values in the topic."""
        return [(None if k is None else json.loads(k), None if v is None else json.loads(v)) for k, v in records(self.address, self.topic)]

    def shown(self) -> dict[str, Any]:
        """Returns the rows that the topic has, by name. Each event changes a row."""
        rows: dict[str, Any] = {}
        for key, value in self.events():
            assert rows.get(key["name"]) != value
            if value is None:
                del rows[key["name"]]
            else:
                rows[key["name"]] = value
        return rows

    def shows(self, query: str = FRESHNESS) -> bool:
        """Returns whether the topic has the rows of a query."""
        rows = [row for (row,) in self.run(f"SELECT row_to_json(q) FROM ({query}) q")]
        return sorted(self.shown().values(), key=lambda row: str(row["name"])) == sorted(rows, key=lambda row: str(row["name"]))


@pytest.fixture
def world(tmp_path: Path, kafka: Kafka, topic: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(sampler, "SAMPLE_S", 0.1)
    world = World(tmp_path / "lake", kafka.address, topic)
    yield world
    world.close()


@pytest.fixture
def sinks(world: World) -> Iterator[Running]:
    running = Running(world.lake)
    yield running
    running.stop()


def test_the_topic_has_the_rows(world: World, sinks: Running) -> None:
    sink = world.create_sink("tailgate.freshness")
    until(lambda: world.shows())
    world.run("CREATE TABLE t (id bigint PRIMARY KEY)")
    until(lambda: "t" in world.shown() and world.shows())
    world.run("DROP TABLE t")
    until(lambda: "t" not in world.shown() and world.shows())
    assert (copy(world.lake, sink)["status"], copy(world.lake, sink)["n"]) == ("running", holds.NOTHING)
    assert len(world.lake.store.names(f"samples/{sink}")) == 2
    world.run("ALTER VIEW s_query RENAME TO other")
    assert world.run("SHOW CREATE SINK s")[0][1].startswith("CREATE SINK s FROM tailgate.freshness INTO")
    world.run("DROP SINK s")
    until(lambda: not copy(world.lake, sink) and not world.lake.store.names(f"samples/{sink}"))
    assert world.run("SELECT name FROM tailgate.views") == []


def test_a_restart_sends_the_differences(world: World) -> None:
    world.run("CREATE TABLE a (id bigint PRIMARY KEY)")
    running = Running(world.lake)
    world.create_sink("(SELECT schema, name, kind FROM tailgate.freshness)")
    until(lambda: set(world.shown()) == {"v", "a", "s_query"})
    running.stop()
    before = world.events()
    for statement in ("DROP TABLE a", "CREATE TABLE b (id bigint PRIMARY KEY)", "CREATE TABLE gone (id int)", "DROP TABLE gone"):
        world.run(statement)
    running = Running(world.lake)
    until(lambda: set(world.shown()) == {"v", "b", "s_query"})
    running.stop()
    key = {"schema": "public"}
    row = {"schema": "public", "name": "b", "kind": "table"}
    assert world.events() == [*before, ({**key, "name": "a"}, None), ({**key, "name": "b"}, row)]


@pytest.mark.parametrize(
    "point", ["sampled:2", "committed:2", *(pytest.param(p, marks=pytest.mark.long) for p in ("produced:2", "claimed:2"))]
)
def test_killed_at_a_point(world: World, point: str) -> None:
    sink = world.create_sink("(SELECT schema, name FROM tailgate.freshness)")
    process = Process(world.lake.path, crash=f"sink.{point}" if point != "claimed:2" else "")
    until(lambda: set(world.shown()) == {"v", "s_query"})
    if point == "claimed:2":
        process.stop()
        process = Process(world.lake.path, crash="sink.claimed")
    world.run("CREATE TABLE a (id bigint PRIMARY KEY)")
    process.wait_killed()
    world.run("CREATE TABLE b (id bigint PRIMARY KEY)")
    sinks = Running(world.lake)
    until(lambda: set(world.shown()) == {"v", "s_query", "a", "b"})
    until(lambda: len(world.lake.store.names(f"samples/{sink}")) <= 2)
    sinks.stop()
    assert sorted(key["name"] for key, _ in world.events()) == ["a", "b", "s_query", "v"]


def test_a_transaction_that_kafka_has_forgotten_is_sent_again(world: World) -> None:
    sink = world.create_sink("(SELECT schema, name FROM tailgate.freshness)")
    running = Running(world.lake)
    until(lambda: set(world.shown()) == {"v", "s_query"})
    world.run("CREATE TABLE a (id bigint PRIMARY KEY)")
    until(lambda: "a" in world.shown())
    running.stop()
    before, topic = world.events(), progress.topic(world.lake.id)
    *_, earlier, _ = (value for key, value in records(world.address, topic) if key == progress.key(sink))
    producer = Producer({"bootstrap.servers": world.address})
    producer.produce(topic, earlier, progress.key(sink), partition=progress.PARTITION)
    producer.flush()
    running = Running(world.lake)
    until(lambda: len(world.events()) > len(before))
    running.stop()
    assert world.events() == [*before, before[-1]]


def test_the_limits_of_the_owner_apply(world: World, sinks: Running) -> None:
    world.run("CREATE ROLE ann LOGIN SUPERUSER")
    world.run("CREATE ROLE bea LOGIN")
    world.run("GRANT CREATE ON SCHEMA public TO bea")
    world.live.gateway.budget_of(world.lake.catalog().role("bea").id, superuser=False).limit = 1 << 20
    query = "(SELECT schema, name, repeat('x', 2000000) AS filler FROM tailgate.freshness)"
    with psycopg.connect(world.live.dsn.replace("ann", "bea"), autocommit=True) as bea:
        bea.execute(f"CREATE SINK s FROM {query} INTO KAFKA BROKER '{world.address}' TOPIC '{world.topic}' {KEYED}".encode())
    (sink,) = world.lake.catalog().each(Sink)
    until(lambda: copy(world.lake, sink.id).get("error", "").startswith("53200: out of memory"))


def test_a_sink_has_the_rows_that_its_owner_sees(world: World, sinks: Running) -> None:
    world.run("CREATE ROLE ann LOGIN SUPERUSER")
    world.run("CREATE ROLE bea LOGIN")
    world.run("GRANT CREATE ON SCHEMA public TO bea")
    with psycopg.connect(world.live.dsn.replace("ann", "bea"), autocommit=True) as bea:
        into = f"INTO KAFKA BROKER '{world.address}' TOPIC '{world.topic}' {KEYED}"
        bea.execute(f"CREATE SINK s FROM tailgate.freshness {into}".encode())
        until(lambda: set(world.shown()) == {"s_query"})
        world.run("GRANT SELECT ON v TO bea")
        until(lambda: set(world.shown()) == {"s_query", "v"})
        world.run("REVOKE SELECT ON v FROM bea")
        until(lambda: set(world.shown()) == {"s_query"})
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            bea.execute(f"CREATE SINK e FROM tailgate.internal_errors {into.replace('(schema, name)', '(error)')}".encode())


def test_views_and_queries(world: World, sinks: Running, topic: str) -> None:
    """A plain view, and a query that joins, as of Debezium and without the first rows."""
    world.run("CREATE VIEW kinds AS SELECT f.schema, f.name, v.amount FROM tailgate.freshness f JOIN v ON f.name = v.name")
    sink = world.create_sink("kinds", f"WITH (consistency_topic = '{topic}-times', snapshot = false) FORMAT JSON ENVELOPE DEBEZIUM")
    until(lambda: world.lake.store.names(f"samples/{sink}"))
    world.live.tick([((9, "kinds", 2.5), 1)])
    until(lambda: len(world.events()) == 1)
    world.live.tick([((9, "kinds", 2.5), -1)])
    until(lambda: len(world.events()) == 2)
    row = {"schema": "public", "name": "kinds", "amount": 2.5}
    assert [value for _, value in world.events()] == [{"before": None, "after": row}, {"before": row, "after": None}]
    assert [json.loads(mark or b"")["status"] for _, mark in records(world.address, f"{topic}-times")] == ["BEGIN", "END"] * 2
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        world.run("DROP VIEW kinds")


def test_each_row_of_the_history_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "STEPS_ROWS_MAX", 5)
    step = int(time.time()) // STEP_S - 2 * history.HOUR_STEPS
    recorder = Recorder(world.lake, step * STEP_S)

    def record(count: int) -> None:
        nonlocal step
        for _ in range(count):
            recorder.reported([[world.live.v.id, step, 0, 5.0, {"3": 9}]], [world.live.v.id], (step + 1) * STEP_S + SETTLE_S)
            step += 1

    def written() -> list[tuple[str, int]]:
        return [(value["name"], int(float(value["at"])) // 1000 // STEP_S) for _, value in world.events()]

    first = step
    record(2 * history.HOUR_STEPS - 10)  # three hours
    world.create_sink("tailgate.freshness_history", "FORMAT JSON ENVELOPE NONE")
    running = Running(world.lake)
    until(lambda: len(written()) >= step - first)
    running.stop()
    record(3)
    running = Running(world.lake)
    until(lambda: len(written()) >= step - first)
    record(2)
    until(lambda: len(written()) >= step - first)
    running.stop()
    assert written() == [("v", n) for n in range(first, step)]


def test_what_a_sink_cannot_send_is_reported(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = world.create_sink("(SELECT schema, name FROM tailgate.freshness)")
    monkeypatch.setattr(sink_queries, "ROWS_MAX", 1)
    running = Running(world.lake)
    until(lambda: copy(world.lake, sink).get("error", "").startswith("54000: a view over the schema tailgate"))
    monkeypatch.setattr(sink_queries, "ROWS_MAX", 100)
    until(lambda: set(world.shown()) == {"v", "s_query"} and copy(world.lake, sink)["status"] == "running")
    running.stop()
    world.lake.store.discard_folder(f"samples/{sink}")  # as in a lake that was restored from a backup
    running = Running(world.lake)
    until(lambda: copy(world.lake, sink).get("error", "").startswith("55000: sink s has written changes that the lake does not have"))
    running.stop()


def test_a_sink_waits_for_a_gateway(world: World) -> None:
    sink = world.create_sink("(SELECT schema, name FROM tailgate.freshness)")
    world.live.gateway.peers.stop()
    sinks = Sinks(world.lake)
    assert sinks.workers == []
    running = Running(world.lake)
    until(lambda: copy(world.lake, sink).get("error") == "58000: no gateway that knows the sink answers")
    running.stop()


@pytest.mark.parametrize(
    ("source", "what", "sqlstate"),
    [
        ("tailgate.freshness", "FORMAT JSON ENVELOPE NONE", "0A000"),
        ("(SELECT count(*) AS n FROM tailgate.freshness_history)", "FORMAT JSON ENVELOPE NONE", "0A000"),
        ("(SELECT name FROM tailgate.freshness_history WHERE at < now())", "FORMAT JSON ENVELOPE NONE", "0A000"),
        ("tailgate.freshness", "KEY (schema, name) FORMAT JSON ENVELOPE UPSERT", "42P10"),
        ("(SELECT nothing FROM tailgate.freshness)", KEYED, "42703"),
        ("tailgate.nothing", KEYED, "42P01"),
    ],
)
def test_what_is_refused(world: World, source: str, what: str, sqlstate: str) -> None:
    with pytest.raises(psycopg.Error) as error:
        world.create_sink(source, what)
    assert error.value.sqlstate == sqlstate
    assert world.run("SELECT name FROM tailgate.views") == []
