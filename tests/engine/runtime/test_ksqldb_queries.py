"""TERMINATE, PAUSE and RESUME of persistent queries in a running engine, over a real Kafka."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tailgate.embedded.kafka import Kafka
from tailgate.lake.catalog import MaterializedView, is_transient, ksqldb_of
from tailgate.lake.errors import TailgateError
from tailgate.lake.folder import Lake
from tailgate.lake.readers import reading
from testing import engine_process
from testing.engine_process import EngineProcess, until

KSQLDB = {"tailgate.dialect": "ksqldb"}
TABLE_ROWS = 50_000  # more than one tick reads

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def rows(lake: Lake, name: str) -> Counter[tuple[Any, ...]]:
    """Returns a relation's current rows, with their number of copies. Those of a table of ksqlDB are without ROWTIME."""
    item = lake.catalog().relation(name)
    ksqldb, out = ksqldb_of(item), Counter[tuple[Any, ...]]()
    hidden = ("rowtime",) if ksqldb is not None and ksqldb.type == "table" else ()
    for row, count in engine_process.rows(lake, name).items():
        out[tuple(value for value, column in zip(row, item.columns, strict=True) if column.name not in hidden)] += count
    return out


class World:
    """An engine with the address of a Kafka."""

    def __init__(self, folder: Path, kafka: Kafka, *options: str) -> None:
        self.kafka = kafka
        self.engine = EngineProcess(folder / "lake", "--kafka", kafka.address, *options)
        self.engine.start()
        self.lake = Lake(folder / "lake")
        self._producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 0, "log_level": 2})

    def enqueue(self, topic: str, key: str, n: int) -> None:
        self._producer.produce(topic, json.dumps({"N": n}), key=key)

    def send(self, topic: str, key: str, n: int, timestamp: int = 0) -> None:
        self.put(topic, key, json.dumps({"N": n}), timestamp)

    def put(self, topic: str, key: str, value: str, timestamp: int = 0) -> None:
        self._producer.produce(topic, value, key=key, timestamp=timestamp)
        self._producer.flush()

    def produce(self, topic: str, key: bytes, value: bytes | None, headers: dict[str, bytes] | None = None) -> None:
        self._producer.produce(topic, value, key=key, headers=dict(headers or {}))
        self._producer.flush()

    def times(self, name: str) -> dict[str, int]:
        """Returns ROWTIME of the rows of a table, in ms, by their first column."""
        return {row[0]: round(row[-1].timestamp() * 1000) for row in engine_process.rows(self.lake, name)}

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        return sorted(row[:2] for row in rows(self.lake, name))

    def stream(self, name: str) -> None:
        self.engine.execute(
            f"CREATE STREAM {name} (k VARCHAR KEY, n INT) WITH (kafka_topic = '{name}', partitions = 1, value_format = 'json')"
        )

    def view(self, name: str) -> MaterializedView:
        item = self.lake.catalog().relation(name)
        assert isinstance(item, MaterializedView)
        return item

    def query(self, name: str) -> str:
        properties = self.view(name).ksqldb
        assert properties is not None
        return properties.query


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, kafka: Kafka) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("queries"), kafka)
    yield world
    world.engine.stop()


def test_a_paused_query_continues_without_loss(world: World) -> None:
    """The engine is killed meanwhile; another query of the stream continues."""
    world.stream("r")
    world.engine.execute("CREATE TABLE sums AS SELECT k, sum(n) AS n FROM r GROUP BY k EMIT CHANGES")
    world.engine.execute("CREATE TABLE same AS SELECT k, sum(n) AS n FROM r GROUP BY k EMIT CHANGES")
    world.engine.execute("CREATE STREAM odd AS SELECT * FROM r WHERE n % 2 = 1 EMIT CHANGES")
    world.engine.execute("CREATE TABLE counts AS SELECT k, count(*) AS n FROM odd GROUP BY k EMIT CHANGES")
    world.send("r", "a", 1)
    until(lambda: world.rows("sums") == [("a", 1)] and world.rows("counts") == [("a", 1)])
    with pytest.raises(TailgateError, match="cannot pause query CSAS_ODD_"):
        world.engine.execute(f"PAUSE {world.query('odd')}")
    for name in ("sums", "counts", "odd"):
        assert world.engine.execute(f"PAUSE {world.query(name)}")["tag"] == "PAUSE"
    assert world.engine.get("/status")["views"]["sums"]["status"] == "paused"
    before = world.lake.log.newest()
    assert before is not None
    world.send("r", "a", 3)
    until(lambda: world.rows("same") == [("a", 4)])
    with world.engine.followed("SELECT k, n FROM r EMIT CHANGES"):
        world.engine.kill()
    world.engine.start()
    assert not [item for item in world.lake.catalog().items.values() if is_transient(item)]
    world.send("r", "b", 5)
    until(lambda: world.rows("same") == [("a", 4), ("b", 5)])
    assert (world.rows("sums"), world.rows("odd"), world.rows("counts")) == ([("a", 1)], [("a", 1)], [("a", 1)])
    with pytest.raises(TailgateError, match="query CSAS_ODD_2 is paused"):
        world.engine.execute(f"RESUME {world.query('counts')}")
    assert world.engine.execute("RESUME ALL")["tag"] == "RESUME"
    assert world.rows("sums") == [("a", 4), ("b", 5)]
    assert (world.rows("odd"), world.rows("counts")) == ([("a", 1), ("a", 3), ("b", 5)], [("a", 2), ("b", 1)])
    newest = world.lake.log.newest()
    assert newest is not None
    gained = [row for entry in world.lake.log.after(before.n, newest.n) for row in _rows(entry.changes(world.view("odd").id))]
    assert sorted((k, n, weight) for k, n, *_, weight in gained) == [("a", 3, 1), ("b", 5, 1)]
    world.send("r", "a", 7)
    until(lambda: world.rows("sums") == [("a", 11), ("b", 5)] and world.rows("counts") == [("a", 3), ("b", 1)])
    assert world.engine.execute(f"RESUME {world.query('sums')}")["tag"] == "RESUME"


