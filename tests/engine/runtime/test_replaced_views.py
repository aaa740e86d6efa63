"""CREATE OR REPLACE of views, and of streams and tables of ksqlDB, in a running engine over a real Kafka."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tailgate.embedded.children import Child
from tailgate.embedded.kafka import Kafka
from tailgate.lake.catalog import ksqldb_of
from tailgate.lake.errors import TailgateError
from testing.engine_process import rows, until
from tests.engine.runtime.ksqldb_world import World

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, kafka: Kafka) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("replaced"), kafka)
    yield world
    world.engine.stop()


def test_views_above_a_view_without_operators_get_its_history(world: World) -> None:
    """Regression: the view above was empty afterwards."""
    world.stream("replaced")
    for n in range(3):
        world.send("replaced", "a", n)
    world.engine.execute("CREATE MATERIALIZED VIEW low AS SELECT k, n FROM replaced")
    world.engine.execute("CREATE MATERIALIZED VIEW up AS SELECT k, count(*) AS n FROM low GROUP BY k")
    until(lambda: world.rows("up") == [("a", 3)])
    world.engine.execute("CREATE OR REPLACE MATERIALIZED VIEW low AS SELECT k, n FROM replaced WHERE n > 0")
    assert world.rows("low") == [("a", 1), ("a", 2)]
    assert world.rows("up") == [("a", 2)]


def values(world: World, name: str) -> list[dict[str, Any]]:
    """Returns the rows without their position."""
    columns = [c.name for c in world.lake.catalog().relation(name).columns]
    maps = [dict(zip(columns, row, strict=True)) for row in rows(world.lake, name)]
    hidden = ("rowtime", "rowpartition", "rowoffset", "_arrival")
    return sorted(({n: v for n, v in row.items() if n not in hidden} for row in maps), key=repr)


def test_streams_get_columns_and_another_filter(world: World) -> None:
    """The engine is killed after the changes; the query above keeps its rows."""
    world.stream("more")
    world.engine.execute("CREATE STREAM kept AS SELECT k, n FROM more WHERE n > 1 EMIT CHANGES")
    world.engine.execute("CREATE TABLE counts AS SELECT k, count(*) AS n FROM kept GROUP BY k EMIT CHANGES")
    world.engine.execute("CREATE TABLE t (k VARCHAR PRIMARY KEY, n INT) WITH (kafka_topic = 'tt', partitions = 1, value_format = 'json')")
    for n in (1, 2):
        world.put("more", "a", f'{{"N": {n}, "C": "x"}}')
    world.put("tt", "a", '{"N": 1, "C": "x"}')
    until(lambda: values(world, "counts") == [{"k": "a", "n": 1}])
    until(lambda: values(world, "t") == [{"k": "a", "n": 1}])
    assert world.engine.execute("ALTER STREAM more ADD COLUMN c VARCHAR")["tag"] == "ALTER STREAM"
    alter = world.engine.execute("ALTER TABLE t ADD COLUMN c VARCHAR", settings={"tailgate.dialect": "ksqldb"})
    assert alter["tag"] == "ALTER TABLE"
    before = world.query("kept")
    statement = "CREATE OR REPLACE STREAM kept AS SELECT k, n, c FROM more WHERE n < 3"
    assert world.engine.execute(statement)["tag"] == "CREATE STREAM"
    assert world.query("kept") == before
    for n in (1, 3):
        world.put("more", "a", f'{{"N": {n}, "C": "y"}}')
    world.put("tt", "b", '{"N": 2, "C": "y"}')
    until(lambda: values(world, "counts") == [{"k": "a", "n": 2}])
    expected = [{"k": "a", "n": 1, "c": "y"}, {"k": "a", "n": 2, "c": None}]
    assert values(world, "kept") == expected
    until(lambda: values(world, "t") == [{"k": "a", "n": 1, "c": None}, {"k": "b", "n": 2, "c": "y"}])

    def killed() -> None:
        world.put("more", "b", '{"N": 0, "C": "z"}')
        until(lambda: values(world, "counts") == [{"k": "a", "n": 2}, {"k": "b", "n": 1}])
        assert values(world, "kept") == [*expected, {"k": "b", "n": 0, "c": "z"}]

    world.when_killed(killed)


def test_an_aggregation_gets_another_filter(world: World) -> None:
    """Its groups stay, and later records pass the new filter, also after the engine was killed."""
    world.stream("sold")
    query = "SELECT k, count(*) AS n, sum(n) AS s FROM sold {} GROUP BY k EMIT CHANGES"
    world.engine.execute(f"CREATE TABLE sales AS {query.format('WHERE n > 1')}")
    world.engine.execute("CREATE TABLE large_sales AS SELECT k, s FROM sales WHERE s > 2 EMIT CHANGES")
    world.send("sold", "a", 1)
    world.send("sold", "a", 2)
    until(lambda: values(world, "sales") == [{"k": "a", "n": 1, "s": 2}])
    world.engine.execute(f"CREATE OR REPLACE TABLE sales AS {query.format('')}")
    world.send("sold", "a", 1)
    world.send("sold", "b", 1)
    until(lambda: values(world, "sales") == [{"k": "a", "n": 2, "s": 3}, {"k": "b", "n": 1, "s": 1}])
    until(lambda: values(world, "large_sales") == [{"k": "a", "s": 3}])

    def killed() -> None:
        world.send("sold", "a", 5)
        until(lambda: values(world, "sales") == [{"k": "a", "n": 3, "s": 8}, {"k": "b", "n": 1, "s": 1}])
        until(lambda: values(world, "large_sales") == [{"k": "a", "s": 8}])

    world.when_killed(killed)


def test_a_table_of_a_table_gets_another_query(world: World) -> None:
    """The fill reads the rows of the input; later changes follow the new query, also after the engine was killed."""
    for name in ("prices", "totals"):
        table = f"CREATE TABLE {name} (k VARCHAR PRIMARY KEY, n INT) WITH (kafka_topic = '{name}', partitions = 1, value_format = 'json')"
        world.engine.execute(table)
    world.engine.execute("CREATE TABLE high AS SELECT k, n FROM prices WHERE n > 10 EMIT CHANGES")
    world.engine.execute("CREATE TABLE above_high AS SELECT k, n * 2 AS n FROM high EMIT CHANGES")
    sums = "CREATE {} TABLE sums AS SELECT n, COUNT(*) AS c FROM totals GROUP BY n {} EMIT CHANGES"
    world.engine.execute(sums.format("", "HAVING COUNT(*) > 10"))
    for key, n in (("a", 5), ("b", 20), ("c", 5)):
        world.send("prices", key, n)
        world.send("totals", key, n)
    until(lambda: values(world, "above_high") == [{"k": "b", "n": 40}])
    world.engine.execute("CREATE OR REPLACE TABLE high AS SELECT k, n, n + 1 AS next FROM prices WHERE n < 10 EMIT CHANGES")
    world.engine.execute(sums.format("OR REPLACE", "HAVING COUNT(*) > 1"))
    expected = [{"k": "a", "n": 5, "next": 6}, {"k": "c", "n": 5, "next": 6}]
    until(lambda: values(world, "high") == expected)
    until(lambda: values(world, "above_high") == [{"k": "a", "n": 10}, {"k": "c", "n": 10}])
    until(lambda: values(world, "sums") == [{"n": 5, "c": 2}])

    def killed() -> None:
        world.send("prices", "b", 1)
        world.send("totals", "b", 5)
        until(lambda: values(world, "high") == [expected[0], {"k": "b", "n": 1, "next": 2}, expected[1]])
        until(lambda: values(world, "sums") == [{"n": 5, "c": 3}])

    world.when_killed(killed)


def test_queries_insert_into_a_derived_stream(world: World) -> None:
    """The rows of both queries are in the stream once, also after the engine was killed."""
    for name in ("first", "second"):
        world.stream(name)
    world.send("second", "b", 1)
    world.engine.execute("CREATE STREAM united AS SELECT k, n FROM first EMIT CHANGES")
    world.engine.execute("CREATE TABLE in_united AS SELECT k, count(*) AS n FROM united GROUP BY k EMIT CHANGES")
    world.engine.execute("CREATE STREAM copy AS SELECT * FROM united EMIT CHANGES")
    earliest = {"auto.offset.reset": "earliest"}
    assert world.engine.execute("INSERT INTO united SELECT k, n FROM second EMIT CHANGES", earliest)["tag"] == "INSERT 0 0"
    assert values(world, "united") == [{"k": "b", "n": 1}]
    until(lambda: values(world, "in_united") == [{"k": "b", "n": 1}] and values(world, "copy") == [{"k": "b", "n": 1}])
    world.send("first", "a", 2)
    world.send("second", "b", 3)
    expected = [{"k": "a", "n": 2}, {"k": "b", "n": 1}, {"k": "b", "n": 3}]
    until(lambda: values(world, "united") == values(world, "copy") == expected)

    def killed() -> None:
        world.send("second", "b", 4)
        until(lambda: values(world, "united") == values(world, "copy") == [*expected, {"k": "b", "n": 4}])
        query = next(k.query for i in world.lake.catalog().visible if (k := ksqldb_of(i)) is not None and k.into)
        with pytest.raises(TailgateError, match="The following queries write into this source"):
            world.engine.execute("DROP MATERIALIZED VIEW united CASCADE")
        world.engine.execute(f"TERMINATE {query}")
        world.send("second", "b", 5)
        world.send("first", "a", 6)
        until(lambda: values(world, "in_united") == [{"k": "a", "n": 2}, {"k": "b", "n": 3}])
        assert {"k": "b", "n": 5} not in values(world, "united")

    world.when_killed(killed)


def started(world: World, folder: Path) -> Child:
    return Child("sinks", [sys.executable, "-m", "tailgate", "sinks", "--data", str(world.lake.path)], log=folder / "sinks.log")


class Replaced:
    """A stream that is replaced three times, and the messages that its topic must have."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.source, self.stream = world, f"{name}_source", name
        self.expected: list[dict[str, Any]] = []
        properties = f"kafka_topic = '{self.source}', partitions = 1, value_format = 'json'"
        world.engine.execute(f"CREATE STREAM {self.source} (k VARCHAR KEY, n INT, c INT, d INT) WITH ({properties})")
        world.engine.execute(f"CREATE STREAM {name} AS SELECT k, n FROM {self.source} EMIT CHANGES")

    def send(self, **added: int) -> None:
        n = len(self.expected)
        self.world.put(self.source, "a", json.dumps({"N": n, "C": 1, "D": 2}))
        self.expected.append({"N": n, **added})
        until(lambda: len(values(self.world, self.stream)) == n + 1)

    def replacements(self) -> Iterator[None]:
        """Replaces the stream, and sends a record after each replacement."""
        for added in ({"C": 1}, {"C": 1, "D": 2}, {"C": 1, "D": 2, "E": 3}):
            columns = ", ".join({"C": "c", "D": "d", "E": "c + d AS e"}[name] for name in added)
            self.world.engine.execute(f"CREATE OR REPLACE STREAM {self.stream} AS SELECT k, n, {columns} FROM {self.source} EMIT CHANGES")
            self.send(**added)
            yield

    def written(self) -> bool:
        return messages(self.world, self.stream.upper()) == self.expected


