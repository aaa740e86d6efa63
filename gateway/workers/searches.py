"""Searches for regular expressions that may take any time, in processes that can be ended.

Called by functions that DuckDB calls, on the thread of a statement: one process for each thread, as long as its statement lasts.
"""

from __future__ import annotations

import select
import threading
import time

from gateway.workers.pool import Worker
from lake.errors import of
from sql import interruption
from sql.compute.regexp.search import Spans, find_spans

SEARCH_S = 10.0  # of one search in one text
CHECK_S = 0.05  # between two looks whether the statement is to end
PROCESSES = 4  # that wait for the next search


class Searches:
    """`size`: the memory of a process, in bytes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._idle: list[Worker] = []

    def __call__(self, pattern: str, text: str, at: int) -> Spans | None:
        """The first match from a character on. Raises 54000 if it takes too long."""
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        worker = worker or Worker(self._size)
        try:
            worker.ask(find_spans, pattern, text, at)
            until = time.monotonic() + SEARCH_S
            while not select.select([worker], [], [], CHECK_S)[0]:
                interruption.check()
                if time.monotonic() > until:
                    raise of("54000", "regular expression takes too long", hint="Look for it in a shorter text.")
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