def test_a_push_query_has_a_view_while_its_connection_is_open(world: World) -> None:
    world.stream("p")
    world.stream("q")
    world.engine.execute("CREATE STREAM later AS SELECT k, n + 100 AS n FROM p EMIT CHANGES", {"auto.offset.reset": "earliest"})
    world.send("p", "a", 1, 1000)
    until(lambda: world.rows("later") == [("a", 101)])
    joined = "SELECT l.k, l.n, q.n FROM later l JOIN q WITHIN 1 SECOND ON l.k = q.k EMIT CHANGES"
    windows = "SELECT count(*) AS n, windowend FROM p WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY k EMIT CHANGES"

    def followed(view: int) -> list[tuple[Any, ...]]:
        rows = reading.snapshot(world.lake, view).to_pylist()
        return sorted(tuple(row.values())[:-1] for row in rows)

    with (
        world.engine.followed(joined) as of_join,
        world.engine.followed("SELECT n FROM p EMIT CHANGES") as latest,
        world.engine.followed("SELECT n, rowtime FROM p EMIT CHANGES", {"auto.offset.reset": "earliest"}) as earliest,
        world.engine.followed(windows, {"auto.offset.reset": "earliest"}) as of_windows,
        world.engine.followed("SELECT n FROM p WHERE n < 5") as pulled,
    ):
        assert [row[:1] for row in followed(pulled)] == [(1,)]
        assert [row[:2] for row in followed(earliest)] == [(1, 1000)] and followed(latest) == []
        world.send("q", "a", 7, 1100)
        world.send("p", "a", 2, 1200)
        until(lambda: [row[:3] for row in followed(of_join)] == [("a", 102, 7)])  # not with the record of `later` before it
        until(lambda: [row[0] for row in followed(latest)] == [2])
        until(lambda: [row[:2] for row in followed(of_windows)] == [(2, 2000)])
    until(lambda: not [item for item in world.lake.catalog().items.values() if is_transient(item)])
    assert world.engine.get("/status")["views"]["later"]["status"] == "running"


def test_lambdas_and_nested_keys(world: World) -> None:
    world.engine.execute(
        "CREATE STREAM nested (k STRUCT<a INT, b ARRAY<VARCHAR>> KEY, arr ARRAY<INT>)"
        " WITH (kafka_topic = 'nested', partitions = 1, format = 'json')"
    )
    world.engine.execute("CREATE TABLE by_struct AS SELECT k, count(*) AS n FROM nested GROUP BY k EMIT CHANGES")
    world.engine.execute(
        "CREATE STREAM lambdas AS SELECT k, TRANSFORM(arr, x => TRANSFORM(ARRAY[x], y => y + k->a)) AS t,"
        " REDUCE(FILTER(arr, x => x > 1), 0, (s, x) => s + x) AS r, CUBE_EXPLODE(arr) AS c FROM nested EMIT CHANGES"
    )
    world.produce("nested", b'{"A": 1, "b": ["x"]}', b'{"ARR": [1, 2]}')
    world.produce("nested", b'{"B": ["x"], "a": "1"}', b'{"ARR": [null]}')
    until(lambda: world.rows("by_struct") == [('{"A": 1, "B": ["x"]}', 2)])
    until(lambda: len(rows(world.lake, "lambdas")) == 5)
    results = sorted(row[1:4] for row in rows(world.lake, "lambdas"))
    cubes = ("[1, 2]", "[1, null]", "[null, 2]", "[null, null]")
    assert results == [*(("[[2], [3]]", 2, cube) for cube in cubes), ("[[null]]", 0, "[null]")]


def test_a_table_keyed_by_an_array(world: World) -> None:
    """The same key with other white space is the same row."""
    world.engine.execute(
        "CREATE TABLE by_array (k ARRAY<INT> PRIMARY KEY, n INT) WITH (kafka_topic = 'by_array', partitions = 1, format = 'json')"
    )
    world.engine.execute("CREATE TABLE twice AS SELECT k, n * 2 AS n FROM by_array EMIT CHANGES")
    for key, value in ((b"[1,2]", b'{"N": 1}'), (b"[3]", b'{"N": 5}'), (b"[1, 2]", b'{"N": 3}'), (b"[3]", None)):
        world.produce("by_array", key, value)
    until(lambda: world.rows("twice") == [("[1, 2]", 6)])
    assert world.rows("by_array") == [("[1, 2]", 3)]


