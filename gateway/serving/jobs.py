"""Statements on threads, interruptible: a cancelled task stops its statement inside DuckDB within milliseconds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from gateway.serving.failures import translated
from lake.errors import QueryCanceled

WORKERS = 4  # statements side by side: two cores are busy with two, and a long one does not keep the short ones waiting
WAITING_AT_MOST = 1000  # statements that wait for a worker; more would be answered after their clients gave up

Result = TypeVar("Result")


class Interruptible(Protocol):
    def interrupt(self) -> None: ...


class Job:
    """Where a statement runs now, so that it can be interrupted there and nowhere else."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._on: Interruptible | None = None
        self.cancelled = False

    def running(self, on: Interruptible | None) -> None:
        """What to interrupt from here on; None: nothing."""
        with self._lock:
            self._on = on
            if self.cancelled and on is not None:
                raise QueryCanceled("canceling statement due to user request")

    def cancel(self) -> None:
        with self._lock:
            self.cancelled = True
            if self._on is not None:
                self._on.interrupt()


class Jobs:
    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(WORKERS, "tailgate-query")

    async def run(self, work: Callable[[Job], Result], timeout: float | None = None) -> Result:
        """What `work` gives. It calls `job.running(cursor)` before a statement and `job.running(None)` after it."""
        job = Job()
        future = asyncio.get_running_loop().run_in_executor(self._pool, work, job)
        try:
            done, _ = await asyncio.wait([future], timeout=timeout)
            if not done:
                job.cancel()
                await asyncio.wait([future])
                future.exception()
                raise QueryCanceled("canceling statement due to statement timeout")
            return future.result()
        except asyncio.CancelledError:
            job.cancel()
            future.add_done_callback(lambda f: f.cancelled() or f.exception())
            raise
        except Exception as error:
            raise translated(error) from error

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
