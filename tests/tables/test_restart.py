"""Writes after a restart of the engine: those that no tick had read are in conflict with what read before them, and nothing else is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.tables.world import Engine, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "lake")
    with psycopg.connect(world.dsn, autocommit=True) as c:
        c.execute("CREATE TABLE a (id int PRIMARY KEY, v int)")
        c.execute("INSERT INTO a VALUES (1, 0), (2, 0)")
    yield world
    world.close()


def restarted(world: World) -> None:
    """Restarts the engine with a write of row 1 in its inbox, and stops it before the first tick."""
    world.engine.pause()
    with psycopg.connect(world.dsn, autocommit=True) as c:
        c.execute("SET synchronous_commit = off")
        c.execute("UPDATE a SET v = v + 1 WHERE id = 1")
    world.engine.close()  # without a tick
    world.engine = Engine(world.lake, paused=True)


def add(connection: psycopg.Connection, id: int) -> None:
    """Reads and writes one row in a transaction."""
    with connection.transaction():
        ((v,),) = connection.execute("SELECT v FROM a WHERE id = %s", (id,)).fetchall()
        connection.execute("UPDATE a SET v = %s WHERE id = %s", (v + 1, id))


def test_a_block_of_other_keys_is_committed(world: World) -> None:
    restarted(world)
    with psycopg.connect(world.dsn, autocommit=True) as c:
        c.execute("SET synchronous_commit = off")
        add(c, 2)
        world.engine.resume()
        c.execute("SET synchronous_commit = on")
        c.execute("INSERT INTO a VALUES (3, 0)")
        assert c.execute("SELECT * FROM a ORDER BY id").fetchall() == [(1, 1), (2, 1), (3, 0)]


def test_a_block_in_conflict_fails_once(world: World) -> None:
    """COMMIT fails when the write that is in conflict can be read, so the block succeeds when it is retried."""
    restarted(world)
    with psycopg.connect(world.dsn, autocommit=True) as c:
        c.execute("BEGIN")
        c.execute("SELECT v FROM a WHERE id = 1")
        c.execute("UPDATE a SET v = v + 1 WHERE id = 1")
        threading.Timer(1.0, world.engine.resume).start()  # the block is in conflict whether COMMIT comes before or after
        with pytest.raises(psycopg.errors.SerializationFailure):
            c.execute("COMMIT")
        add(c, 1)
        assert c.execute("SELECT v FROM a WHERE id = 1").fetchall() == [(2,)]
