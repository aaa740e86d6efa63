"""Kills gateways at random: followers resume without missing or doubled changes, and reads have one time."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from tailgate.embedded.children import Child, free_port
from tests.following import Tail
from tests.gateway.serving.model_lake import ModelLake, Row

pytestmark = pytest.mark.long

LIVES = 12
TICK_S = 0.02
KEYS = 40
ANSWER_S = 60.0


class Writer(threading.Thread):
    """A thread that writes ticks which move one unit between two rows, so that amounts always sum to zero."""

    def __init__(self, path: Path, seed: int) -> None:
        super().__init__(daemon=True)
        self.model = ModelLake(path)
        self.v = self.model.create("v")
        self.chance = random.Random(seed)
        self.rows: dict[int, Row] = {k: (k, "", 0.0) for k in range(KEYS)}
        self.last = self.model.tick({self.v.id: [(row, 1) for row in self.rows.values()]})
        self.ended = threading.Event()
        self.lock = threading.Lock()  # held during a tick

    def run(self) -> None:
        while not self.ended.wait(TICK_S):
            changes: list[tuple[Row, int]] = []
            for key, amount in zip(self.chance.sample(range(KEYS), 2), (1.0, -1.0), strict=True):
                old = self.rows[key]
                self.rows[key] = (key, f"{old[1]}x"[-7:], old[2] + amount)  # type: ignore[operator]
                changes += [(old, -1), (self.rows[key], 1)]
            with self.lock:
                self.last = self.model.tick({self.v.id: changes})


@pytest.fixture
def writer(tmp_path: Path, seed: int) -> Iterator[Writer]:
    writer = Writer(tmp_path / "lake", seed)
    writer.start()
    yield writer
    writer.ended.set()
    writer.join()
    writer.model.writer.close()


class Life:
    """A gateway process."""

    def __init__(self, data: Path) -> None:
        port = free_port()
        command = [sys.executable, "-m", "tailgate", "gateway", "--data", str(data), "--listen", f"127.0.0.1:{port}"]
        self.child = Child("gateway", command, log=data.parent / "gateway.log")
        self.dsn = f"host=127.0.0.1 port={port} user=ann dbname=shop"
        self.child.wait_ready(self._answers, timedelta(seconds=ANSWER_S))

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError), psycopg.connect(self.dsn):
            return True
        return False


class Follower(Tail):
    """A follower with TAIL; another connection reads the view meanwhile."""

    def __init__(self) -> None:
        super().__init__("v")
        self.reads = 0

    def follow(self, dsn: str, upto: int | None, reads: int = 0, then: Callable[[], None] = lambda: None) -> None:
        """Follows until the time `upto` or until the gateway is gone, and reads the complete view meanwhile.

        Calls `then` after `reads` of these reads, however long they take.
        """
        if reads == 0:
            then()
        with psycopg.connect(dsn) as connection, psycopg.connect(dsn, autocommit=True) as reader:
            self.open(connection)
            while upto is None or self.seen is None or self.seen < upto:
                self.fetch(connection)
                assert reader.execute("SELECT count(*), sum(amount) FROM v").fetchall() == [(KEYS, 0.0)]
                self.reads += 1
                reads -= 1
                if reads == 0:
                    then()


def test_followers_and_readers_survive(writer: Writer, tmp_path: Path, seed: int) -> None:
    chance, follower, expected_reads = random.Random(seed), Follower(), 0
    for _ in range(LIVES):
        gateway = Life(tmp_path / "lake")
        reads = chance.randrange(5)
        expected_reads += reads
        killing = threading.Timer(chance.uniform(0, 0.5), gateway.child.kill)
        with suppress(psycopg.OperationalError):
            follower.follow(gateway.dsn, None, reads, killing.start)
        gateway.child.kill()
    writer.ended.set()
    writer.join()
    gateway = Life(tmp_path / "lake")
    follower.follow(gateway.dsn, writer.last)
    gateway.child.kill()
    assert follower.reads >= expected_reads
    assert follower.rows == dict.fromkeys(writer.rows.values(), 1)
