"""Runs statements on threads, interruptibly: cancelling the task stops DuckDB within milliseconds.

A statement needs a turn (`gateway.resources.concurrency`). After LONG_S seconds it moves to the turns of long
statements, so short statements only wait for short ones. Each role has a share of both kinds of
turns. A statement that cannot be interrupted keeps its turn until it ends.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from tailgate.gateway.resources.concurrency import NOBODY, REQUESTER, RESERVE, Limiter, Requester
from tailgate.gateway.resources.threads import started
from tailgate.gateway.serving.failures import translated
from tailgate.lake.errors import OutOfMemory, QueryCanceled, TailgateError
from tailgate.sql import interruption

AT_ONCE, EACH = 8, 4  # short statements, in total and per role; two of them keep two cores busy
LONG, LONG_EACH = 32, 12  # long statements, in total and per role: they share DuckDB's memory
LONG_S = 0.5  # seconds after which a statement counts as long
A_WHILE_S = 0.2  # seconds after which a statement may be ended to free memory
AGAIN_S = 0.05  # seconds between interrupts: DuckDB ignores an interrupt before the statement has started

Result = TypeVar("Result")


class Interruptible(Protocol):
    """An object, such as a DuckDB connection, whose running statement can be interrupted."""

    def interrupt(self) -> None: ...


class Job:
    """A running statement, which can be interrupted wherever it currently runs."""

    def __init__(self, requester: Requester = NOBODY) -> None:
        self._lock = threading.Lock()
        self._on: Interruptible | None = None
        self.requester = requester
        self.began = time.monotonic()
        self.cancelled = False
        self.reason: TailgateError | None = None  # why it was ended, if not at the client's request

    def running(self, on: Interruptible | None) -> None:
        """Sets what `cancel` interrupts from now on; None: nothing. Raises if already cancelled."""
        with self._lock:
            self._on = on
            if on is not None:
                self.check()

    def check(self) -> None:
        """Raises the reason, or QueryCanceled, if the job is cancelled."""
        if self.cancelled:
            raise self.reason or QueryCanceled("canceling statement due to user request")

    def cancel(self, reason: TailgateError | None = None) -> None:
        with self._lock:
            self.cancelled = True
            self.reason = self.reason or reason
            if self._on is not None:
                self._on.interrupt()


class Jobs:
    """Threads that run statements. With `long` 0, all statements share one kind of turns."""

    def __init__(self, name: str, most: int = AT_ONCE, each: int = EACH, long: int = LONG, long_each: int = LONG_EACH) -> None:
        self.turns = Limiter(most, each, long, long_each)
        self._running: dict[Job, asyncio.Future[Any]] = {}
        self._pool = started(most + long + 2 * RESERVE, name)

    @property
    def running(self) -> int:
        """Returns the number of statements that run."""
        return len(self._running)

    async def run(self, work: Callable[[Job], Result], timeout: float | None = None) -> Result:
        """Returns the result of `work`, which runs on a thread in the context of the current task.

        `work` calls `job.running(cursor)` before a statement and `job.running(None)` after it.
        Cancelling the task interrupts it; after `timeout` seconds QueryCanceled is raised.
        """
        loop = asyncio.get_running_loop()
        turn = self.turns.try_take(REQUESTER.get()) or await self.turns.take(REQUESTER.get())
        job = Job(turn.requester)
        try:
            future = loop.run_in_executor(self._pool, contextvars.copy_context().run, _watched, work, job)
        except BaseException:
            job.cancel()  # a pool thread may still pick up the work
            turn.release()
            raise
        timer = loop.call_later(LONG_S, turn.lengthen, LONG_S)

        self._running[job] = future

        def ended(future: asyncio.Future[Result]) -> None:
            del self._running[job]
            timer.cancel()
            turn.release()
            if not future.cancelled():
                future.exception()

        future.add_done_callback(ended)
        try:
            finished, _ = await asyncio.wait([future], timeout=timeout)
            if not finished:
                _stop(loop, job, future)
                await asyncio.wait([future])
                raise QueryCanceled("canceling statement due to statement timeout")
            return future.result()
        except asyncio.CancelledError:
            _stop(loop, job, future)
            raise
        except MemoryError:
            raise OutOfMemory("out of memory") from None
        except Exception as error:
            raise job.reason or translated(error) from error

    def end_long(self, *, superusers: bool) -> int:
        """Ends long-running jobs to free memory; returns their number.

        Jobs of superusers are ended only if `superusers` is true.
        """
        before = time.monotonic() - A_WHILE_S
        loop = asyncio.get_running_loop()
        jobs = [job for job in self._running if job.began < before and not job.cancelled and (superusers or not job.requester.superuser)]
        for job in jobs:
            _stop(loop, job, self._running[job], OutOfMemory("out of memory", detail="The gateway is short of memory."))
        return len(jobs)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


class _Local(threading.local):
    job: Job | None = None


_local = _Local()


def current() -> Job:
    """Returns the job of the current thread, or a new one."""
    return _local.job or Job()


def _watched(work: Callable[[Job], Result], job: Job) -> Result:
    _local.job = job
    try:
        with interruption.asking(job.check):
            return work(job)
    finally:
        _local.job = None


def _stop(loop: asyncio.AbstractEventLoop, job: Job, future: asyncio.Future[Any], reason: TailgateError | None = None) -> None:
    """Interrupts the job repeatedly until it has ended."""
    if not future.done() and not loop.is_closed():
        job.cancel(reason)
        loop.call_later(AGAIN_S, _stop, loop, job, future)
