"""Keys, values, expressions and aggregates of persistent queries in a running engine, over a real Kafka."""

from __future__ import annotations

import json
import time
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from testing import engine_process
from testing.engine_process import until
from tests.engine.runtime.ksqldb_world import World, rows

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


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
        until(lambda name=f"formats_{number}", expected=expected: list(rows(world.lake, name)) == [(*expected, *row)])
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
    world.engine.execute(
        "CREATE STREAM timed_again (k INT KEY, at BIGINT)"
        " WITH (kafka_topic = 'timed_again', partitions = 1, value_format = 'json', timestamp = 'at')"
    )
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
    chosen = "EXPLODE(part) AS n, COALESCE(EXPLODE(part), 0) AS m"
    world.engine.execute(f"CREATE STREAM chosen AS SELECT k, {chosen} FROM parts_of EMIT CHANGES")
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
    until(lambda: sorted(row[1:3] for row in rows(world.lake, "chosen").elements()) == [(n, n) for n in (1, 1, 5, 6, 7, 20, 30, 40)])
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


IN_ORDER = "COLLECT_LIST(n) AS l, EARLIEST_BY_OFFSET(n) AS e, LATEST_BY_OFFSET(n) AS m, TOPK(1, n, 9) AS t"


def test_each_of_few_records_has_a_change_of_a_table(world: World) -> None:
    """A record that leaves the row as it was repeats it. Of many records that arrive at once, a tick has one change."""
    world.stream("few")
    world.engine.execute("CREATE TABLE greatest AS SELECT k, max(n) AS n FROM few GROUP BY k EMIT CHANGES")

    def entries() -> list[tuple[int, int, int | None]]:
        """Returns of each entry with rows of the table the numbers of changes and of rows that are repeated, and the time of its record."""
        id, all = world.view("greatest").id, []
        for entry in world.lake.log.after(0):
            rows_of_entry = [0 if table is None else table.num_rows for table in (entry.changes(id), entry.repeated(id))]
            if any(rows_of_entry):
                all.append((*rows_of_entry, entry.header.single))
        return all

    for n in (5, 3, 7):
        world.send("few", "a", n, 1_000)
    expected = [(1, 0, 1_000), (0, 1, 1_000), (2, 0, 1_000)]
    until(lambda: entries() == expected)
    for n in range(10_000):
        world.enqueue("few", "a", n)
    until(lambda: world.rows("greatest") == [("a", 9_999)])
    assert len(entries()) < 1_000


def test_late_records_are_aggregated_in_the_order_of_their_arrival(world: World) -> None:
    """So are those of a derived stream and of one with another key. Old records of several partitions are merged by timestamp."""
    world.engine.execute(
        "CREATE STREAM arriving (k VARCHAR KEY, g VARCHAR, n INT) WITH (kafka_topic = 'arriving', partitions = 2, value_format = 'json')"
    )
    world.engine.execute("CREATE STREAM arrived AS SELECT k, g, n FROM arriving EMIT CHANGES")
    world.engine.execute("CREATE STREAM moved_to_g WITH (partitions = 1) AS SELECT * FROM arrived PARTITION BY g EMIT CHANGES")
    for name, source in (("of_arriving", "arriving"), ("of_arrived", "arrived"), ("of_moved", "moved_to_g")):
        world.engine.execute(f"CREATE TABLE {name} AS SELECT g, {IN_ORDER} FROM {source} GROUP BY g EMIT CHANGES")
    world.engine.execute(
        f"CREATE TABLE in_windows_of_g AS SELECT g, {IN_ORDER} FROM arrived WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY g EMIT CHANGES"
    )
    records = [("a", 1, 9_000), ("d", 2, 5_000), ("a", 3, 1_000), ("a", 4, 8_000)]  # a and d are in different partitions
    for sent, (key, n, timestamp) in enumerate(records, 1):
        world.put("arriving", key, json.dumps({"G": "g", "N": n}), timestamp)
        until(lambda: sum(rows(world.lake, "arrived").values()) == sent)  # noqa: B023  # it is called in this round
    assert {row[-2] for row in rows(world.lake, "arrived")} == {0, 1}

    def lists(name: str) -> list[tuple[Any, ...]]:
        return [(*row[1:4], [next(iter(t.values())) for t in json.loads(row[4])]) for row in rows(world.lake, name)]

    for name in ("of_arriving", "of_arrived", "of_moved", "in_windows_of_g"):
        until(lambda: lists(name) == [("[1, 2, 3, 4]", 1, 4, [1, 2, 3, 4])])  # noqa: B023
    query = f"SELECT g, {IN_ORDER} FROM arriving GROUP BY g EMIT CHANGES"
    world.engine.execute(f"CREATE TABLE of_old AS {query}", {"auto.offset.reset": "earliest"})
    assert lists("of_old") == [("[2, 1, 3, 4]", 2, 4, [2, 1, 3, 4])]


