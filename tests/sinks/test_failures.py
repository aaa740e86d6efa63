"""File operations of the sinks fail: no event is missing or duplicated.

The sinks continue without a restart.
"""

from __future__ import annotations

import errno
import os
import random
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tailgate.lake.host import disk
from tailgate.sinks import worker
from tests.sinks.feed import FIRST_SINK, Feed, copy, events, until
from tests.sinks.running import Running, reached

FIRST_OPERATIONS = 8  # of a sink: its hold on the log, and its first report


@contextmanager
def failing(fails: Callable[[int], bool], *, after: bool) -> Iterator[list[str]]:
    """Makes file operations of sinks raise if `fails` accepts their number.

    They raise before they run, or after they have succeeded. Yields the names of the operations
    that failed.
    """
    failed: list[str] = []
    numbers = iter(range(1 << 62))
    lock = threading.Lock()

    def operation(name: str, path: Path, action: Callable[[], Any]) -> Any:
        def maybe_fail() -> None:
            with lock:
                fault = "sink-" in path.name and fails(next(numbers))
            if fault:
                failed.append(name)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

        if not after:
            maybe_fail()
        result = action()
        if after:
            maybe_fail()
        return result

    disk.hook = operation
    try:
        yield failed
    finally:
        disk.hook = None


def life(folder: Path, kafka: Kafka, registry: Registry, fails: Callable[[int], bool], *, after: bool) -> list[str]:
    """Runs a sink with a snapshot from its creation. Returns the operations that failed."""
    feed, topic = Feed(folder / "lake"), f"failures-{uuid.uuid4().hex[:8]}"
    feed.random_tick()
    running = Running(feed.lake)
    try:
        with failing(fails, after=after) as failed:
            feed.create_sink(kafka.address, registry.url, topic)
            for _ in range(10):
                feed.random_tick()
            until(lambda: events(kafka.address, topic) == feed.expected)
        feed.random_tick()
        until(lambda: reached(feed) and copy(feed.lake, FIRST_SINK)["status"] == "running")
    finally:
        running.stop()
    assert events(kafka.address, topic) == feed.expected
    assert copy(feed.lake)["status"] == "stopped"
    return failed


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes reports frequent, so that many can fail."""
    monkeypatch.setattr(worker, "COPY_INTERVAL", worker.COPY_INTERVAL / 20)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_many_file_operations_fail(tmp_path: Path, kafka: Kafka, registry: Registry, seed: int, after: bool) -> None:
    chance = random.Random(seed)
    failed = life(tmp_path, kafka, registry, lambda n: n == 0 or chance.random() < 0.2, after=after)
    assert len(failed) >= 2


@pytest.mark.long
@pytest.mark.parametrize("number", range(FIRST_OPERATIONS))
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_each_file_operation_fails(tmp_path: Path, kafka: Kafka, registry: Registry, number: int, after: bool) -> None:
    assert len(life(tmp_path, kafka, registry, lambda n: n == number, after=after)) == 1
