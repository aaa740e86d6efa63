"""The process `tailgate sinks` of a lake: its lock, sinks.lock, and its announcement, sinks.json.

Others notice from the announcement that it was killed. It also carries the process's lease
(`lake.store.stand_by`). A process that starts without `--stand-by` replaces the one that runs.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress

from tailgate.lake.folder import Lake
from tailgate.lake.store import NoLocks, announcements, documents
from tailgate.lake.store.stand_by import StandBy

FILE, LOCK, PLACE = "sinks.json", "sinks.lock", "sinks-stand-by"
LEASE_S, LEASE_LOOKS = 1.0, 10  # between two renewals of the lease: a second, at least so many times `Store.look_s`


def stand_by(lake: Lake) -> StandBy[tuple[documents.Document, Hashable]]:
    """Returns the place of the process that stands by, once no other process has it."""
    return StandBy(lake.store, PLACE, LOCK, lambda: lease(lake), lease_s(lake))


def lease(lake: Lake) -> tuple[documents.Document, Hashable] | None:
    """Returns the announcement of the process, and a value that differs after each renewal of its lease; None if no process runs."""
    return documents.renewed(lake.store, FILE)


def lease_s(lake: Lake) -> float:
    """Returns the seconds between two renewals of the lease: 5 s in a bucket, where each is a request."""
    return max(LEASE_S, LEASE_LOOKS * lake.store.look_s)


class SinksProcess:
    """The calling process, as the one that runs the sinks of a lake."""

    def __init__(self, lake: Lake) -> None:
        """Announces this process. From now on another one that runs the sinks is replaced."""
        self._lake = lake
        self._lock = lake.store.lock(LOCK)
        with suppress(NoLocks):
            if not self._lock.take():
                self._lock.replace()
        self._content = announcements.of_this_process()
        documents.write(lake.store, FILE, self._content)

    def renew(self) -> bool:
        """Renews the lease. Returns False if another process has replaced this one."""
        return documents.renew(self._lake.store, FILE, lambda document: document == self._content)

    def end(self) -> None:
        """Removes the announcement, unless another process has announced itself, and releases the lock."""
        if documents.read(self._lake.store, FILE) == self._content:
            self._lake.store.discard([FILE])
        self._lock.release()


def ended_unexpectedly(lake: Lake) -> bool:
    """Returns whether the process that has announced itself on this machine does not exist any more."""
    announcement = documents.read(lake.store, FILE)
    return announcement is not None and announcements.ended(announcement)
