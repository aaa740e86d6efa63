"""Waiting for files and sockets."""

from __future__ import annotations

import select
from collections.abc import Iterable
from typing import Protocol


class HasDescriptor(Protocol):
    """A file, a socket or a connection of another kind."""

    def fileno(self) -> int: ...


def readable(files: Iterable[HasDescriptor], timeout_s: float | None = None) -> set[int]:
    """Returns the descriptors that can be read or have ended; waits for one, at most for `timeout_s`, by default without a limit.

    Unlike `select`, it takes the descriptors of a process with thousands of clients.
    """
    poll = select.poll()
    for file in files:
        poll.register(file.fileno(), select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(None if timeout_s is None else timeout_s * 1000)}
