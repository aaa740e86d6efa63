"""A time limit for what must not take days: a cost that doubles with each level."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

LIMIT_S = 20  # of a busy machine


@contextlib.contextmanager
def limited(seconds: int = LIMIT_S) -> Iterator[None]:
    """Raises TimeoutError in what takes longer; in a main thread."""

    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
