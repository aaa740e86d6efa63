"""Limits the CPU time of one piece of work in the event loop.

A timer signal raises `Exceeded` inside the work. The work must therefore have no side effects:
parsing and binding depend on their arguments only. Only the main thread receives signals. Other
threads have no limit, and long texts go to a worker process directly.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

SLICE_S = 0.02  # CPU seconds; the event loop is blocked meanwhile
AGAIN_S = 0.005  # seconds until the next check, if other threads used the processor

Result = TypeVar("Result")


class Exceeded(BaseException):
    """The work took longer than its slice.

    Not an Exception, so that no handler on the way treats it as an error of the statement.
    """


class _Slice:
    """The state of the current slice of this process."""

    enabled = False
    active = False
    began = 0.0


def enable() -> None:
    """Enables the limit. Call it in the main thread."""
    signal.signal(signal.SIGALRM, _over)
    _Slice.enabled = True


def bounded() -> bool:
    """Tells whether `run` enforces a limit on this thread."""
    return _Slice.enabled and threading.current_thread() is threading.main_thread()


def run(work: Callable[..., Result], *arguments: Any) -> Result:
    """Returns the result of `work`. Raises Exceeded if it takes longer than a slice."""
    if not bounded():
        return work(*arguments)
    _Slice.began = time.thread_time()
    try:
        _Slice.active = True
        signal.setitimer(signal.ITIMER_REAL, SLICE_S)
        return work(*arguments)
    finally:
        _Slice.active = False
        signal.setitimer(signal.ITIMER_REAL, 0)


def _over(number: int, frame: FrameType | None) -> None:
    if not _Slice.active:
        return
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S)  # again, because Python swallows an exception in a finalizer
    if time.thread_time() - _Slice.began >= SLICE_S and frame is not None and frame.f_code is not run.__code__:
        raise Exceeded
