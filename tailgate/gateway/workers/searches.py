"""Runs regular expression searches of unbounded duration in worker processes, which can be ended.

DuckDB's functions call this on the thread of a statement.
"""

from __future__ import annotations

import threading
import time

from tailgate.gateway.workers.pool import Worker
from tailgate.lake.errors import ProgramLimitExceeded
from tailgate.lake.host.readiness import readable
from tailgate.sql import interruption
from tailgate.sql.compute.regexp.search import Spans, find_spans

SEARCH_S = 10.0  # seconds for one search in one text
CHECK_S = 0.05  # seconds between checks whether the statement is cancelled
PROCESSES = 4  # idle processes that are kept for later searches


class Searches:
    """A pool of worker processes for searches. `size` is the memory of each, in bytes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._idle: list[Worker] = []

    def __call__(self, pattern: str, text: str, at: int) -> Spans | None:
        """Returns the first match at or after position `at`. Raises 54000 if it takes too long."""
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        worker = worker or Worker(self._size)
        try:
            worker.ask(find_spans, pattern, text, at)
            until = time.monotonic() + SEARCH_S
            while not readable([worker], CHECK_S):
                interruption.check()
                if time.monotonic() > until:
                    raise ProgramLimitExceeded("regular expression takes too long", hint="Look for it in a shorter text.")
            spans: Spans | None = worker.answer()
        except BaseException:
            worker.end()
            raise
        with self._lock:
            if len(self._idle) < PROCESSES:
                self._idle.append(worker)
                return spans
        worker.end()
        return spans