def test_rowtime_of_tables(world: World) -> None:
    """The rows of a derived table have the latest ROWTIME of their records. A tombstone needs no column of TIMESTAMP."""
    world.stream("measured")
    world.engine.execute("CREATE TABLE totals_of_measured AS SELECT k, sum(n) AS n FROM measured GROUP BY k EMIT CHANGES")
    world.engine.execute(
        "CREATE TABLE dated (id VARCHAR PRIMARY KEY, n BIGINT)"
        " WITH (kafka_topic = 'dated', partitions = 1, value_format = 'json', timestamp = 'n')"
    )
    columns = "l.k AS k, l.n AS n, d.rowtime AS t"
    world.engine.execute(f"CREATE TABLE times AS SELECT {columns} FROM totals_of_measured l LEFT JOIN dated d ON l.k = d.id EMIT CHANGES")
    moved = "SELECT k, CAST(n * 1000 AS BIGINT) AS moment FROM totals_of_measured EMIT CHANGES"
    world.engine.execute(f"CREATE TABLE moved WITH (timestamp = 'moment') AS {moved}")
    for key, n, timestamp in (("a", 1, 2_000_000), ("a", 2, 1_000_000), ("b", 4, 3_000_000)):
        world.send("measured", key, n, timestamp)
    for key, n in (("a", 5_000_000), ("b", 1_000), ("c", 1_000)):
        world.send("dated", key, n, 9_000_000)
    world.produce("dated", b"c", None)
    expected = [("a", 3, 5_000_000), ("b", 4, 1_000)]
    until(lambda: sorted(rows(world.lake, "times")) == expected)
    until(lambda: sorted(row[0] for row in rows(world.lake, "dated")) == ["a", "b"])
    assert not rows(world.lake, "dated_dead_letters")
    assert world.times("totals_of_measured") == {"a": 2_000_000, "b": 3_000_000}
    assert world.times("times") == {"a": 5_000_000, "b": 3_000_000}
    until(lambda: world.times("moved") == {"a": 3_000, "b": 4_000})


def test_a_group_of_a_table_stays_when_its_last_row_leaves(world: World) -> None:
    """Its aggregates are those of no rows, its ROWTIME is that of the records by which rows came and left, and HAVING can leave it out.

    The engine is killed meanwhile. A group exists, too, if its only row comes and leaves in one tick.
    """
    world.engine.execute(
        "CREATE TABLE users (k VARCHAR PRIMARY KEY, n INT) WITH (kafka_topic = 'users', partitions = 1, value_format = 'json')"
    )
    world.engine.execute("CREATE TABLE levels AS SELECT n, count(*) AS users, collect_list(k) AS list FROM users GROUP BY n EMIT CHANGES")
    world.engine.execute("CREATE TABLE used AS SELECT n, sum(n) AS n_sum FROM users GROUP BY n HAVING count(*) > 0 EMIT CHANGES")
    world.send("users", "a", 1, 5000)
    world.send("users", "b", 1, 3000)
    until(lambda: sorted(rows(world.lake, "levels")) == [(1, 2, '["b", "a"]')])
    world.send("users", "a", 2, 6000)
    world.put("users", "b", None, 5500)
    levels = [(1, 0, "[]"), (2, 1, '["a"]')]
    until(lambda: sorted(rows(world.lake, "levels"), key=str) == levels)
    until(lambda: sorted(rows(world.lake, "used")) == [(2, 2)])
    world.engine.execute(
        "CREATE TABLE used_again AS SELECT n, count(*) AS users, collect_list(k) AS list FROM users GROUP BY n EMIT CHANGES"
    )
    assert list(rows(world.lake, "used_again")) == [levels[1]]
    assert not {node for _, node in world.view("used_again").nodes} & {node for _, node in world.view("levels").nodes}

    def meanwhile() -> None:
        world.send("users", "d", 3, 7000)
        world.send("users", "d", 2, 8000)
        world.put("users", "d", None, 9000)

    def killed() -> None:
        world.send("users", "c", 1, 4000)
        until(lambda: sorted(rows(world.lake, "levels"), key=str) == [(1, 1, '["c"]'), levels[1], (3, 0, "[]")])
        until(lambda: sorted(rows(world.lake, "used_again"), key=str) == [(1, 1, '["c"]'), levels[1], (3, 0, "[]")])
        assert {row[0]: row[-1].timestamp() for row in engine_process.rows(world.lake, "levels")} == {1: 6.0, 2: 9.0, 3: 8.0}

    world.when_killed(killed, meanwhile)
