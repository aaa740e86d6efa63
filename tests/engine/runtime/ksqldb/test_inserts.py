"""INSERT of ksqlDB and declarations of topics that do not exist, in a running engine, over a real Kafka."""

from __future__ import annotations

import time
from datetime import date, datetime
from decimal import Decimal

import pytest

from tailgate.lake.errors import TailgateError
from testing.engine_process import until
from tests.engine.runtime.ksqldb_world import World, rows

KSQLDB = {"tailgate.dialect": "ksqldb"}
pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def test_inserted_expressions(world: World) -> None:
    world.engine.execute(
        "CREATE TABLE inserted (k VARCHAR PRIMARY KEY, n BIGINT, x DECIMAL(6, 2), d DATE, t TIME, at TIMESTAMP, a ARRAY<STRUCT<f INT>>,"
        " r DOUBLE) WITH (kafka_topic = 'inserted', partitions = 1, value_format = 'json')"
    )
    began = round(time.time() * 1000)
    world.engine.execute(
        "INSERT INTO inserted VALUES (CONCAT('a', 'b'), UNIX_TIMESTAMP(), CAST(ABS(-2) * 1.25 AS DECIMAL(6, 2)), FROM_DAYS(2),"
        " PARSE_TIME('10:30', 'HH:mm'), FROM_UNIXTIME(1500), ARRAY[STRUCT(f := 1 + 1), NULL], RANDOM())",
        KSQLDB,
    )
    world.engine.execute("INSERT INTO inserted (rowtime, k, n) VALUES (1000 + 500, LPAD('c', 2, '-'), NULL)", KSQLDB)
    until(lambda: len(rows(world.lake, "inserted")) == 2)
    second, first = sorted(rows(world.lake, "inserted"))
    assert began <= first[1] <= time.time() * 1000 and 0 <= first[7] < 1
    moment = datetime(1970, 1, 1, 0, 0, 1, 500_000)
    assert (first[0], *first[2:7]) == ("ab", Decimal("2.50"), date(1970, 1, 3), 37_800_000_000, moment, '[{"F": 2}, null]')
    assert (second[0], world.times("inserted")["-c"]) == ("-c", 1500)
    with pytest.raises(TailgateError, match="invalid input syntax for type integer"):
        world.engine.execute("INSERT INTO inserted (k, n) VALUES ('x', CAST('many' AS INT))", KSQLDB)
    for column, value in (("at", "FROM_UNIXTIME(253402300800000)"), ("d", "FROM_DAYS(2932897)")):
        with pytest.raises(TailgateError, match="date or timestamp out of range"):
            world.engine.execute(f"INSERT INTO inserted (k, {column}) VALUES ('x', {value})", KSQLDB)


def test_a_topic_that_does_not_exist(world: World) -> None:
    with pytest.raises(TailgateError, match="Topic 'nowhere' does not exist") as error:
        world.engine.execute("CREATE STREAM lost (k VARCHAR KEY, n INT) WITH (kafka_topic = 'nowhere', value_format = 'json')")
    example = "CREATE STREAM LOST (K VARCHAR KEY, N INT) WITH (KAFKA_TOPIC='nowhere', VALUE_FORMAT='json', PARTITIONS=2, REPLICAS=1);"
    assert error.value.sqlstate == "42704"
    assert error.value.message.endswith(f" For example: {example}")


def test_several_queries_insert_into_one_stream(world: World) -> None:
    """The rows of their views are those that their sinks write to the topic; no sinks run here."""
    for name in ("rock", "pop", "songs"):
        world.stream(name)
    assert world.engine.execute("INSERT INTO songs WITH (query_id = 'rocks') SELECT * FROM rock EMIT CHANGES")["tag"] == "INSERT 0 0"
    world.engine.execute("INSERT INTO songs WITH (query_id = 'pops') SELECT k, n + 100 AS n FROM pop EMIT CHANGES")
    rocks, pops = (world.lake.catalog().queries[id].name for id in ("ROCKS", "POPS"))
    world.send("rock", "a", 1)
    world.send("pop", "b", 2)
    until(lambda: world.rows(rocks) == [("a", 1)] and world.rows(pops) == [("b", 102)])
    assert world.engine.execute("TERMINATE POPS")["tag"] == "TERMINATE"
    assert [world.lake.catalog().find(name) for name in (pops, f"{pops}_errors", f"{pops}_topic")] == [None] * 3
    world.send("rock", "a", 5)
    until(lambda: world.rows(rocks) == [("a", 1), ("a", 5)])
    with pytest.raises(TailgateError, match=r"Cannot drop SONGS.\nThe following queries write into this source: \[ROCKS\]\."):
        world.engine.execute("DROP STREAM songs")


