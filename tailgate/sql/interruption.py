"""Interruption of long SQL functions: they check whether the statement of their thread was canceled.

DuckDB checks between two vectors of 2,048 values, for each of which a function may take a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

CHECK_S = 0.05  # between two checks while a statement sleeps


class _Local(threading.local):
    check: Callable[[], None] | None = None


_local = _Local()


@contextmanager
def asking(check: Callable[[], None]) -> Iterator[None]:
    """Sets the function that `check()` calls in this thread within the block. It raises an error if the work must end."""
    before, _local.check = _local.check, check
    try:
        yield
    finally:
        _local.check = before


def sleep(seconds: float) -> None:
    """Sleeps; raises if the work of this thread is to end."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        check()
        time.sleep(min(left, CHECK_S))
    check()


def check() -> None:
    """Raises if the work of this thread is to end."""
    if _local.check is not None:
        _local.check()
