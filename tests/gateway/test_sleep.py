"""pg_sleep() sleeps on a thread of its statement: other statements run meanwhile, and cancel and timeouts end it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from tests.tables.world import World

LONG_S = 60  # a sleep that a test never waits for


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("sleep") / "lake")
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (seconds float8 PRIMARY KEY)")
        connection.execute("INSERT INTO t VALUES (0.1), (0.2)")
    yield world
    world.close()


@pytest.fixture
def connection(world: World) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        yield connection


def test_sleeps_once_for_each_row(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    began = time.monotonic()
    assert connection.execute("SELECT pg_sleep(0.1), pg_sleep(NULL), pg_sleep(-1)").fetchall() == [("", None, "")]
    assert connection.execute("SELECT count(pg_sleep(0.1)), count(pg_sleep(seconds)) FROM t").fetchone() == (2, 2)
    assert time.monotonic() - began >= 0.1 + 2 * 0.1 + 0.3


def test_intervals_and_times(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    began = time.monotonic()
    for_intervals = "SELECT pg_sleep_for('0.1 second'), pg_sleep_for(NULL), pg_sleep_for('-1 month')"
    assert connection.execute(for_intervals).fetchall() == [("", None, "")]
    until_times = "SELECT pg_sleep_until(clock_timestamp() + interval '0.1 second'), pg_sleep_until('2000-01-01Z')"
    assert connection.execute(until_times).fetchall() == [("", "")]
    assert time.monotonic() - began >= 0.2
    with pytest.raises(psycopg.errors.DatetimeFieldOverflow, match="timestamp out of range"):
        connection.execute("SELECT pg_sleep_for('300000 years')")


def test_the_same_statement_sleeps_again(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    for _ in range(3):
        began = time.monotonic()
        connection.execute("SELECT pg_sleep(0.1)")
        assert time.monotonic() - began >= 0.1


def test_other_statements_continue_and_cancel_ends_it(world: World, connection: psycopg.Connection[tuple[object, ...]]) -> None:
    errors: list[psycopg.Error] = []

    def sleep() -> None:
        try:
            connection.execute(f"SELECT pg_sleep({LONG_S})")
        except psycopg.Error as error:
            errors.append(error)

    began = time.monotonic()
    sleeper = threading.Thread(target=sleep)
    sleeper.start()
    with psycopg.connect(world.dsn, autocommit=True) as other:
        query = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%'"
        while other.execute(query).fetchone() != (1,):  # type: ignore[comparison-overlap]  # rows have no type
            assert sleeper.is_alive()
        assert other.execute("SELECT count(*) FROM t").fetchone() == (2,)
        other.execute("SELECT pg_cancel_backend(%s)", (connection.info.backend_pid,))
    sleeper.join()
    assert [(e.sqlstate, e.diag.message_primary) for e in errors] == [("57014", "canceling statement due to user request")]
    assert time.monotonic() - began < LONG_S


def test_statement_timeout(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    connection.execute("SET statement_timeout = '200ms'")
    began = time.monotonic()
    with pytest.raises(psycopg.errors.QueryCanceled, match="canceling statement due to statement timeout"):
        connection.execute(f"SELECT pg_sleep({LONG_S}) FROM t")
    assert time.monotonic() - began < LONG_S


def test_refused_in_views(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    for kind in ("VIEW", "MATERIALIZED VIEW"):
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="pg_sleep in a view is not supported"):
            connection.execute(f"CREATE {kind} v AS SELECT pg_sleep(seconds) FROM t".encode())