def test_an_expression_that_fails_is_null(world: World) -> None:
    world.stream("f")
    world.engine.execute("CREATE TABLE shares AS SELECT k, sum(100 / (n - 1)) AS n FROM f GROUP BY k EMIT CHANGES")
    world.engine.execute("CREATE STREAM sums_1 AS SELECT k, n + 2147483646 AS n, CAST(k AS INT) AS i FROM f EMIT CHANGES")
    world.engine.execute("CREATE TABLE keys AS SELECT CAST(k AS INT) AS k, count(*) AS n FROM f GROUP BY CAST(k AS INT) EMIT CHANGES")
    world.engine.execute("CREATE STREAM large AS SELECT k, n FROM f WHERE n + 2147483646 > 0 EMIT CHANGES")
    world.engine.execute(
        "CREATE TABLE totals AS SELECT k, SUM(9223372036854775807 - 3 + n) AS n, MAX(n * 0.50) AS d FROM f GROUP BY k EMIT CHANGES"
    )
    limits = {"ksql.functions.collect_list.limit": "3", "ksql.functions.collect_set.limit": "1"}
    lists = "SELECT 1 AS k, TO_JSON_STRING(COLLECT_LIST(n)) AS l, TO_JSON_STRING(COLLECT_SET(n)) AS s FROM f GROUP BY 1 EMIT CHANGES"
    world.engine.execute(f"CREATE TABLE lists AS {lists}", limits)
    for key, n in (("a", 1), ("a", 3), ("b", 1), ("7", 2)):
        world.send("f", key, n)
    until(lambda: len(rows(world.lake, "sums_1")) == 4)
    assert [row[:3] for row in sorted(rows(world.lake, "sums_1"), key=str)] == [
        ("7", -2147483648, 7),
        ("a", -2147483647, None),
        ("a", 2147483647, None),
        ("b", 2147483647, None),
    ]
    until(lambda: world.rows("shares") == [("7", 100), ("a", 50), ("b", 0)])
    until(lambda: world.rows("large") == [("a", 1), ("b", 1)])
    until(lambda: world.rows("keys") == [(7, 1)])
    until(lambda: [row[:3] for row in rows(world.lake, "lists")] == [(1, "[1,3,1]", "[1]")])
    totals = [("7", 2**63 - 2, Decimal("1.00")), ("a", -4, Decimal("1.50")), ("b", 2**63 - 3, Decimal("0.50"))]
    until(lambda: sorted(row[:3] for row in rows(world.lake, "totals")) == totals)


def test_inserted_expressions(world: World) -> None:
    world.engine.execute(
        "CREATE TABLE inserted (k VARCHAR PRIMARY KEY, n BIGINT, x DECIMAL(6, 2), d DATE, t TIME, at TIMESTAMP, a ARRAY<STRUCT<f INT>>,"
        " r DOUBLE) WITH (kafka_topic = 'inserted', partitions = 1, value_format = 'json')"
    )
    dialect = {"tailgate.dialect": "ksqldb"}
    began = round(time.time() * 1000)
    world.engine.execute(
        "INSERT INTO inserted VALUES (CONCAT('a', 'b'), UNIX_TIMESTAMP(), CAST(ABS(-2) * 1.25 AS DECIMAL(6, 2)), FROM_DAYS(2),"
        " PARSE_TIME('10:30', 'HH:mm'), FROM_UNIXTIME(1500), ARRAY[STRUCT(f := 1 + 1), NULL], RANDOM())",
        dialect,
    )
    world.engine.execute("INSERT INTO inserted (rowtime, k, n) VALUES (1000 + 500, LPAD('c', 2, '-'), NULL)", dialect)
    until(lambda: len(rows(world.lake, "inserted")) == 2)
    second, first = sorted(rows(world.lake, "inserted"))
    assert began <= first[1] <= time.time() * 1000 and 0 <= first[7] < 1
    moment = datetime(1970, 1, 1, 0, 0, 1, 500_000)
    assert (first[0], *first[2:7]) == ("ab", Decimal("2.50"), date(1970, 1, 3), 37_800_000_000, moment, '[{"F": 2}, null]')
    assert (second[0], world.times("inserted")["-c"]) == ("-c", 1500)
    with pytest.raises(TailgateError, match="invalid input syntax for type integer"):
        world.engine.execute("INSERT INTO inserted (k, n) VALUES ('x', CAST('many' AS INT))", dialect)


def test_keys_and_formats(world: World) -> None:
    """Rows of declared items have the columns of keys and values in each format."""
    columns = "n DECIMAL(4, 2), day DATE, at TIMESTAMP, ok BOOLEAN"
    row = (Decimal("1.50"), date(1970, 1, 3), datetime(1970, 1, 1, 0, 0, 1, 500_000), True)
    value = b'{"N": "1.5", "day": 2, "AT": 1500, "ok": true}'
    one, two = "k INT PRIMARY KEY", "k INT PRIMARY KEY, l VARCHAR PRIMARY KEY"
    for number, (keys, format, value_format, key, message, expected) in enumerate(
        (
            (one, "kafka", "json", b"\0\0\1\2", value, (258,)),
            (one, "json", "json", b"7", value, (7,)),
            (two, "json", "json", b'{"K": 7, "L": "x"}', value, (7, "x")),
            (two, "delimited", "delimited", b'7,"x,y"', b"1.5,2,1500,true", (7, "x,y")),
        )
    ):
        world.engine.execute(
            f"CREATE TABLE formats_{number} ({keys}, {columns})"
            f" WITH (partitions = 1, kafka_topic = 'formats_{number}', key_format = '{format}', value_format = '{value_format}')"
        )
        world.produce(f"formats_{number}", key, message)
        until(lambda name=f"formats_{number}", expected=expected: list(rows(world.lake, name)) == [(*expected, *row)])  # type: ignore[misc]
        world.produce(f"formats_{number}", key, None)
    until(lambda: all(not rows(world.lake, f"formats_{number}") for number in range(4)))


