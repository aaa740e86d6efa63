"""Whether somebody wants the statement that this thread runs to end: asked by functions of ours that may take long.

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
    """`check` raises if the work of this thread is to end."""
    before, _local.check = _local.check, check
    try:
        yield
    finally:
        _local.check = before


def check() -> None:
    """Raises if the work of this thread is to end."""
    if _local.check is not None:
        _local.check()
