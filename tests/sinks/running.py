"""Sinks that run in a thread of a test's process."""

from __future__ import annotations

import threading

from tailgate.lake.folder import Lake
from tailgate.sinks.main import Sinks
from tests.sinks.feed import FIRST_SINK, Feed, copy


class Running:
    """The sinks of a lake, in a thread of the test's process."""

    def __init__(self, lake: Lake) -> None:
        self.sinks = Sinks(lake)
        self.thread = threading.Thread(target=self.sinks.follow)
        self.thread.start()

    def stop(self) -> None:
        self.sinks.stop()
        self.thread.join(40)
        assert not self.thread.is_alive()


def reached(feed: Feed, sink: int = FIRST_SINK) -> bool:
    newest = feed.lake.log.newest()
    assert newest is not None
    return copy(feed.lake, sink).get("n") == newest.n