def test_the_time_and_the_headers_of_a_message(world: World) -> None:
    """A record without a time is a dead letter; a derived stream leaves out a row without one."""
    world.engine.execute(
        "CREATE SOURCE STREAM timed (k INT KEY, trace BYTES HEADER('trace'), at BIGINT)"
        " WITH (partitions = 1, kafka_topic = 'timed', value_format = 'json', timestamp = 'at')"
    )
    world.engine.execute("CREATE STREAM timed_out AS SELECT * FROM timed EMIT CHANGES")
    columns = "k, CASE WHEN rowoffset < 4 THEN at + 500 WHEN at = 2 THEN -1 END AS later"
    world.engine.execute("CREATE STREAM timed_again (k INT KEY, at BIGINT) WITH (partitions = 1, value_format = 'json', timestamp = 'at')")
    world.engine.execute("INSERT INTO timed_again WITH (query_id = 'again') SELECT k, at + 500 AS at FROM timed EMIT CHANGES")
    again = world.lake.catalog().queries["AGAIN"].name
    world.engine.execute("CREATE STREAM timed_now AS SELECT k, UNIX_TIMESTAMP() AS now, UNIX_DATE() AS day FROM timed EMIT CHANGES")
    began = round(time.time() * 1000)
    world.engine.execute(f"CREATE STREAM timed_later WITH (timestamp = 'LATER') AS SELECT {columns} FROM timed EMIT CHANGES")
    world.produce("timed", bytes(4), b'{"AT": null}')
    world.produce("timed", bytes(4), b'{"AT": -1}')
    world.produce("timed", bytes(4), b'{"AT": 1500}', {"trace": b"x"})
    at, later = (datetime(1970, 1, 1, 0, 0, 1 + n, 500_000 * (1 - n), timezone.utc) for n in (0, 1))
    until(lambda: list(rows(world.lake, "timed_out")) == [(0, b"x", 1500, at, 0, 2)])
    until(lambda: list(rows(world.lake, "timed_later")) == [(0, 2000, later, 0, 2)])
    until(lambda: list(rows(world.lake, again)) == [(0, 2000, later, 0, 2)])
    until(lambda: len(rows(world.lake, "timed_now")) == 1)
    ((_, now, day, *_),) = rows(world.lake, "timed_now")
    assert began <= now <= time.time() * 1000 and day == now // 86_400_000
    world.produce("timed", bytes(4), b'{"AT": 1}')
    world.produce("timed", bytes(4), b'{"AT": 2}')
    world.produce("timed", bytes(4), b'{"AT": 3}')
    until(lambda: len(rows(world.lake, "timed_out")) == 4)
    assert sorted(row[1] for row in rows(world.lake, "timed_later")) == [501, 2000]
    until(lambda: sorted(row[2] for row in rows(world.lake, "timed_dead_letters")) == [0, 1])


NESTED = {
    "TAGS": ["a", None, 7],
    "sizes": {"x": 1.25, "y": "2"},
    "Owner": {"ID": 5, "names": [{"FIRST": "ann", "more": 1}], "OTHER": 1},
    "DAY": 10,
    "AT": 1500,
    "CLOCK": 60000,
    "PRICE": "1.5",
    "RAW": "YQ==",
    "NOTE": {"b": [1, True]},
}


def test_values_in_json(world: World) -> None:
    """Nested values, times, and values that are converted; a value that cannot be converted is a dead letter."""
    world.engine.execute(
        "CREATE STREAM j (k VARCHAR KEY, tags ARRAY<VARCHAR>, sizes MAP<VARCHAR, DECIMAL(3, 1)>, owner STRUCT<id INT, names ARRAY<STRUCT<"
        "first VARCHAR>>>, day DATE, at TIMESTAMP, clock TIME, price DOUBLE, raw BYTES, note VARCHAR)"
        " WITH (kafka_topic = 'j', partitions = 1, value_format = 'json')"
    )
    world.engine.execute(
        "CREATE STREAM parts AS SELECT k, tags, sizes['x'] AS x, owner->names[1]->first AS first, owner, day, at, clock, price, raw, note,"
        " ARRAY_LENGTH(tags) AS n, STRUCT(d := day, t := at, r := raw, c := clock) AS s FROM j EMIT CHANGES"
    )
    world.engine.execute("CREATE STREAM above AS SELECT k, owner->id + n AS n, s->t AS t, s->d AS d FROM parts EMIT CHANGES")
    world.engine.execute("CREATE STREAM each AS SELECT k, EXPLODE(tags) AS tag, LEN(EXPLODE(tags)) AS n FROM j EMIT CHANGES")
    world.put("j", "a", json.dumps(NESTED))
    world.put("j", "b", '{"TAGS": {"a": 1}}')
    world.put("j", "c", "{}")
    until(lambda: len(rows(world.lake, "parts")) == 2 and len(rows(world.lake, "above")) == 2)
    (row, empty) = sorted(rows(world.lake, "parts"), key=lambda row: str(row[0]))
    assert row[:13] == (
        "a",
        '["a", null, "7"]',
        Decimal("1.3"),
        "ann",
        '{"ID": 5, "NAMES": [{"FIRST": "ann"}]}',
        date(1970, 1, 11),
        datetime(1970, 1, 1, 0, 0, 1, 500_000),
        60_000_000,
        1.5,
        b"a",
        '{"b":[1,true]}',
        3,
        '{"C": 60000, "D": 10, "R": "YQ==", "T": 1500}',
    )
    assert empty[:12] == ("c", *[None] * 11)
    first = next(row for row in rows(world.lake, "above") if row[0] == "a")
    until(lambda: sorted((row[:3] for row in rows(world.lake, "each")), key=str) == [("a", "7", 1), ("a", "a", 1), ("a", None, None)])
    assert first[:4] == ("a", 8, datetime(1970, 1, 1, 0, 0, 1, 500_000), date(1970, 1, 11))


