"""Tests that freshness lag counts from a column of a source, in every envelope, and otherwise from Kafka's time."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tailgate.embedded.kafka import Kafka
from tailgate.engine.runtime.control.freshness import CONNECTING, ENDING, STALLED, STARTING, Freshness
from tailgate.engine.runtime.kafka.readers import reader_name
from tailgate.gateway.freshness.lags import Lags
from tailgate.lake.catalog import Source
from tailgate.lake.errors import TailgateError
from testing.engine_process import until
from tests.engine.runtime.inside import Inside

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

KAFKA_MS = 1_700_000_600_000  # Kafka's time of all records
AT_MS = 1_700_000_000_123
AT = datetime.fromtimestamp(AT_MS / 1000, timezone.utc).replace(tzinfo=None).isoformat(timespec="milliseconds")
RECORDS = 400  # of the test of each entry
ROW = {"id": 1, "at": AT, "ms": AT_MS, "note": "x"}
COLUMNS = "id int, at timestamp(3), ms bigint, note text"
CHANGE = {"before": None, "after": {**ROW, "at": AT_MS}, "op": "c"}
DECLARED = f"({COLUMNS}, PRIMARY KEY (id) NOT ENFORCED)"


class World:
    """An engine in this process, and the time of each record that it reads."""

    def __init__(self, session: Any, folder: Path, kafka: Kafka) -> None:
        self.kafka = kafka
        self.producer = Producer({"bootstrap.servers": self.kafka.address})
        self.inside = Inside(session, folder / "lake")
        self.freshness = Freshness(self.inside.engine)
        self.untimed: list[int] = []  # the sources that take the times of their records from Kafka

    def source(self, name: str, topic: str, columns: str, options: str, rest: str) -> int:
        at = f"KAFKA BROKER '{self.kafka.address}' TOPIC '{topic}' {options and f'WITH ({options})'}"
        kind = "SOURCE" if "ENVELOPE" in rest else "MATERIALIZED SOURCE"
        self.inside.execute(f"CREATE {kind} {name} {columns} FROM {at} {rest}")
        id = self.inside.engine.catalog.relation(name).id
        if not options and "TIMESTAMP" not in rest:
            self.untimed.append(id)
        return id

    def oldest(self, topic: str, *sources: int, value: Any) -> list[int]:
        """Sends a record. Returns the time of the oldest record of each source in the ticks that read it."""
        readers = self.inside.engine.inputs._connections
        until(lambda: set(sources) <= {*self.untimed, *(time.source for c in list(readers.values()) for time in c.reader.times)})
        until(lambda: all(self.freshness(0)["inputs"][id] == (None, None) for id in sources))
        n = self.inside.engine.newest.n
        self.producer.produce(topic, json.dumps(value), key=json.dumps({"id": 1}), timestamp=KAFKA_MS)
        self.producer.flush()
        oldest: dict[int, list[int]] = {}

        def read() -> bool:
            for *_, of_tick in self.freshness(n)["ticks"]:
                oldest.update(of_tick)
            return set(sources) <= oldest.keys()

        until(read)
        return [oldest[id][0] for id in sources]


@pytest.fixture(scope="module")
def world(session: Any, tmp_path_factory: pytest.TempPathFactory, kafka: Kafka) -> Iterator[World]:
    world = World(session, tmp_path_factory.mktemp("times"), kafka)
    yield world
    world.inside.end()
    assert {reason for _, reason in world.freshness(0)["inputs"].values()} == {ENDING}


@pytest.mark.parametrize(
    ("name", "columns", "rest", "value"),
    [
        ("plain", f"({COLUMNS})", "FORMAT JSON", ROW),
        ("upserted", DECLARED, "KEY FORMAT JSON VALUE FORMAT JSON ENVELOPE UPSERT", ROW),
        ("captured", DECLARED, "FORMAT JSON ENVELOPE DEBEZIUM", CHANGE),
        ("bag", f"({COLUMNS})", "FORMAT JSON ENVELOPE DEBEZIUM", CHANGE),
    ],
)
def test_the_time_of_a_record_is_that_of_the_column(name: str, columns: str, rest: str, value: Any, world: World) -> None:
    world.kafka.create_topic(name)
    sources = [
        world.source(f"{name}_{i}", name, columns, with_, rest) for i, with_ in enumerate(("timestamp = 'at'", "timestamp = 'ms'", ""))
    ]
    assert world.oldest(name, *sources, value=value) == [AT_MS, AT_MS, KAFKA_MS]
    empty = {**value, "after": {**ROW, "at": None, "ms": None}} if value is CHANGE else {**value, "at": None, "ms": None}
    assert world.oldest(name, *sources, value=empty) == [KAFKA_MS] * 3
    assert world.oldest(name, *sources, value="not an object") == [KAFKA_MS] * 3


def test_the_time_of_include_timestamp(world: World) -> None:
    world.kafka.create_topic("included")
    id = world.source("included", "included", f"({COLUMNS})", "", "FORMAT JSON INCLUDE TIMESTAMP FROM at AS seen")
    assert world.oldest("included", id, value=ROW) == [AT_MS]


def test_the_time_of_a_record_in_a_transaction(world: World) -> None:
    for topic in ("changes", "ends"):
        world.kafka.create_topic(topic)
    world.inside.execute(f"CREATE SOURCE ends FROM KAFKA BROKER '{world.kafka.address}' TOPIC 'ends' FORMAT JSON")
    metadata = "FORMAT JSON ENVELOPE DEBEZIUM (TRANSACTION METADATA (SOURCE ends, COLLECTION 's.t'))"
    id = world.source("changes", "changes", DECLARED, "timestamp = 'ms'", metadata)
    assert world.oldest("changes", id, value=CHANGE) == [AT_MS]


def test_the_lag_is_unknown_until_a_reader_has_an_answer(world: World) -> None:
    """The lag is never 0 between RESUME and the tick that reads the record that waits."""
    world.kafka.create_topic("resumed")
    id = world.source("paused", "resumed", f"({COLUMNS})", "", "FORMAT JSON")
    world.inside.execute("PAUSE SOURCE paused")
    world.producer.produce("resumed", json.dumps(ROW), timestamp=KAFKA_MS)
    world.producer.flush()
    n, states = world.inside.engine.newest.n, []

    def read() -> bool:
        answer = world.freshness(0)
        if any(id in of_tick for tick, *_, of_tick in answer["ticks"] if tick > n):
            return True
        states.append(answer["inputs"][id])
        return False

    world.inside.execute("RESUME SOURCE paused")
    until(read)
    assert set(states) <= {(None, STALLED), (None, CONNECTING), (KAFKA_MS, None)}


def test_an_answer_is_right_for_each_entry(world: World) -> None:
    """The oldest record that an entry lacks, by an answer before, during or after the tick of the entry, is the one at its position."""
    world.kafka.create_topic("next")
    id = world.source("next", "next", f"({COLUMNS})", "", "FORMAT JSON")
    limited = world.source("limited", "next", f"({COLUMNS})", f"max_records_per_second = {RECORDS // 4}", "FORMAT JSON")
    engine, catalog, first = world.inside.engine, world.inside.engine.catalog, world.inside.engine.newest.n
    answers: list[tuple[int, str]] = []  # each with the newest entry before it
    sending = threading.Thread(target=_send, args=(world, "next"))
    sending.start()
    while sending.is_alive():
        n = engine.newest.n
        answers.append((n, json.dumps(world.freshness(n))))
    headers = [entry.header for entry in engine.lake.log.after(first)]
    records: Counter[int] = Counter()
    for n, answer in answers:
        for header in [header for header in headers if n <= header.n <= n + 3]:
            lags = Lags(lambda header=header: header)  # type: ignore[misc]
            lags.answered(json.loads(answer), KAFKA_MS)
            for source in (id, limited):
                item = catalog[source]
                if (lag := lags.lag(catalog, item, KAFKA_MS + 2 * RECORDS).ms) and isinstance(item, Source):
                    records[source] += 1
                    offset = 2 * RECORDS - lag
                    position = header.offsets[reader_name(item)]["next"]["0"]
                    assert offset == position if source == id else offset <= position
    assert records[id] > 0 and records[limited] > 0


def _send(world: World, topic: str) -> None:
    """Sends RECORDS records, one after the other. Kafka's time of each is its offset after KAFKA_MS."""
    for offset in range(RECORDS):
        world.producer.produce(topic, json.dumps(ROW), timestamp=KAFKA_MS + offset)
        world.producer.flush()


def test_the_lag_of_tables_is_unknown_until_the_writes_of_an_earlier_engine_are_read(world: World) -> None:
    world.inside.execute("CREATE TABLE written (id bigint)")
    id, engine = world.inside.engine.catalog.relation("written").id, world.inside.engine
    with engine.boundary:  # no tick runs
        world.inside.insert("written", (1,), wait=False)
        freshness = Freshness(engine)
        assert freshness(0)["inputs"][id] == (None, STARTING)
    until(lambda: freshness(0)["inputs"][id] == (None, None))


@pytest.mark.parametrize(
    ("options", "sqlstate", "message"),
    [
        ("timestamp = 'missing'", "42703", 'column "missing" does not exist'),
        ("timestamp = 'note'", "42804", 'column "note" is of type text and cannot be a timestamp'),
        ("timestamp = 7", "22023", 'option "timestamp" is the name of a column'),
    ],
)
def test_refused_columns(options: str, sqlstate: str, message: str, world: World) -> None:
    with pytest.raises(TailgateError) as raised:
        world.source("refused", "plain", f"({COLUMNS})", options, "FORMAT JSON")
    assert (raised.value.sqlstate, raised.value.message) == (sqlstate, message)
