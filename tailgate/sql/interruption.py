"""Interruption of long SQL functions: they check whether the statement of their thread was canceled.

DuckDB asks between two vectors of 2,048 values, each of which one of our functions may take a second for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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


def check() -> None:
    """Raises if the work of this thread is to end."""
    if _local.check is not None:
        _local.check()
