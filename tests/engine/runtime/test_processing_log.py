"""ksqlDB's processing log: records that cannot be decoded and expressions that fail, over a real Kafka."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tailgate.embedded.kafka import Kafka
from tailgate.engine.runtime.maintenance import processing_log
from tailgate.engine.runtime.maintenance.processing_log import STREAM, TOPIC, ProcessingLog
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.lake.catalog import Catalog, MaterializedView, Sink
from tailgate.lake.errors import TailgateError
from tailgate.lake.readers import holds
from testing.engine_process import until
from tests.engine.runtime.ksqldb_world import World, rows
from tests.sinks.feed import records

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, kafka: Kafka) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("processing"), kafka, "--processing-log")
    until(lambda: world.lake.catalog().find(STREAM.lower()) is not None)
    yield world
    world.engine.stop()


def logged(world: World) -> Counter[tuple[str, str, str]]:
    """Returns the messages of the log: the name of the logger, and the kind and the text of the error."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for _, value in records(world.kafka.address, TOPIC):
        message: dict[str, Any] = json.loads(value or b"")
        assert message["level"] == "ERROR"
        assert message["time"] > 0
        ((kind, error),) = ((k, v) for k, v in message["message"].items() if isinstance(v, dict))
        counts[message["logger"], f"{kind} {error.get('target', '')}".strip(), error["errorMessage"]] += 1
    return counts


def test_the_processing_log(world: World) -> None:
    """A query that reads another one does not repeat its failures, and one that reads the log has none."""
    execute = world.engine.execute
    world.stream("failing")
    execute("CREATE STREAM quotients AS SELECT k, 100 / n AS q FROM failing EMIT CHANGES")
    execute("CREATE STREAM numbers AS SELECT k, CAST(k AS INT) + q AS n FROM quotients EMIT CHANGES")
    execute("CREATE TABLE sums AS SELECT k, SUM(100 / n) AS s FROM failing WHERE n / n = 1 GROUP BY k EMIT CHANGES")
    execute(
        f"CREATE STREAM loggers AS SELECT CAST(logger AS INT) AS n, message->deserializationError->topic AS t FROM {STREAM} EMIT CHANGES"
    )
    world.send("failing", "1", 0)
    world.send("failing", "2", 0)
    world.send("failing", "x", 5)
    world.put("failing", "3", "{")
    world.send("failing", "3", 5)
    ids = {name: world.query(name) for name in ("quotients", "numbers", "sums")}
    invalid = 'invalid input syntax for type integer: "x"'
    until(lambda: len(rows(world.lake, "quotients")) == 4)
    expected = {
        (f"processing.{ids['quotients']}", "recordProcessingError", "division by zero"): 2,
        (f"processing.{ids['numbers']}", "recordProcessingError", invalid): 1,
        (f"processing.{ids['sums']}", "recordProcessingError", "division by zero"): 2,
    }
    decoders = {f"processing.{ids[name]}.KsqlTopic.Source.deserializer" for name in ("quotients", "sums")}
    decoding = {(logger, "deserializationError value") for logger in decoders}
    until(lambda: logged(world).total() == 7)
    counts = logged(world)
    assert {place: n for place, n in counts.items() if place[1] == "recordProcessingError"} == expected
    assert {place[:2] for place in counts if place[1] != "recordProcessingError"} == decoding
    until(lambda: sum(rows(world.lake, "loggers").values()) == 7)
    item = world.lake.catalog().relation("loggers")
    assert isinstance(item, MaterializedView)
    assert {row[1] for row in rows(world.lake, "loggers")} == {None, "failing"}
    assert logged(world).total() == 7


def test_errors_of_sinks_are_logged_once(world: World) -> None:
    """The process of the sinks, which this test stands for, records them."""
    world.stream("written")
    world.engine.execute("CREATE STREAM refused AS SELECT * FROM written EMIT CHANGES")
    sink = next(sink for sink in world.lake.catalog().each(Sink) if world.view("refused").id in sink.depends)
    place = f"processing.{world.query('refused')}", "productionError"

    def errors() -> dict[str, int]:
        return {text: n for (*of, text), n in logged(world).items() if tuple(of) == place}

    for n, error in enumerate(("message too large", "message too large", "", "unavailable")):
        recorded = {**(holds.read(world.lake, holds.sink(sink.id)) or {}), "error": error}
        holds.write(world.lake, holds.sink(sink.id), recorded)
        until(lambda n=n: errors() == {"message too large": 1} | ({"unavailable": 1} if n == 3 else {}))


class Ending:
    """The part of an engine that its threads wait for, with an empty catalog."""

    def __init__(self) -> None:
        self.ended, self.catalog, self.lake = Event(), Catalog(), SimpleNamespace(store=SimpleNamespace(look_s=0.0))

    @property
    def stopping(self) -> bool:
        return self.ended.is_set()


def test_the_stream_is_created_after_any_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processing_log, "RETRY_S", 0.0)
    engine, failures, created = Ending(), [RuntimeError("internal"), TailgateError("the broker does not answer")], Event()

    def create(text: str) -> None:
        if failures:
            raise failures.pop()
        created.set()

    thread = ProcessingLog(cast(Engine, engine), world.kafka.address, create)
    thread.start()
    assert created.wait(60)
    engine.ended.set()
    thread.join(60)
    assert not thread.is_alive()
