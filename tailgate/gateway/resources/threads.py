"""Executors whose threads run from the start.

A process that is short of memory cannot start a thread, so a statement must not need a new one.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

BLOCKING = 8  # threads for short blocking calls of the event loop


def started(threads: int, name: str) -> ThreadPoolExecutor:
    """Returns an executor of which all threads run."""
    pool = ThreadPoolExecutor(threads, name)
    all_run = threading.Barrier(threads)
    for waiting in [pool.submit(all_run.wait) for _ in range(threads)]:
        waiting.result()
    return pool