def test_rows_of_table_functions_have_an_order(world: World) -> None:
    """Equal elements are two rows, and the shorter array has NULL. Rows of a row keep its order, and so do aggregates of them."""
    world.engine.execute(
        "CREATE STREAM packs (k VARCHAR KEY, parts ARRAY<ARRAY<INT>>) WITH (kafka_topic = 'packs', partitions = 1, value_format = 'json')"
    )
    world.engine.execute("CREATE STREAM parts_of AS SELECT k, EXPLODE(parts) AS part FROM packs EMIT CHANGES")
    world.engine.execute("CREATE STREAM numbers_of AS SELECT k, EXPLODE(part) AS n, EXPLODE(ARRAY['x']) AS x FROM parts_of EMIT CHANGES")
    world.engine.execute("CREATE STREAM signs_of AS SELECT k, - n AS n FROM numbers_of EMIT CHANGES")
    world.engine.execute(
        "CREATE TABLE in_order AS SELECT k, COLLECT_LIST(n) AS l, EARLIEST_BY_OFFSET(n) AS e, LATEST_BY_OFFSET(n) AS n"
        " FROM signs_of GROUP BY k EMIT CHANGES"
    )
    world.engine.execute(
        "CREATE TABLE in_windows AS SELECT k, COLLECT_LIST(n) AS l FROM numbers_of WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY k EMIT CHANGES"
    )
    world.put("packs", "a", json.dumps({"PARTS": [[30, 1, 1], [20], [], [5, 40]]}), timestamp=1)
    world.put("packs", "a", json.dumps({"PARTS": [[7], [6]]}), timestamp=2)
    expected = [("a", "[-30, -1, -1, -20, null, -5, -40, -7, -6]", -30, -6)]
    until(lambda: [row[:4] for row in rows(world.lake, "in_order")] == expected)
    until(lambda: [row[1] for row in rows(world.lake, "in_windows")] == ["[30, 1, 1, 20, null, 5, 40, 7, 6]"])
    assert sum(rows(world.lake, "signs_of").values()) == len(rows(world.lake, "signs_of")) == 9


def test_aggregates(world: World) -> None:
    world.engine.execute(
        "CREATE STREAM g (k VARCHAR KEY, a VARCHAR, n INT) WITH (kafka_topic = 'g', partitions = 1, value_format = 'json')"
    )
    world.engine.execute(
        "CREATE TABLE collected AS SELECT k, collect_list(a) AS l, collect_set(n) AS s, topk(n, 2) AS t, topkdistinct(n, 2) AS d,"
        " histogram(a) AS h, earliest_by_offset(n, 2) AS e, latest_by_offset(n, 2) AS m, latest_by_offset(a, false) AS z,"
        " attr(a) AS x, stddev_samp(n) AS v, correlation(n, n * 2) AS c FROM g GROUP BY k EMIT CHANGES"
    )
    for at, (a, n) in enumerate((("x", 3), (None, 1), ("y", 3), ("x", 2), (None, None))):
        world.put("g", "a", json.dumps({"A": a, "N": n}), 1_000_000_000 - at)  # each record is earlier than the one before it
    world.put("g", "b", json.dumps({"A": "one"}))
    until(lambda: [row[1] for row in sorted(rows(world.lake, "collected"))] == ['["x", null, "y", "x", null]', '["one"]'])
    (first, second) = sorted(rows(world.lake, "collected"))
    assert first[2:9] == ("[3, 1, 2, null]", "[3, 3]", "[3, 2]", '{"x": 2, "y": 1}', "[3, 1]", "[3, 2]", None)
    assert first[9] is None
    assert [round(value, 6) for value in first[10:12]] == [0.916667, 1.0]
    assert second[2:11] == ("[null]", "[]", "[]", '{"one": 1}', "[]", "[]", "one", "one", 0.0)


def test_windows(world: World) -> None:
    """A late record counts within the grace period. EMIT FINAL adds a window when it has closed. Windows leave after RETENTION."""
    world.stream("w")
    query = "SELECT k, sum(n) AS n, windowend / 1000 AS until FROM w WINDOW {} GROUP BY k EMIT CHANGES"
    world.engine.execute(f"CREATE TABLE tumbling AS {query.format('TUMBLING (SIZE 10 SECONDS)')}")
    world.engine.execute(f"CREATE TABLE hopping AS {query.format('HOPPING (SIZE 10 SECONDS, ADVANCE BY 5 SECONDS)')}")
    for name, grace, emit in (("strict", "0 SECONDS", "CHANGES"), ("last", "5 SECONDS", "FINAL")):
        window = f"TUMBLING (SIZE 10 SECONDS, RETENTION 1 DAY, GRACE PERIOD {grace})"
        world.engine.execute(f"CREATE TABLE {name} AS {query.format(window).replace('CHANGES', emit)}")
    window = "TUMBLING (SIZE 10 SECONDS, RETENTION 15 SECONDS, GRACE PERIOD 5 SECONDS)"
    world.engine.execute(f"CREATE TABLE lately AS {query.format(window)}")
    for key, n, timestamp in (("a", 1, 1_000_001_000), ("a", 2, 1_000_009_999), ("a", 4, 1_000_010_000), ("a", 8, 1_000_000_000)):
        world.send("w", key, n, timestamp)
    tumbling = [("a", 4, 1_000_020, 1_000_010_000, 1_000_020_000), ("a", 11, 1_000_010, 1_000_000_000, 1_000_010_000)]
    until(lambda: sorted(rows(world.lake, "tumbling")) == tumbling)
    until(lambda: sorted((row[3], row[1]) for row in rows(world.lake, "hopping")) == HOPS)
    until(lambda: sorted((row[3], row[1]) for row in rows(world.lake, "strict")) == [(1_000_000_000, 3), (1_000_010_000, 4)])
    assert not rows(world.lake, "last")
    world.engine.execute("CREATE TABLE starts AS SELECT windowstart, count(*) AS n FROM hopping GROUP BY windowstart EMIT CHANGES")
    until(lambda: sorted(rows(world.lake, "starts")) == [(start, 1) for start, _ in HOPS])
    world.send("w", "b", 16, 1_000_015_000)
    until(lambda: list(rows(world.lake, "last")) == [tumbling[1]])
    until(lambda: sorted((row[0], row[3], row[1]) for row in rows(world.lake, "lately")) == [*OF_A, ("b", 1_000_010_000, 16)])
    world.engine.kill()
    world.engine.start()
    world.send("w", "b", 32, 1_000_025_000)
    until(lambda: len(rows(world.lake, "tumbling")) == 4)
    newest, remaining = world.lake.log.newest(), [OF_A[1], ("b", 1_000_010_000, 16), ("b", 1_000_020_000, 32)]
    assert sorted((row[0], row[3], row[1]) for row in rows(world.lake, "lately")) == remaining
    assert newest is not None
    released = [entry.header.released for entry in world.lake.log.after(0, newest.n) if entry.header.released]
    assert released == [{str(world.view("lately").id): 1_000_010_000}]


