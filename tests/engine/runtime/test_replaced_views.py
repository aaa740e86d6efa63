"""CREATE OR REPLACE of views, and of streams and tables of ksqlDB, in a running engine over a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tailgate.embedded.kafka import Kafka
from tailgate.lake.catalog import ksqldb_of
from tailgate.lake.errors import TailgateError
from testing.engine_process import rows, until
from tests.engine.runtime.test_ksqldb_queries import World

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
    hidden = ("rowtime", "rowpartition", "rowoffset")
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
    world.engine.kill()
    world.engine.start()
    world.put("more", "b", '{"N": 0, "C": "z"}')
    until(lambda: values(world, "counts") == [{"k": "a", "n": 2}, {"k": "b", "n": 1}])
    assert values(world, "kept") == [*expected, {"k": "b", "n": 0, "c": "z"}]


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
    world.engine.kill()
    world.engine.start()
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
