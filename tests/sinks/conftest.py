"""A lake with a view that changes, its sinks, and a Spark session for the tests that read a sink's messages back."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.conftest import cores, session
from tests.sinks.feed import Feed
from tests.sinks.running import Running

__all__ = ["cores", "session"]


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    return Feed(tmp_path / "lake")


@pytest.fixture
def topic() -> str:
    return "out-" + uuid.uuid4().hex[:8]


@pytest.fixture
def running(feed: Feed) -> Iterator[Running]:
    one = Running(feed.lake)
    yield one
    one.stop()