def test_sessions(world: World) -> None:
    """A record between two sessions merges them; a record that WHERE leaves out does not. EMIT FINAL adds a session when it has closed."""
    world.stream("c")
    query = "SELECT k, sum(n) AS n FROM c WINDOW SESSION (10 SECONDS{}) WHERE n > 0 GROUP BY k EMIT {}"
    world.engine.execute(f"CREATE TABLE sessions AS {query.format('', 'CHANGES')}")
    world.engine.execute(f"CREATE TABLE final_sessions AS {query.format(', GRACE PERIOD 15 SECONDS', 'FINAL')}")
    for key, n, timestamp in (("a", 1, 1_000_000_000), ("a", 2, 1_000_018_000), ("b", 4, 1_000_005_000), ("a", 0, 1_000_009_000)):
        world.send("c", key, n, timestamp)
    first, second = ("a", 1, 1_000_000_000, 1_000_000_000), ("a", 2, 1_000_018_000, 1_000_018_000)
    other = ("b", 4, 1_000_005_000, 1_000_005_000)
    until(lambda: sorted(rows(world.lake, "sessions")) == [first, second, other])
    world.send("c", "a", 8, 1_000_008_000)
    merged = ("a", 11, 1_000_000_000, 1_000_018_000)
    until(lambda: sorted(rows(world.lake, "sessions")) == [merged, other])
    world.send("c", "b", 16, 1_000_030_001)  # the session of b at 5 s closes after 30 s
    until(lambda: list(rows(world.lake, "final_sessions")) == [other])
    world.engine.kill()
    world.engine.start()
    for key, n, timestamp in (("b", 32, 1_000_005_000), ("a", 64, 1_000_009_000), ("c", 128, 1_000_060_000)):
        world.send("c", key, n, timestamp)
    last = [("a", 75, 1_000_000_000, 1_000_018_000), other, ("b", 16, 1_000_030_001, 1_000_030_001)]
    until(lambda: sorted(rows(world.lake, "final_sessions")) == last)


def test_rowtime_of_tables(world: World) -> None:
    """The rows of a derived table have the latest ROWTIME of their records. A tombstone needs no column of TIMESTAMP."""
    world.stream("measured")
    world.engine.execute("CREATE TABLE totals_of_measured AS SELECT k, sum(n) AS n FROM measured GROUP BY k EMIT CHANGES")
    world.engine.execute(
        "CREATE TABLE dated (id VARCHAR PRIMARY KEY, n BIGINT)"
        " WITH (kafka_topic = 'dated', partitions = 1, value_format = 'json', timestamp = 'n')"
    )
    columns = "l.k AS k, l.n AS n, d.rowtime AS t, rowtime AS r"
    world.engine.execute(f"CREATE TABLE times AS SELECT {columns} FROM totals_of_measured l LEFT JOIN dated d ON l.k = d.id EMIT CHANGES")
    moved = "SELECT k, CAST(n * 1000 AS BIGINT) AS moment FROM totals_of_measured EMIT CHANGES"
    world.engine.execute(f"CREATE TABLE moved WITH (timestamp = 'moment') AS {moved}")
    for key, n, timestamp in (("a", 1, 2_000_000), ("a", 2, 1_000_000), ("b", 4, 3_000_000)):
        world.send("measured", key, n, timestamp)
    for key, n in (("a", 5_000_000), ("b", 1_000), ("c", 1_000)):
        world.send("dated", key, n, 9_000_000)
    world.produce("dated", b"c", None)
    expected = [("a", 3, 5_000_000, 5_000_000), ("b", 4, 1_000, 3_000_000)]
    until(lambda: sorted(rows(world.lake, "times")) == expected)
    assert sorted(row[0] for row in rows(world.lake, "dated")) == ["a", "b"]
    assert not rows(world.lake, "dated_dead_letters")
    assert world.times("totals_of_measured") == {"a": 2_000_000, "b": 3_000_000}
    assert world.times("times") == {"a": 5_000_000, "b": 3_000_000}
    until(lambda: world.times("moved") == {"a": 3_000, "b": 4_000})


OF_A = [("a", 1_000_000_000, 11), ("a", 1_000_010_000, 4)]
HOPS = [(999_995_000, 9), (1_000_000_000, 11), (1_000_005_000, 6), (1_000_010_000, 4)]


