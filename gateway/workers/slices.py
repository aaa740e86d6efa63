"""A bound on the CPU that one piece of work takes in the event loop.

A timer's signal raises `Exceeded` in the work, which must therefore change nothing that outlives it: parsing and binding are functions
of their arguments. Only the main thread of a process gets signals; in others there is no bound, and long texts go to a process at once.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

SLICE_S = 0.02  # CPU of the event loop; nobody else is served meanwhile
AGAIN_S = 0.005  # until the next look, where others had the processor

Result = TypeVar("Result")


class Exceeded(BaseException):
    """The work took longer than its slice. No Exception, so that nothing on the way takes it for an error of the statement."""


class _Slice:
    enabled = False
    active = False
    began = 0.0


def enable() -> None:
    """Bounds work from here on; in the main thread."""
    signal.signal(signal.SIGALRM, _over)
    _Slice.enabled = True


def bounded() -> bool:
    """Whether `run` has a bound here."""
    return _Slice.enabled and threading.current_thread() is threading.main_thread()


def run(work: Callable[..., Result], *arguments: Any) -> Result:
    """What `work` gives. Raises Exceeded if it takes longer than a slice."""
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
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S)  # where it is raised in a finalizer, Python forgets it
    if time.thread_time() - _Slice.began >= SLICE_S and frame is not None and frame.f_code is not run.__code__:
        raise Exceeded
