"""Tests that a long statement does not block the event loop, by the loop's CPU time between two beats.

CPU time of the thread is measured, not elapsed time, because it does not depend on the machine's
load.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import psycopg
import pytest

from tests.tables.world import World

HELD_S_MAX = 0.1  # 2-20 ms measured; 150-600 ms if the event loop binds these statements
ROWS = 3000
STATEMENTS = {
    "IN": "SELECT 1 WHERE 1 IN (" + ", ".join(map(str, range(3 * ROWS))) + ")",
    "VALUES": "SELECT count(*) FROM (VALUES " + ", ".join(f"({n}, 'x{n}')" for n in range(ROWS)) + ") AS q",
    "the system catalog's words": "SELECT current_user WHERE 1 IN (" + ", ".join(map(str, range(ROWS))) + ")",
    "INSERT": "INSERT INTO w VALUES " + ", ".join(f"({n}, 'x{n}')" for n in range(ROWS)),
    "CASE": "SELECT CASE " + " ".join(f"WHEN {n} = 0 THEN {n}" for n in range(1, ROWS // 2)) + " END",
}


class Beats:
    """A periodic task that measures the longest CPU time of the loop's thread between two beats, in seconds."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def run(self) -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(0.005)
            now = time.thread_time()
            self.longest, last = max(self.longest, now - last), now


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("long") / "lake")
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE w (a int PRIMARY KEY, b text)")
    yield world
    world.close()


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_event_loop_is_not_blocked(world: World, name: str) -> None:
    loop, beats = world.gateways[0].loop, Beats()
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("SELECT 1")
        beating = asyncio.run_coroutine_threadsafe(beats.run(), loop)
        try:
            connection.execute(STATEMENTS[name].encode())
            time.sleep(0.02)  # the beat after the last piece of work
        finally:
            beating.cancel()
    assert 0 < beats.longest < HELD_S_MAX
