"""Push queries of declared streams: the engine keeps a view while one is followed, and drops it however it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import errors

from tailgate.engine.runtime.control.ksqldb import items as ksqldb_items
from tailgate.engine.runtime.control.push import push_queries
from tailgate.gateway.execute import queries
from tailgate.lake.catalog import MaterializedView, is_transient
from tailgate.lake.types import arrow_schema
from testing.engine_process import until
from tests.gateway.ksqldb.test_streams import Stream
from tests.gateway.ksqldb.world import Api, KsqldbWorld

PUSH = "SELECT sensor, reading * 2 AS twice FROM readings EMIT CHANGES"


def views(world: KsqldbWorld) -> list[MaterializedView]:
    return [view for view in world.engine.writer.catalog.each(MaterializedView) if is_transient(view)]


def append(world: KsqldbWorld, *rows: tuple[Any, ...]) -> None:
    """Adds rows to the view of the running push query, as a tick does. The last values are positions: the arrival and the offset."""
    (view,) = views(world)
    columns = zip(*((*row[:-2], str(row[-2]), 0, row[-1], 1) for row in rows), strict=True)
    schema = arrow_schema(view.columns, weight=True)
    arrays = [pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)]
    world.engine.writer.append([(view.id, pa.Table.from_arrays(arrays, schema=schema))])


@contextmanager
def cursor(world: KsqldbWorld, text: str = PUSH) -> Iterator[psycopg.Cursor[Any]]:
    """Declares a cursor over a push query, in a block."""
    with psycopg.connect(world.dsn) as connection:
        connection.execute(f"DECLARE c CURSOR FOR {text}".encode())
        yield connection.cursor()


def test_rows_are_in_the_order_of_their_positions(api: Api, world: KsqldbWorld) -> None:
    stream = Stream(api, PUSH + " LIMIT 4;")
    assert (stream.header["columnNames"], stream.header["columnTypes"]) == (["SENSOR", "TWICE"], ["STRING", "INTEGER"])
    until(lambda: len(views(world)) == 1)
    append(world, ("b", 4, 20, 2), ("a", 2, 10, 1), ("b", 4, 20, 3))
    append(world, ("d", 8, 40, 5), ("c", 6, 30, 4))
    assert [stream.line() for _ in range(4)] == [["a", 2], ["b", 4], ["b", 4], ["c", 6]]
    assert stream.rest() == b""
    until(lambda: not views(world))


def test_a_cursor_and_copy_follow_a_push_query(world: KsqldbWorld) -> None:
    with cursor(world) as query:
        append(world, ("a", 2, 10, 1), ("a", 2, 10, 2))
        query.execute("FETCH 2 c")
        assert [row[1:] for row in query] == [(1, "a", 2), (1, "a", 2)]
        query.execute("FETCH 1 c WITH (timeout = '0.1s')")
        assert query.fetchall() == []
        query.execute("CLOSE c")
        until(lambda: not views(world))
    with psycopg.connect(world.dsn, autocommit=True) as connection, connection.cursor() as query:
        adding = threading.Thread(target=lambda: (until(lambda: len(views(world)) == 1), append(world, ("a", 2, 10, 1))))
        adding.start()
        with query.copy(f"COPY ({PUSH} LIMIT 1) TO STDOUT".encode()) as copy:
            assert [row[2:] for row in copy.rows()] == [("a", "2")]
        adding.join()
        until(lambda: not views(world))


def test_a_client_that_vanishes_or_cancels_ends_the_view(api: Api, world: KsqldbWorld) -> None:
    stream = Stream(api, PUSH)
    until(lambda: len(views(world)) == 1)
    stream.close()
    until(lambda: not views(world))
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        threading.Thread(target=lambda: (until(lambda: len(views(world)) == 1), connection.cancel_safe())).start()
        with pytest.raises(errors.QueryCanceled):
            connection.execute(PUSH)
        until(lambda: not views(world))
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_client_that_vanishes_before_its_query_follows_ends_the_view(world: KsqldbWorld) -> None:
    connection = psycopg.connect(world.dsn, autocommit=True)
    connection.pgconn.send_query(PUSH.encode())
    connection.pgconn.flush()
    while len(views(world)) != 1:  # without a pause: the gateway does not have the view yet
        pass
    connection.close()
    until(lambda: not views(world))


def test_dropping_the_stream_or_terminating_the_query_ends_it(world: KsqldbWorld) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE STREAM gone (a INT) WITH (kafka_topic = 'gone', value_format = 'json')")
        with cursor(world, "SELECT a FROM gone EMIT CHANGES") as query:
            connection.execute("DROP STREAM gone")
            with pytest.raises(errors.ObjectNotInPrerequisiteState, match="the push query has ended"):
                query.execute("FETCH 1 c")
        with cursor(world) as query:
            ((id, *rest),) = [row for row in connection.execute("SHOW QUERIES").fetchall() if row[1] == "PUSH"]
            assert rest[1:] == ["RUNNING", "", "", PUSH]
            with pytest.raises(errors.FeatureNotSupported, match="PAUSE of a push query"):
                connection.execute(f"PAUSE {id}".encode())
            connection.execute(f"TERMINATE {id}".encode())
            with pytest.raises(errors.ObjectNotInPrerequisiteState):
                query.execute("FETCH 1 c")
    assert views(world) == []


def test_a_view_is_hidden(world: KsqldbWorld) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        listed = connection.execute("SHOW MATERIALIZED VIEWS").fetchall()
        with cursor(world):
            (view,) = views(world)
            assert connection.execute("SHOW MATERIALIZED VIEWS").fetchall() == listed
            assert [name for name, *_ in connection.execute("LIST STREAMS").fetchall()] == ["readings"]
            with pytest.raises(errors.UndefinedTable):
                connection.execute(f"SELECT * FROM {view.name}".encode())
    until(lambda: not views(world))


@pytest.mark.parametrize("limit", ["RUNNING_MAX", "RUNNING_EACH"])
def test_the_number_of_views_is_limited(world: KsqldbWorld, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(push_queries, limit, 1)
    with cursor(world), pytest.raises(errors.ConfigurationLimitExceeded, match="too many push queries"), cursor(world):
        pass
    until(lambda: not views(world))


def test_a_pull_query_of_a_declared_stream_has_a_view(api: Api, world: KsqldbWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    async def recent(session: Any, relations: frozenset[int]) -> None:
        assert views(world)[0].ksqldb.reset == "earliest"  # type: ignore[union-attr]
        await asyncio.to_thread(append, world, ("b", 4, 20, 2), ("a", 2, 10, 1))
        await session.serving.progress.wait(world.engine.writer.newest.time - 1, 5)

    monkeypatch.setattr(queries, "wait_recent", recent)
    assert api.lines("SELECT sensor, reading * 2 AS twice FROM readings LIMIT 1;")[1:] == [["a", 2]]
    until(lambda: not views(world))
    monkeypatch.setattr(ksqldb_items, "PULLED_RECORDS_MAX", -1)
    assert "can read at most -1 records" in api.failed("/query-stream", {"sql": "SELECT * FROM readings;"})[1]["message"]
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        columns = "(k VARCHAR PRIMARY KEY, v INT) WITH (kafka_topic = 'tt', value_format = 'json')"
        connection.execute(f"CREATE SOURCE TABLE readable {columns}".encode())
        assert api.lines("SELECT * FROM readable WHERE k = 'a';")[0]["columnNames"] == ["K", "V"]
        connection.execute("DROP TABLE readable")


def test_a_block_that_has_changed_the_catalog_has_no_push_query(world: KsqldbWorld) -> None:
    with psycopg.connect(world.dsn) as connection:
        connection.execute("CREATE TABLE in_block (a int)")
        with pytest.raises(errors.ActiveSqlTransaction):
            connection.execute(f"DECLARE c CURSOR FOR {PUSH}".encode())


@pytest.mark.parametrize("limit", [2, 5])
def test_lists_have_the_limit_of_the_property(world: KsqldbWorld, limit: int) -> None:
    """The definition of the view has the limit, over a declared and over a derived stream."""
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE STREAM listing AS SELECT sensor, reading FROM readings EMIT CHANGES")
        connection.execute(f"SET 'ksql.functions.collect_list.limit' = '{limit}'".encode())
        for source in ("readings", "listing"):
            text = f"SELECT sensor, COLLECT_LIST(reading) AS readings FROM {source} GROUP BY sensor EMIT CHANGES"
            connection.execute("BEGIN")
            connection.execute(f"DECLARE c CURSOR FOR {text}".encode())
            assert f"1, {limit})" in views(world)[0].sql
            connection.execute("ROLLBACK")
            until(lambda: not views(world))
        connection.execute("DROP STREAM listing")


@pytest.mark.parametrize(
    ("columns", "tombstone"),
    [
        ("sensor, n, windowstart", ["a", None, 4_000]),
        ("n, windowend AS e, windowstart, sensor AS s", [None, None, 4_000, "a"]),
    ],
)
def test_windows_that_leave_by_their_retention_are_no_tombstones(api: Api, world: KsqldbWorld, columns: str, tombstone: list[Any]) -> None:
    """A push query of a table with windows. Other rows that leave are tombstones, also at the same time."""
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE windowed AS SELECT sensor, COUNT(*) AS n FROM readings"
            " WINDOW TUMBLING (SIZE 1 SECONDS, RETENTION 2 SECONDS, GRACE PERIOD 0 SECONDS) GROUP BY sensor EMIT CHANGES"
        )
    id = world.engine.writer.catalog.relation("windowed").id
    rows = [("a", n, 1_000 * n, 1_000 * (n + 1)) for n in range(1, 5)]
    world.append("windowed", rows)
    stream = Stream(api, f"SELECT {columns} FROM windowed EMIT CHANGES;", "/query")
    world.append("windowed", rows[:2], -1, released={str(id): 3_000})
    world.append("windowed", rows[2:], -1, released={str(id): 4_000})
    assert stream.line() == {"row": {"columns": tombstone, "tombstone": True}}
    stream.close()
    until(lambda: api.server._api.queries.running == 0)
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("DROP TABLE windowed")
