"""The current activity of one session."""

from __future__ import annotations

import time

from tailgate.gateway.session.statements.lanes import Lane
from tailgate.gateway.session.statements.portals import Portal

QUERY_BYTES_MAX = 1024  # PostgreSQL's track_activity_query_size


class Activity:
    """The current activity of one session. Times are in seconds since the epoch.

    `asked` is called at the start of each statement and `ended` after it. `lane` is its kind, and `clock` its start by the monotonic clock.
    `part`: its text, if `query` has several statements. `rows`: how many it returned or changed. `portal`: the one that it runs.
    """

    __slots__ = ("asked_at", "began", "block_at", "changed_at", "clock", "lane", "part", "portal", "query", "rows", "running")

    def __init__(self) -> None:
        self.began = self.asked_at = self.changed_at = time.time()
        self.block_at: float | None = None
        self.query: bytes = b""
        self.running = False
        self.clock = time.monotonic()
        self.lane: Lane = "unknown"
        self.part: bytes | None = None
        self.rows = 0
        self.portal: Portal | None = None

    def asked(self, query: bytes) -> None:
        """Records the start of a statement."""
        self.query, self.running = query[:QUERY_BYTES_MAX], True
        self.asked_at = self.changed_at = time.time()
        self.next(time.monotonic())

    def next(self, clock: float) -> None:
        """Resets what belongs to one statement; it begins at `clock`."""
        self.clock, self.lane, self.part, self.rows, self.portal = clock, "unknown", None, 0, None

    def polled(self, query: bytes) -> None:
        """Records a statement that was answered immediately."""
        self.query = query[:QUERY_BYTES_MAX]
        self.asked_at = self.changed_at = time.time()

    def ended(self, in_block: bool) -> None:
        """Records the end of a statement."""
        self.running = False
        self.changed_at = time.time()
        if not in_block:
            self.block_at = None
        elif self.block_at is None:
            self.block_at = self.asked_at
