"""Engine and gateway are killed at each step of a write.

An acknowledged write is there once, any other write at most once. The tables are keyed rows and
bags, with a view over them that a real engine maintains. The writers never stop.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.embedded.children import Child, free_port
from tailgate.lake.folder import Lake
from testing.engine_process import EngineProcess, rows, until
from tests.tables.writers import TABLES, Writer, checked

pytestmark = [pytest.mark.spark, pytest.mark.long]

STEPS = (
    "write.begin:3",  # admitted, nothing written
    "inbox.entry:3",  # the file does not exist yet
    "inbox.link:3",  # linked, the folder is not synced
    "inbox.linked:3",  # durable, not acknowledged
    "tick.begin:3",
    "state.committed:3",
    "entry.link:3",  # before the link of the log entry
    "entry.linked:3",  # after it
    "entry.committed:3",  # the inbox entry is not removed yet
)


class Shop:
    """An engine, a gateway and three writers over one lake."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engine = EngineProcess(folder / "lake")
        self.engine.start()
        self.lake = Lake(folder / "lake")
        self.port = free_port()
        self.gateway = self.start_gateway()
        with self.connect() as c:
            for statement in TABLES:
                c.execute(statement)
            c.execute("CREATE MATERIALIZED VIEW counts AS SELECT k.writer, count(*) AS n FROM keyed k GROUP BY k.writer")
        self.writers = [Writer(self.connect, number) for number in range(3)]
        for writer in self.writers:
            writer.start()

    def start_gateway(self) -> Child:
        command = [sys.executable, "-m", "tailgate", "gateway", "--data", str(self.folder / "lake"), "--listen", f"127.0.0.1:{self.port}"]
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
        keyed = checked(self.lake, self.writers)
        until(lambda: dict(rows(self.lake, "counts")) == dict.fromkeys(Counter(w for _, w in keyed).items(), 1))

    def end(self) -> None:
        for writer in self.writers:
            writer.going = False
        self.gateway.stop()
        self.engine.stop()


@pytest.fixture
def shop(tmp_path: Path):  # type: ignore[no-untyped-def]
    new_shop = Shop(tmp_path)
    yield new_shop
    new_shop.end()


def test_an_engine_killed_while_it_writes(shop: Shop) -> None:
    assert all(writer.moves() for writer in shop.writers)
    shop.engine.kill(jvm=True)
    shop.engine.start()
    assert all(writer.moves() for writer in shop.writers)
    shop.check()


def test_no_update_is_lost_while_the_jvm_is_gone(shop: Shop) -> None:
    """The driver continues to accept writes for a moment: each of them sees those before it."""
    for _ in range(3):
        assert all(writer.moves() for writer in shop.writers)
        shop.engine.kill(python=False, jvm=True)
        shop.engine.start()
    assert all(writer.moves() for writer in shop.writers)
    shop.check()


def test_killed_at_every_step(shop: Shop) -> None:
    for step in STEPS:
        assert all(writer.moves() for writer in shop.writers)
        shop.engine.stop()
        shop.engine.start(crash=step)
        shop.engine.died(300)
        shop.engine.start(crash="inbox.taken:1" if step == "inbox.link:3" else "")
        if step == "inbox.link:3":
            shop.engine.died(300)
            shop.engine.start()
        shop.kill_gateway()
    assert all(writer.moves() for writer in shop.writers)
    shop.check()
