"""Tests that now() is never before the time of the rows that a SELECT reads, also after the clock is set back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tailgate.lake.log.entry import Header
from tests.tables.world import World

DAY_MS = 86_400_000


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "lake")
    yield world
    world.close()


def a_day_ahead(world: World) -> Header:
    """Appends an entry with a time a day ahead, as if the clock was set back afterwards. Returns its header."""
    header = world.engine.writer.append(time=world.engine.writer.newest.time + DAY_MS)
    world.together()
    return header


def test_now_is_not_before_the_time_of_the_log(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as c:
        c.execute("CREATE TABLE t (at bigint)")
        ((before,),) = c.execute("SELECT mz_now()").fetchall()
        c.execute("INSERT INTO t SELECT mz_now() + 3600000")  # an hour ahead
        query = "SELECT count(*) FROM t WHERE mz_now() >= at"
        assert c.execute(query).fetchone() == (0,)
        time = a_day_ahead(world).time
        assert c.execute(query).fetchone() == (1,)
        assert c.execute("SELECT mz_now(), extract(epoch FROM now()) * 1000 - mz_now()").fetchone() == (time, 0)
        assert before < time - DAY_MS + 3_600_000
        with c.transaction():
            assert c.execute(query).fetchone() == (1,)
