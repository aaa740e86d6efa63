"""Work that is repeated beside a measurement."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeated(every: float, work: Callable[[], None]) -> Iterator[None]:
    """Does some work in a thread every so many seconds, within the block. Raises its error at the end."""
    ended, errors = threading.Event(), list[Exception]()

    def run() -> None:
        try:
            while not ended.wait(every):
                work()
        except Exception as error:  # noqa: BLE001  # raised at the end of the block
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if errors:
        raise errors[0]