def test_a_stream_joins_the_rows_of_its_arrival(world: World) -> None:
    """Later changes of the table do not change earlier rows, also after the engine was killed."""
    world.stream("ratings")
    world.engine.execute(
        "CREATE TABLE people (id VARCHAR PRIMARY KEY, n INT) WITH (kafka_topic = 'people', partitions = 1, value_format = 'json')"
    )
    world.send("people", "a", 1)
    until(lambda: world.rows("people") == [("a", 1)])
    query = "SELECT r.k AS k, r.n AS n, p.n AS m FROM ratings r {} JOIN people p ON r.k = p.id EMIT CHANGES"
    world.engine.execute(f"CREATE STREAM rated WITH (partitions = 1) AS {query.format('LEFT')}")
    world.engine.execute(f"CREATE STREAM known AS {query.format('')}")
    world.engine.execute("CREATE TABLE rates AS SELECT m, count(*) AS n FROM rated GROUP BY m EMIT CHANGES")
    world.send("ratings", "a", 10)
    world.send("ratings", "b", 11)
    until(lambda: len(rows(world.lake, "rated")) == 2)
    for n, of in ((2, 12), (3, 13)):
        world.send("people", "a", n)
        until(lambda: world.rows("people") == [("a", n)])  # noqa: B023
        if n == 3:
            world.engine.kill()
            world.engine.start()
        world.send("ratings", "a", of)
        until(lambda: any(row[1] == of for row in rows(world.lake, "known")))  # noqa: B023
    expected = [("a", 10, 1), ("a", 12, 2), ("a", 13, 3)]
    assert sorted(row[:3] for row in rows(world.lake, "known")) == expected
    until(lambda: len(rows(world.lake, "rated")) == 4)
    assert sorted((row[:3] for row in rows(world.lake, "rated")), key=str) == [*expected, ("b", 11, None)]
    assert world.rows("rates") == [(1, 1), (2, 1), (3, 1)]
    with pytest.raises(TailgateError, match="which joins a stream"):
        world.engine.execute(f"PAUSE {world.query('known')}")


def test_old_records_join_the_table_that_kafka_holds(world: World) -> None:
    """The table is created after its records, just before the query: its rows are read first."""
    for n in range(TABLE_ROWS):
        world.enqueue("held", str(n), n)
    world.send("old", "7", 1)
    world.engine.execute("CREATE TABLE held (id VARCHAR PRIMARY KEY, n INT) WITH (kafka_topic = 'held', value_format = 'json')")
    world.stream("old")
    query = "SELECT o.k AS k, o.n AS n, h.n AS m FROM old o LEFT JOIN held h ON o.k = h.id"
    world.engine.execute(f"CREATE STREAM found AS {query}", {"auto.offset.reset": "earliest"})
    until(lambda: rows(world.lake, "found") != {})
    assert [row[:3] for row in rows(world.lake, "found")] == [("7", 1, 7)]


def test_streams_join_within_a_time(world: World) -> None:
    """Without GRACE a row without a match is sent at once, with it when its window has closed. The engine is killed meanwhile."""
    world.stream("placed")
    world.stream("payed")
    world.send("placed", "a", 1, 1_000_000_000)
    world.send("payed", "a", 10, 1_000_004_000)
    columns = "o.k AS k, o.n AS n, p.n AS m, rowtime AS t"
    query = f"SELECT {columns} FROM placed o LEFT JOIN payed p WITHIN 10 SECONDS {{}} ON o.k = p.k EMIT CHANGES"
    for name, grace in (("eager", ""), ("closed", "GRACE PERIOD 5 SECONDS")):
        world.engine.execute(f"CREATE STREAM {name} AS {query.format(grace)}", {"auto.offset.reset": "earliest"})
    again = "SELECT c.k AS k, m, f.n AS f FROM closed c JOIN placed f WITHIN 1 HOUR ON c.k = f.k EMIT CHANGES"
    world.engine.execute(f"CREATE STREAM again AS {again}", {"auto.offset.reset": "earliest"})
    first = ("a", 1, 10, 1_000_004_000)
    until(lambda: [row[:4] for row in rows(world.lake, "closed")] == [first])
    eager = [("a", 1, None, 1_000_000_000), first]
    until(lambda: [row[:4] for row in sorted(rows(world.lake, "eager"), key=lambda row: row[6])] == eager)
    world.send("placed", "b", 2, 1_000_010_000)
    alone = ("b", 2, None, 1_000_010_000)
    until(lambda: [row[:4] for row in sorted(rows(world.lake, "eager"), key=lambda row: row[6])] == [*eager, alone])
    world.engine.kill()
    world.engine.start()
    world.send("payed", "b", 20, 1_000_008_000)
    world.send("placed", "c", 3, 1_000_010_000)
    world.send("placed", "d", 4, 1_000_026_000)
    until(lambda: sorted(row[:3] for row in rows(world.lake, "closed")) == [first[:3], ("b", 2, 20), ("c", 3, None)])
    world.send("placed", "a", 5, 1_000_004_000)
    world.send("placed", "d", 6, 1_000_026_000)
    until(lambda: len(rows(world.lake, "eager")) == 8)
    assert sorted(row[:2] for row in rows(world.lake, "closed")) == [("a", 1), ("b", 2), ("c", 3)]
    numbers = [row[6] for row in sorted(rows(world.lake, "closed"))]
    assert numbers == sorted(numbers)
    until(lambda: sorted(row[:3] for row in rows(world.lake, "again")) == [("a", 10, 1), ("a", 10, 5), ("b", 20, 2), ("c", None, 3)])


def test_streams_with_windows_join_within_their_windows(world: World) -> None:
    for name in ("windows_1", "windows_2"):
        properties = f"kafka_topic = '{name}', partitions = 1, value_format = 'json', window_type = 'tumbling', window_size = '1 second'"
        world.engine.execute(f"CREATE STREAM {name} (k VARCHAR KEY, n INT) WITH ({properties})")
    columns, sources = "l.k AS k, l.n AS n, r.n AS m", "windows_1 l FULL JOIN windows_2 r WITHIN 1 HOUR"
    world.engine.execute(f"CREATE STREAM windows_joined AS SELECT ROWKEY AS w, {columns} FROM {sources} ON l.k = r.k EMIT CHANGES")
    for topic, start, n in (("windows_1", 1000, 1), ("windows_2", 2000, 2), ("windows_2", 1000, 3)):
        world.produce(topic, b"a" + start.to_bytes(8, "big"), json.dumps({"N": n}).encode())
    expected = [("a", "a", 1, 3, 1000, 2000), ("a", "a", 1, None, 1000, 2000), ("a", None, None, 2, 2000, 3000)]
    until(lambda: sorted((row[:6] for row in rows(world.lake, "windows_joined")), key=str) == sorted(expected, key=str))


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
    with pytest.raises(TailgateError, match="cannot drop source songs because other objects depend on it"):
        world.engine.execute("DROP STREAM songs")


