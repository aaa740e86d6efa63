"""Engine and gateway killed at each step of a write in turn: what was acknowledged is there once, what was not at most once.

Keyed rows and bags, with a view over them that a real engine keeps; the writers never stop.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from embedded.children import Child, free_port
from lake import Lake
from tests.engine.runtime.parts import EngineProcess, rows, until

pytestmark = [pytest.mark.spark, pytest.mark.long]

STEPS = (
    "write.begin:3",  # let in, nothing written
    "inbox.entry:3",  # the file not yet there
    "inbox.link:3",  # linked, the folder not yet synced
    "inbox.linked:3",  # durable, nobody was told
    "tick.begin:3",
    "state.committed:3",
    "entry.link:3",  # before the link of the log's entry
    "entry.linked:3",  # after it
    "entry.committed:3",  # the entry of the inbox not yet removed
)


class Shop:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engine = EngineProcess(folder / "lake")
        self.engine.start()
        self.lake = Lake(folder / "lake")
        self.port = free_port()
        self.gateway = self.start_gateway()
        with self.connect() as c:
            c.execute("CREATE TABLE keyed (id int PRIMARY KEY, writer int)")
            c.execute("CREATE TABLE bag (writer int)")
            c.execute("CREATE MATERIALIZED VIEW counts AS SELECT k.writer, count(*) AS n FROM keyed k GROUP BY k.writer")
        self.writers = [Writer(self, number) for number in range(3)]
        for writer in self.writers:
            writer.start()

    def start_gateway(self) -> Child:
        command = [sys.executable, "-m", "cli", "gateway", "--data", str(self.folder / "lake"), "--listen", f"127.0.0.1:{self.port}"]
        child = Child("gateway", command, log=self.folder / "gateway.log")
        until(lambda: self.connect().close() is None)
        return child

    def connect(self) -> psycopg.Connection[Any]:
        try:
            return psycopg.connect(f"host=127.0.0.1 port={self.port} user=a dbname=b", autocommit=True, connect_timeout=5)
        except psycopg.OperationalError as error:
            raise OSError(str(error)) from error

    def kill_gateway(self) -> None:
        os.kill(self.gateway.pid, signal.SIGKILL)
        self.gateway.wait(timedelta(seconds=30))
        self.gateway = self.start_gateway()

    def check(self) -> None:
        for writer in self.writers:
            writer.stop()
        keyed, bag = rows(self.lake, "keyed"), rows(self.lake, "bag")
        assert set(keyed.values()) <= {1}
        for writer in self.writers:
            mine = {id for id, who in keyed if who == writer.number}
            assert writer.written <= mine, "an acknowledged row is lost"
            assert mine <= writer.written | writer.unknown, "a row that nobody wrote"
            assert len(writer.written) <= bag[(writer.number,)] <= len(writer.written) + len(writer.unknown)
            assert bag[(writer.number,)] == len(mine), "half of a block"
        until(lambda: dict(rows(self.lake, "counts")) == dict.fromkeys(Counter(w for _, w in keyed).items(), 1))

    def end(self) -> None:
        for writer in self.writers:
            writer.going = False
        self.gateway.stop()
        self.engine.stop()


class Writer(threading.Thread):
    """Blocks of one row in each table. `unknown`: of those that it was told nothing certain."""

    def __init__(self, shop: Shop, number: int) -> None:
        super().__init__(daemon=True)
        self.shop, self.number = shop, number
        self.going = True
        self.written: set[int] = set()
        self.unknown: set[int] = set()

    def run(self) -> None:
        next_id = self.number
        connection: psycopg.Connection[Any] | None = None
        while self.going:
            next_id += 3
            try:
                connection = connection or self.shop.connect()
                self.unknown.add(next_id)
                with connection.transaction():
                    connection.execute("INSERT INTO keyed VALUES (%s, %s)", (next_id, self.number))
                    connection.execute("INSERT INTO bag VALUES (%s)", (self.number,))
                self.written.add(next_id)
                self.unknown.discard(next_id)
            except (psycopg.OperationalError, psycopg.errors.SystemError, OSError):
                if connection is not None and connection.broken:
                    connection.close()
                    connection = None
                time.sleep(0.1)
        if connection is not None:
            connection.close()

    def stop(self) -> None:
        self.going = False
        self.join(60)
        assert not self.is_alive(), "a writer waits for ever"

    def moves(self) -> bool:
        """Whether it writes now."""
        before = len(self.written)
        until(lambda: len(self.written) > before + 2)
        return True


@pytest.fixture
def shop(tmp_path: Path):  # type: ignore[no-untyped-def]
    made = Shop(tmp_path)
    yield made
    made.end()


def test_an_engine_killed_while_it_writes(shop: Shop) -> None:
    assert all(writer.moves() for writer in shop.writers)
    shop.engine.kill(jvm=True)
    shop.engine.start()
    assert all(writer.moves() for writer in shop.writers)
    shop.check()


def test_killed_at_every_step(shop: Shop) -> None:
    for step in STEPS:
        assert all(writer.moves() for writer in shop.writers)
        shop.engine.stop()
        shop.engine.start(crash=step)
        shop.engine.died()
        shop.engine.start(crash="inbox.taken:1" if step == "inbox.link:3" else "")
        if step == "inbox.link:3":
            shop.engine.died()
            shop.engine.start()
        shop.kill_gateway()
    assert all(writer.moves() for writer in shop.writers)
    shop.check()