def test_messages_after_several_replacements(world: World, tmp_path: Path) -> None:
    """The sinks begin after the last replacement of one stream, and before the first of another. Engine and sinks are killed at the end."""
    early = Replaced(world, "early")
    early.send()
    for _ in early.replacements():
        pass
    early.expected = [{"C": None, "D": None, "E": None} | row for row in early.expected]  # NULL in columns that were added later
    sinks = started(world, tmp_path)
    try:
        late = Replaced(world, "late")
        late.send()
        until(lambda: early.written() and late.written())
        for _ in late.replacements():
            until(late.written)
    finally:
        sinks.kill()

    def killed() -> None:
        sinks = started(world, tmp_path)
        try:
            for stream in (early, late):
                stream.send(C=1, D=2, E=3)
                until(stream.written)
        finally:
            sinks.stop()

    world.when_killed(killed)


def test_after_a_kill(world: World) -> None:
    """Streams and tables of the tests above continue."""
    world.engine.kill()
    world.start_again()


def messages(world: World, topic: str) -> list[Any]:
    """Returns the values of a topic's committed messages."""
    group = {"group.id": "messages", "isolation.level": "read_committed", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer, values = Consumer({"bootstrap.servers": world.kafka.address, **group}), list[Any]()
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while (message := consumer.poll(5)) is not None and message.error() is None:
            values.append(json.loads(message.value() or b""))
    finally:
        consumer.close()
    return values
