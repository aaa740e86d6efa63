"""Executors whose threads run from the start.

A process that is short of memory cannot start a thread, so a statement must not need a new one.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

BLOCKING = 8  # threads for short blocking calls of the event loop


def started(count: int, name: str) -> ThreadPoolExecutor:
    """Returns an executor of which all threads run."""
    pool = ThreadPoolExecutor(count, name)
    released = threading.Event()
    for _ in range(count):
        pool.submit(released.wait)  # starts a thread, because no thread is idle
    released.set()
    return pool
