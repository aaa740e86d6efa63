"""TERMINATE, PAUSE and RESUME of persistent queries in a running engine, over a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from tailgate.embedded.kafka import Kafka
from tailgate.lake.catalog import MaterializedView, is_transient
from tailgate.lake.errors import TailgateError
from tailgate.lake.readers import reading
from testing.engine_process import until
from tests.engine.runtime.ksqldb_world import World

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

EARLIEST = {"auto.offset.reset": "earliest"}


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
    world.engine.execute("CREATE STREAM odd AS SELECT *, UNIX_TIMESTAMP() AS t FROM r WHERE n % 2 = 1 EMIT CHANGES")
    world.engine.execute("CREATE TABLE counts AS SELECT k, count(*) AS n FROM odd GROUP BY k EMIT CHANGES")
    world.send("r", "a", 1)
    until(lambda: world.rows("sums") == [("a", 1)] and world.rows("counts") == [("a", 1)])
    for name in ("sums", "odd"):
        assert world.engine.execute(f"PAUSE {world.query(name)}")["tag"] == "PAUSE"
    states = {name: world.engine.get("/status")["views"][name]["status"] for name in ("sums", "odd", "counts")}
    assert states == {"sums": "paused", "odd": "paused", "counts": "running"}
    world.engine.execute("CREATE TABLE numbered AS SELECT k, count(*) AS n FROM odd GROUP BY k EMIT CHANGES", EARLIEST)
    before = world.lake.log.newest()
    assert before is not None
    world.send("r", "a", 3)
    until(lambda: world.rows("same") == [("a", 4)])

    def killed() -> None:
        world.send("r", "b", 5)
        until(lambda: world.rows("same") == [("a", 4), ("b", 5)])
        assert [world.rows(name) for name in ("sums", "odd", "counts", "numbered")] == [[("a", 1)]] * 4
        until(lambda: not world.lake.catalog().replacements())  # which a test below has begun
        assert world.engine.execute("RESUME ALL")["tag"] == "RESUME"
        assert world.rows("sums") == [("a", 4), ("b", 5)]
        assert world.rows("odd") == [("a", 1), ("a", 3), ("b", 5)]
        until(lambda: [world.rows(name) for name in ("counts", "numbered")] == [[("a", 2), ("b", 1)]] * 2)
        newest = world.lake.log.newest()
        assert newest is not None
        gained = [row for entry in world.lake.log.after(before.n, newest.n) for row in _rows(entry.changes(world.view("odd").id))]
        assert sorted((k, n, weight) for k, n, *_, weight in gained) == [("a", 3, 1), ("b", 5, 1)]
        world.send("r", "a", 7)
        until(lambda: world.rows("sums") == [("a", 11), ("b", 5)] and world.rows("counts") == [("a", 3), ("b", 1)])
        assert not world.view("counts").paused
        assert world.engine.execute(f"RESUME {world.query('sums')}")["tag"] == "RESUME"

    world.when_killed(killed)


def test_a_query_of_a_derived_stream_begins_behind_its_rows(world: World) -> None:
    """With auto.offset.reset = 'latest', also when it is filled again. Records that the stream missed while it was paused come later."""
    world.stream("early")
    world.engine.execute("CREATE STREAM passed AS SELECT * FROM early EMIT CHANGES")
    world.send("early", "a", 1)
    until(lambda: world.rows("passed") == [("a", 1)])
    sums = "AS SELECT k, sum(n) AS n FROM passed GROUP BY k EMIT CHANGES"
    world.engine.execute(f"CREATE TABLE all_passed {sums}", EARLIEST)
    world.engine.execute(f"CREATE TABLE later_passed {sums}")
    assert (world.rows("all_passed"), world.rows("later_passed")) == ([("a", 1)], [])
    world.send("early", "a", 2)
    until(lambda: (world.rows("all_passed"), world.rows("later_passed")) == ([("a", 3)], [("a", 2)]))
    queries = [world.query(name) for name in ("all_passed", "later_passed", "passed")]
    for query in queries:
        world.engine.execute(f"PAUSE {query}")
    world.send("early", "a", 4)
    for query in reversed(queries):
        world.engine.execute(f"RESUME {query}")
    assert (world.rows("all_passed"), world.rows("later_passed")) == ([("a", 7)], [("a", 6)])
    world.engine.execute(f"PAUSE {world.query('passed')}")  # with running views above it
    world.send("early", "a", 8)
    world.engine.execute(f"RESUME {world.query('passed')}")
    until(lambda: (world.rows("all_passed"), world.rows("later_passed")) == ([("a", 15)], [("a", 14)]))


def test_an_inserting_query_is_paused(world: World) -> None:
    """The stream gets the records of its other inputs meanwhile, and those that the query missed at RESUME, each once."""
    world.stream("main")
    world.stream("side")
    world.engine.execute("CREATE STREAM joined AS SELECT * FROM main EMIT CHANGES", EARLIEST)
    assert world.engine.execute("INSERT INTO joined SELECT k, n * 10 AS n FROM side EMIT CHANGES", EARLIEST)["tag"] == "INSERT 0 0"
    world.engine.execute("CREATE TABLE total AS SELECT k, sum(n) AS n FROM joined GROUP BY k EMIT CHANGES", EARLIEST)
    query = next(i.ksqldb.query for i in world.lake.catalog().each(MaterializedView) if i.ksqldb and i.ksqldb.into)
    world.send("main", "a", 1)
    world.send("side", "a", 1)
    until(lambda: world.rows("total") == [("a", 11)])
    assert world.engine.execute(f"PAUSE {query}")["tag"] == "PAUSE"
    world.send("side", "a", 2)
    world.send("main", "a", 2)
    until(lambda: world.rows("total") == [("a", 13)])
    assert world.rows("joined") == [("a", 1), ("a", 2), ("a", 10)]
    world.engine.execute(f"RESUME {query}")
    until(lambda: world.rows("total") == [("a", 33)])
    assert world.rows("joined") == [("a", 1), ("a", 2), ("a", 10), ("a", 20)]
    world.send("side", "a", 3)
    until(lambda: world.rows("total") == [("a", 63)])


def test_a_push_query_has_a_view_while_its_connection_is_open(world: World) -> None:
    world.stream("p")
    world.stream("q")
    world.engine.execute("CREATE STREAM later AS SELECT k, n + 100 AS n FROM p EMIT CHANGES", EARLIEST)
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
        world.engine.followed("SELECT n, rowtime FROM p EMIT CHANGES", EARLIEST) as earliest,
        world.engine.followed(windows, EARLIEST) as of_windows,
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


def test_a_push_query_runs_on_when_a_query_below_it_is_paused(world: World) -> None:
    world.stream("o")
    world.engine.execute("CREATE STREAM lane AS SELECT * FROM o EMIT CHANGES")
    world.engine.execute("CREATE STREAM other_lane AS SELECT * FROM o EMIT CHANGES")
    counts = "SELECT k, count(*) AS c FROM lane GROUP BY k EMIT CHANGES"
    with world.engine.followed(counts) as view:

        def counted(n: int) -> None:
            until(lambda: [row["c"] for row in reading.snapshot(world.lake, view).to_pylist()] == [n])

        world.send("o", "a", 1)
        counted(1)
        world.engine.execute(f"PAUSE {world.query('lane')}")
        world.send("o", "a", 2)
        until(lambda: len(world.rows("other_lane")) == 2)
        world.engine.execute(f"RESUME {world.query('lane')}")
        world.send("o", "a", 3)
        counted(3)
        world.engine.execute(f"PAUSE {world.query('other_lane')}")  # plans views again that have other digests
        assert world.lake.catalog()[view].stale is None  # type: ignore[attr-defined]
        world.send("o", "a", 4)
        counted(4)


def test_a_terminated_query_leaves_its_table(world: World) -> None:
    """New queries can read it, and others run on. They do not get the changes of another query with the same text."""
    world.stream("t")
    for name in ("ended", "running", "ended_later"):
        world.engine.execute(f"CREATE TABLE {name} AS SELECT k, sum(n) AS n FROM t GROUP BY k EMIT CHANGES")
    world.send("t", "a", 1)
    until(lambda: world.rows("ended") == world.rows("running") == world.rows("ended_later") == [("a", 1)])
    query = world.query("ended")
    assert world.engine.execute(f"TERMINATE {query}")["tag"] == "TERMINATE"
    for name, source in (("above_ended", "ended"), ("above_running", "running"), ("above_ended_later", "ended_later")):
        world.engine.execute(f"CREATE TABLE {name} AS SELECT n, count(*) AS c FROM {source} GROUP BY n EMIT CHANGES")
    nodes = [node for _, node in world.view("above_ended_later").nodes]
    world.engine.execute(f"TERMINATE {world.query('ended_later')}")

    def killed() -> None:
        world.send("t", "a", 1)
        until(lambda: world.rows("above_running") == [(1, 0), (2, 1)])
        assert world.rows("ended") == [("a", 1)] and world.rows("above_ended") == world.rows("above_ended_later") == [(1, 1)]
        assert world.rows("running") == [("a", 2)]
        assert [node for _, node in world.view("above_ended_later").nodes] == nodes and not world.view("above_ended_later").paused
        with pytest.raises(TailgateError, match=f"Unknown queryId: {query}"):
            world.engine.execute(f"RESUME {query}")
        world.engine.execute("RESUME ALL")
        assert world.view("ended").paused
        world.engine.execute("DROP TABLE above_ended")
        world.engine.execute("DROP TABLE ended")
        assert world.lake.catalog().find("ended") is None
        assert world.lake.catalog().find("ended_topic") is None

    world.when_killed(killed)


def test_a_query_whose_records_are_gone_continues_from_the_oldest(world: World) -> None:
    """The stream keeps its rows, and so do views above it. An aggregation has those of the remaining records."""
    world.stream("gone")
    world.engine.execute("CREATE TABLE kept AS SELECT k, sum(n) AS n FROM gone GROUP BY k EMIT CHANGES")
    world.engine.execute("CREATE STREAM copied AS SELECT * FROM gone EMIT CHANGES")
    world.engine.execute("CREATE TABLE above AS SELECT k, sum(n) AS n FROM copied GROUP BY k EMIT CHANGES")
    for n in range(3):
        world.send("gone", "a", n)
    until(lambda: world.rows("kept") == world.rows("above") == [("a", 3)])
    for name in ("kept", "copied"):
        world.engine.execute(f"PAUSE {world.query(name)}")
    admin = AdminClient({"bootstrap.servers": world.kafka.address})
    for future in admin.delete_records([TopicPartition("gone", 0, 2)]).values():
        future.result(10)
    world.send("gone", "a", 4)
    for name in ("kept", "copied"):
        (notice,) = world.engine.execute(f"RESUME {world.query(name)}")["notices"]
        assert (notice["severity"], notice["sqlstate"]) == ("WARNING", "01000")
        assert notice["message"].startswith(f'the topic of "gone" no longer has all records that "{name}" was made of')
    assert world.rows("kept") == [("a", 6)]
    assert world.rows("copied") == [("a", n) for n in (0, 1, 2, 4)]
    until(lambda: world.rows("above") == [("a", 7)])


def test_a_resumed_query_is_filled_after_a_kill(world: World) -> None:
    """The engine ends while RESUME reads the topic again. The statement fails, and the next engine fills the view.

    Queries of the tests above continue, and the views of push queries are dropped.
    """
    world.stream("killed")
    world.engine.execute("CREATE TABLE resumed AS SELECT k, sum(n) AS n FROM killed GROUP BY k EMIT CHANGES")
    world.engine.execute("CREATE TABLE never_paused AS SELECT k, sum(n) AS n FROM killed GROUP BY k EMIT CHANGES")
    world.send("killed", "a", 1)
    until(lambda: world.rows("resumed") == world.rows("never_paused") == [("a", 1)])
    query = world.query("resumed")
    world.engine.execute(f"PAUSE {query}")
    world.send("killed", "b", 2)
    until(lambda: world.rows("never_paused") == [("a", 1), ("b", 2)])
    with world.engine.followed("SELECT k, n FROM killed EMIT CHANGES"):
        world.engine.kill()
    world.engine.start(crash="fill.piece:1")
    until(lambda: "ticks" in world.engine.get("/status"), 120)
    assert not [item for item in world.lake.catalog().items.values() if is_transient(item)]
    with pytest.raises((TailgateError, OSError)):
        world.engine.execute(f"RESUME {query}")
    world.engine.died()
    world.start_again()
    world.send("killed", "c", 3)
    until(lambda: world.rows("resumed") == world.rows("never_paused") == [("a", 1), ("b", 2), ("c", 3)])
    assert not world.view("resumed").paused


def _rows(table: Any) -> list[tuple[Any, ...]]:
    return [] if table is None else [tuple(row.values()) for row in table.to_pylist()]
