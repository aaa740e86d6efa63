"""A time limit for tests of algorithms that could take exponential time."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

LIMIT_S = 20  # enough for a busy machine


@contextlib.contextmanager
def limited(seconds: int = LIMIT_S) -> Iterator[None]:
    """Returns a context that raises TimeoutError after `seconds`. Works in the main thread only."""

    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