def test_rows_are_inserted_into_a_derived_stream(world: World) -> None:
    """The rows reach the queries above it and have the order of their statements, also after the engine is killed."""
    world.stream("given")
    world.engine.execute(
        "CREATE STREAM doubled AS SELECT k, n * 2 AS n, ARRAY[n] AS a, CAST(n AS DECIMAL(4, 1)) AS d FROM given EMIT CHANGES"
    )
    world.engine.execute("CREATE TABLE doubled_lists AS SELECT k, COLLECT_LIST(n) AS n FROM doubled GROUP BY k EMIT CHANGES")
    world.send("given", "a", 1, 1000)
    until(lambda: world.rows("doubled_lists") == [("a", "[2]")])
    assert world.engine.execute("INSERT INTO doubled (k, n, a, rowtime) VALUES ('a', 3, ARRAY[1, 2], 2000)", KSQLDB)["tag"] == "INSERT 0 1"
    for n in (9, 8):
        world.engine.execute(f"INSERT INTO doubled (k, n, d) VALUES ('a', {n}, 2.5)", KSQLDB)
    until(lambda: world.rows("doubled_lists") == [("a", "[2, 3, 9, 8]")])

    def killed() -> None:
        world.engine.execute("INSERT INTO doubled (k, n) VALUES ('b', 1 + 1)", KSQLDB)
        world.send("given", "b", 2)
        until(lambda: dict(world.rows("doubled_lists")).get("b") in ("[2, 4]", "[4, 2]"))
        of_a = sorted((row[1], row[2], row[3], row[4].timestamp()) for row in rows(world.lake, "doubled") if row[0] == "a" and row[1] < 9)
        assert of_a[:2] == [(2, "[1]", Decimal("1.0"), 1.0), (3, "[1, 2]", None, 2.0)] and of_a[2][:3] == (8, None, Decimal("2.5"))
        with pytest.raises(TailgateError, match="cannot drop table doubled_inserted because other objects depend on it"):
            world.engine.execute("DROP TABLE doubled_inserted")
        with pytest.raises(TailgateError, match="Cannot insert into read-only table: DOUBLED_LISTS"):
            world.engine.execute("INSERT INTO doubled_lists VALUES ('a', ARRAY[1])", KSQLDB)
        world.engine.execute("DROP TABLE doubled_lists")
        world.engine.execute("DROP STREAM doubled")
        assert world.lake.catalog().find("doubled_inserted") is None

    world.when_killed(killed)


def test_inserted_rows_are_joined_in_their_order(world: World) -> None:
    """With tables as of arrival, and with streams after the first INSERT."""
    world.stream("clicks")
    world.stream("views")
    world.engine.execute(
        "CREATE TABLE names (k VARCHAR PRIMARY KEY, name VARCHAR) WITH (kafka_topic = 'names', partitions = 1, value_format = 'json')"
    )
    world.put("names", "a", '{"NAME": "Ann"}', 1000)
    until(lambda: world.rows("names") == [("a", "Ann")])
    world.engine.execute("CREATE STREAM moments WITH (timestamp = 'at') AS SELECT k, CAST(n AS BIGINT) AS at FROM clicks EMIT CHANGES")
    world.engine.execute("INSERT INTO moments VALUES ('a', 5000)", KSQLDB)
    with pytest.raises(TailgateError, match="column AT has no ROWTIME"):
        world.engine.execute("INSERT INTO moments VALUES ('a', NULL)", KSQLDB)
    query = "SELECT m.k, at, name FROM moments m JOIN names ON m.k = names.k EMIT CHANGES"
    world.engine.execute(f"CREATE STREAM named_moments AS {query}", {"auto.offset.reset": "earliest"})
    world.engine.execute("CREATE STREAM seen AS SELECT m.k, at, n FROM moments m JOIN views v WITHIN 1 SECOND ON m.k = v.k EMIT CHANGES")
    world.send("views", "a", 7, 7200)
    world.engine.execute("INSERT INTO moments VALUES ('a', 7000)", KSQLDB)
    until(lambda: [row[:3] for row in rows(world.lake, "seen")] == [("a", 7000, 7)])
    until(lambda: sorted(row[:3] for row in rows(world.lake, "named_moments")) == [("a", 5000, "Ann"), ("a", 7000, "Ann")])
    assert sorted(row[2].timestamp() for row in rows(world.lake, "moments")) == [5, 7]
    with pytest.raises(TailgateError, match="CREATE OR REPLACE of a stream with inserted rows is not supported"):
        world.engine.execute("CREATE OR REPLACE STREAM moments WITH (timestamp = 'at') AS SELECT k, CAST(n AS BIGINT) AS at FROM clicks")
