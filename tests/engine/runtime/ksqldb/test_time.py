"""Windows and joins of streams in a running engine, over a real Kafka."""

from __future__ import annotations

import json

import pytest

from tailgate.lake.errors import TailgateError
from testing.engine_process import until
from tests.engine.runtime.ksqldb_world import World, rows

TABLE_ROWS = 50_000  # more than one tick reads
HOPS = [(999_995_000, 9), (1_000_000_000, 11), (1_000_005_000, 6), (1_000_010_000, 4)]
OF_A = [("a", 1_000_000_000, 11), ("a", 1_000_010_000, 4)]

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


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

    def killed() -> None:
        world.send("w", "b", 32, 1_000_025_000)
        until(lambda: len(rows(world.lake, "tumbling")) == 4)
        remaining = [OF_A[1], ("b", 1_000_010_000, 16), ("b", 1_000_020_000, 32)]
        until(lambda: sorted((row[0], row[3], row[1]) for row in rows(world.lake, "lately")) == remaining)  # the next tick releases
        newest = world.lake.log.newest()
        assert newest is not None
        id, released = str(world.view("lately").id), [entry.header.released for entry in world.lake.log.after(0, newest.n)]
        assert [times[id] for times in released if id in times] == [1_000_010_000]

    world.when_killed(killed)


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

    def killed() -> None:
        for key, n, timestamp in (("b", 32, 1_000_005_000), ("a", 64, 1_000_009_000), ("c", 128, 1_000_060_000)):
            world.send("c", key, n, timestamp)
        last = [("a", 75, 1_000_000_000, 1_000_018_000), other, ("b", 16, 1_000_030_001, 1_000_030_001)]
        until(lambda: sorted(rows(world.lake, "final_sessions")) == last)

    world.when_killed(killed)


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

    def changed(n: int) -> None:
        world.send("people", "a", n)
        until(lambda: world.rows("people") == [("a", n)])

    def rated(n: int) -> None:
        world.send("ratings", "a", n)
        until(lambda: any(row[1] == n for row in rows(world.lake, "known")))

    changed(2)
    rated(12)
    with pytest.raises(TailgateError, match="which joins a stream"):
        world.engine.execute(f"PAUSE {world.query('known')}")
    changed(3)

    def killed() -> None:
        rated(13)
        expected = [("a", 10, 1), ("a", 12, 2), ("a", 13, 3)]
        assert sorted(row[:3] for row in rows(world.lake, "known")) == expected
        until(lambda: len(rows(world.lake, "rated")) == 4)
        assert sorted((row[:3] for row in rows(world.lake, "rated")), key=str) == [*expected, ("b", 11, None)]
        assert world.rows("rates") == [(1, 1), (2, 1), (3, 1)]

    world.when_killed(killed)


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
    columns = "o.k AS k, o.n AS n, p.n AS m, GREATEST(o.rowtime, p.rowtime) AS t"
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

    def killed() -> None:
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

    world.when_killed(killed)


def test_streams_with_windows_join_within_their_windows(world: World) -> None:
    for name in ("windows_1", "windows_2"):
        declare_windowed(world, f"STREAM {name} (k VARCHAR KEY, n INT)", name)
    columns, sources = "l.k AS k, l.n AS n, r.n AS m", "windows_1 l FULL JOIN windows_2 r WITHIN 1 HOUR"
    world.engine.execute(f"CREATE STREAM windows_joined AS SELECT ROWKEY AS w, {columns} FROM {sources} ON l.k = r.k EMIT CHANGES")
    for topic, start, n in (("windows_1", 1000, 1), ("windows_2", 2000, 2), ("windows_2", 1000, 3)):
        send_windowed(world, topic, start, n)
    expected = [("a", "a", 1, 3, 1000, 2000), ("a", "a", 1, None, 1000, 2000), ("a", None, None, 2, 2000, 3000)]
    until(lambda: sorted((row[:6] for row in rows(world.lake, "windows_joined")), key=str) == sorted(expected, key=str))


def test_tables_with_windows_join_by_their_windows(world: World) -> None:
    for name in ("counts_1", "counts_2"):
        declare_windowed(world, f"TABLE {name} (k VARCHAR PRIMARY KEY, n INT)", name)
    columns, sources = "l.k AS k, l.n AS n, r.n AS m", "counts_1 l FULL JOIN counts_2 r"
    world.engine.execute(f"CREATE TABLE counts AS SELECT ROWKEY AS w, {columns} FROM {sources} ON l.k = r.k EMIT CHANGES")
    for topic, start, n in (("counts_1", 1000, 1), ("counts_2", 2000, 2), ("counts_2", 1000, 3)):
        send_windowed(world, topic, start, n)
    expected = [("a", "a", 1, 3, 1000, 2000), ("a", None, None, 2, 2000, 3000)]
    until(lambda: sorted((row[:6] for row in rows(world.lake, "counts")), key=str) == expected)
    send_windowed(world, "counts_1", 1000, None)
    remaining = [expected[1], ("a", None, None, 3, 1000, 2000)]
    until(lambda: sorted((row[:6] for row in rows(world.lake, "counts")), key=str) == remaining)


def declare_windowed(world: World, declared: str, topic: str) -> None:
    """Creates a stream or a table of a topic whose keys have windows of a second."""
    properties = f"kafka_topic = '{topic}', partitions = 1, value_format = 'json', window_type = 'tumbling', window_size = '1 second'"
    world.engine.execute(f"CREATE {declared} WITH ({properties})")


def send_windowed(world: World, topic: str, start: int, n: int | None) -> None:
    """Sends a record of the key "a" in the window that begins then. `n`: None for a tombstone."""
    value = None if n is None else json.dumps({"N": n}).encode()
    world.produce(topic, b"a" + start.to_bytes(8, "big"), value)


def test_columns_with_the_names_of_bounds(world: World) -> None:
    """Columns `window_start` and `window_end` of the stream are not those of the window."""
    world.engine.execute(
        "CREATE STREAM named (k VARCHAR KEY, window_start INT, window_end INT)"
        " WITH (kafka_topic = 'named', partitions = 1, value_format = 'json')"
    )
    query = "SELECT k, sum(window_start) AS n, latest_by_offset(b.window_end) AS m FROM named b WINDOW {} GROUP BY k EMIT CHANGES"
    world.engine.execute(f"CREATE TABLE named_tumbling AS {query.format('TUMBLING (SIZE 10 SECONDS)')}")
    world.engine.execute(f"CREATE TABLE named_sessions AS {query.format('SESSION (10 SECONDS)')}")
    for n, timestamp in ((1, 1_000_001_000), (2, 1_000_009_000)):
        world.put("named", "a", json.dumps({"WINDOW_START": n, "WINDOW_END": -n}), timestamp)
    until(lambda: list(rows(world.lake, "named_tumbling")) == [("a", 3, -2, 1_000_000_000, 1_000_010_000)])
    until(lambda: list(rows(world.lake, "named_sessions")) == [("a", 3, -2, 1_000_001_000, 1_000_009_000)])