def test_rows_are_inserted_into_a_derived_stream(world: World) -> None:
    """They reach the queries above it and follow each other in the order of their statements, also after the engine is killed."""
    world.stream("given")
    world.engine.execute(
        "CREATE STREAM doubled AS SELECT k, n * 2 AS n, ARRAY[n] AS a, CAST(n AS DECIMAL(4, 1)) AS d FROM given EMIT CHANGES"
    )
    world.engine.execute("CREATE TABLE lists AS SELECT k, COLLECT_LIST(n) AS n FROM doubled GROUP BY k EMIT CHANGES")
    world.send("given", "a", 1, 1000)
    until(lambda: world.rows("lists") == [("a", "[2]")])
    assert world.engine.execute("INSERT INTO doubled (k, n, a, rowtime) VALUES ('a', 3, ARRAY[1, 2], 2000)", KSQLDB)["tag"] == "INSERT 0 1"
    for n in (9, 8):
        world.engine.execute(f"INSERT INTO doubled (k, n, d) VALUES ('a', {n}, 2.5)", KSQLDB)
    until(lambda: world.rows("lists") == [("a", "[2, 3, 9, 8]")])
    world.engine.kill()
    world.engine.start()
    world.engine.execute("INSERT INTO doubled (k, n) VALUES ('b', 1 + 1)", KSQLDB)
    world.send("given", "b", 2)
    until(lambda: dict(world.rows("lists")).get("b") in ("[2, 4]", "[4, 2]"))
    of_a = sorted((row[1], row[2], row[3], row[4].timestamp()) for row in rows(world.lake, "doubled") if row[0] == "a" and row[1] < 9)
    assert of_a[:2] == [(2, "[1]", Decimal("1.0"), 1.0), (3, "[1, 2]", None, 2.0)] and of_a[2][:3] == (8, None, Decimal("2.5"))
    with pytest.raises(TailgateError, match="cannot drop table doubled_inserted because other objects depend on it"):
        world.engine.execute("DROP TABLE doubled_inserted")
    with pytest.raises(TailgateError, match="Cannot insert into read-only table: LISTS"):
        world.engine.execute("INSERT INTO lists VALUES ('a', ARRAY[1])", KSQLDB)
    world.engine.execute("DROP TABLE lists")
    world.engine.execute("DROP STREAM doubled")
    assert world.lake.catalog().find("doubled_inserted") is None


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
    world.engine.execute("CREATE STREAM named AS SELECT m.k, at, name FROM moments m JOIN names ON m.k = names.k EMIT CHANGES")
    world.engine.execute("CREATE STREAM seen AS SELECT m.k, at, n FROM moments m JOIN views v WITHIN 1 SECOND ON m.k = v.k EMIT CHANGES")
    world.send("views", "a", 7, 7200)
    world.engine.execute("INSERT INTO moments VALUES ('a', 7000)", KSQLDB)
    until(lambda: [row[:3] for row in rows(world.lake, "seen")] == [("a", 7000, 7)])
    until(lambda: sorted(row[:3] for row in rows(world.lake, "named")) == [("a", 7000, "Ann")])
    assert world.times("moments") == {"a": 7000}
    with pytest.raises(TailgateError, match="CREATE OR REPLACE of a stream with inserted rows is not supported"):
        world.engine.execute("CREATE OR REPLACE STREAM moments WITH (timestamp = 'at') AS SELECT k, CAST(n AS BIGINT) AS at FROM clicks")


def test_a_terminated_query_leaves_its_table(world: World) -> None:
    world.stream("t")
    world.engine.execute("CREATE TABLE ended AS SELECT k, sum(n) AS n FROM t GROUP BY k EMIT CHANGES")
    world.engine.execute("CREATE TABLE running AS SELECT k, sum(n) AS n FROM t GROUP BY k EMIT CHANGES")
    world.send("t", "a", 1)
    until(lambda: world.rows("ended") == [("a", 1)] and world.rows("running") == [("a", 1)])
    query = world.query("ended")
    assert world.engine.execute(f"TERMINATE {query}")["tag"] == "TERMINATE"
    world.send("t", "a", 1)
    until(lambda: world.rows("running") == [("a", 2)])
    assert world.rows("ended") == [("a", 1)]
    with pytest.raises(TailgateError, match=f'query "{query}" does not exist'):
        world.engine.execute(f"RESUME {query}")
    world.engine.execute("RESUME ALL")
    assert world.view("ended").paused
    world.engine.execute("DROP TABLE ended")
    assert world.lake.catalog().find("ended") is None
    assert world.lake.catalog().find("ended_topic") is None


def test_a_query_whose_records_are_gone_stays_paused(world: World) -> None:
    world.stream("gone")
    world.engine.execute("CREATE TABLE kept AS SELECT k, sum(n) AS n FROM gone GROUP BY k EMIT CHANGES")
    for n in range(3):
        world.send("gone", "a", n)
    until(lambda: world.rows("kept") == [("a", 3)])
    world.engine.execute(f"PAUSE {world.query('kept')}")
    admin = AdminClient({"bootstrap.servers": world.kafka.address})
    for future in admin.delete_records([TopicPartition("gone", 0, 2)]).values():
        future.result(10)
    with pytest.raises(TailgateError, match='the topic of "gone" no longer has all records that "kept" was made of'):
        world.engine.execute(f"RESUME {world.query('kept')}")
    assert world.rows("kept") == [("a", 3)]
    assert world.view("kept").paused


def _rows(table: Any) -> list[tuple[Any, ...]]:
    return [] if table is None else [tuple(row.values()) for row in table.to_pylist()]
