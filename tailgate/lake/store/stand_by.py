"""A process that stands by: it waits until it may replace the running process of the same kind (W4).

    running process ── at an interval ──► lease: `Store.renew` of an object
    standing by     ── its place, one at a time ──► until the lock is free, or the lease has expired or was removed

A process that ends, also by SIGKILL, frees its lock at once. One that is stopped or hangs keeps it, and
its lease expires: it is unchanged in EXPIRED_LOOKS looks. The looks are counted by the process that
stands by, so wall clocks are never compared, and a machine that was suspended expires no lease. A
process that continues after its lease has expired is fenced: an engine by its epoch (W1), sinks by Kafka.

In a store without locks only the lease counts, and several processes may stand by. A process that stands by there has an
announcement, so that others know it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from tailgate.lake.store import announcements, documents
from tailgate.lake.store.announcements import SUFFIX
from tailgate.lake.store.documents import Document
from tailgate.lake.store.interface import Lock, NoLocks, Store

LOOKS = 2  # at the lease, in the time between two renewals
EXPIRED_LOOKS = 6  # three times that time without a renewal
LOCK_SUFFIX = ".lock"

T = TypeVar("T")

log = logging.getLogger("tailgate.lake")


class Lease:
    """The renewals of the running process's lease, by a thread, until `end`. `renew` renews it once."""

    def __init__(self, interval_s: float, renew: Callable[[], None]) -> None:
        self._interval_s = interval_s
        self._renew = renew
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                self._renew()
            except OSError as error:  # for example no space on the disk
                log.warning("the lease could not be renewed; it is tried again: %s", error)
            except Exception:
                log.exception("the lease could not be renewed; it is tried again")
            if self._ended.wait(self._interval_s):
                return

    def end(self) -> None:
        """Ends the renewals."""
        self._ended.set()
        self._thread.join()


class StandBy(Generic[T]):
    """The place of the process that stands by. `close` leaves it.

    `place` and `lock`: names, without suffix; the running process holds the lock. `lease`: returns a value
    that differs after each renewal, or None if no process has a lease. `interval_s`: between two renewals.
    """

    def __init__(self, store: Store, place: str, lock: str, lease: Callable[[], T | None], interval_s: float) -> None:
        """Waits while another process stands by."""
        self._store, self._lock, self._lease, self._look_s = store, lock, lease, interval_s / LOOKS
        self._announced = place + SUFFIX
        self._announcement: Document | None = None
        self._place = store.lock(place + LOCK_SUFFIX)
        try:
            self._place.wait()
        except NoLocks:
            self._announcement = announcements.of_this_process()
            documents.write(store, self._announced, self._announcement)

    def wait(self) -> T | None:
        """Waits until the process may start. Returns the lease that has expired, or None if the running process has ended."""
        free = threading.Event()
        has_locks = self._announcement is None
        if has_locks:
            threading.Thread(target=_wait_for_lock, args=(self._store.lock(self._lock), free), name="lock", daemon=True).start()
        before, unchanged = self._lease(), 0
        while unchanged < EXPIRED_LOOKS:
            if free.wait(self._look_s):
                return None
            try:
                lease = self._lease()
            except OSError as error:  # this process cannot know whether the lease was renewed
                log.warning("the lease could not be read; it is tried again: %s", error)
                unchanged = 0
                continue
            if lease is None and not has_locks:
                return None
            unchanged = unchanged + 1 if lease is not None and lease == before else 0
            before = lease
        return before

    def close(self) -> None:
        """Lets another process stand by. May be called again."""
        if self._announcement is not None and documents.read(self._store, self._announced) == self._announcement:
            self._store.discard([self._announced])
        self._place.release()


def standing_by(store: Store, place: str) -> bool:
    """Returns whether a process has this place. In a store without locks, one that was killed on another machine still counts."""
    if store.locked(place + LOCK_SUFFIX):
        return True
    announcement = documents.read(store, place + SUFFIX)
    return announcement is not None and not announcements.ended(announcement)


def _wait_for_lock(lock: Lock, free: threading.Event) -> None:
    """Waits until no process holds the lock, then sets `free`."""
    lock.wait()
    lock.release()
    free.set()
