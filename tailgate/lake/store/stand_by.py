"""A process that stands by: it waits until it may replace the running process of the same kind (W4).

    running process ── every `Store.lease_s` ──► lease: `Store.renew` of its announcement
    standing by     ── its place, one at a time ──► until the lock is free, or the lease has expired

A process that ends, also by SIGKILL, frees its lock at once. One that is stopped or hangs keeps it, and
its lease expires: it is unchanged in EXPIRED_LOOKS looks. The looks are counted by the process that
stands by, so wall clocks are never compared, and a machine that was suspended expires no lease. A
process that continues after its lease has expired is fenced: an engine by its epoch (W1), sinks by Kafka.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Hashable

from tailgate.lake.store.interface import Lock, NoLocks, Store

LOOKS = 2  # at the lease, in the time between two renewals
EXPIRED_LOOKS = 6  # three times that time without a renewal


class Lease:
    """The renewals of the running process's lease, by a thread, until `end`. `renew` renews it once."""

    def __init__(self, store: Store, renew: Callable[[], None]) -> None:
        self._interval_s = store.lease_s
        self._renew = renew
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(self._interval_s):
            with contextlib.suppress(OSError):  # for example no space on the disk; the next renewal may succeed
                self._renew()

    def end(self) -> None:
        """Ends the renewals."""
        self._ended.set()
        self._thread.join()


class StandBy:
    """The place of the process that stands by. `close` leaves it.

    `place` and `lock`: names; the running process holds the lock on the latter. `lease`: returns a value
    that differs after each renewal, or None if no running process has a lease.
    """

    def __init__(self, store: Store, place: str, lock: str, lease: Callable[[], Hashable]) -> None:
        """Waits while another process stands by."""
        self._store, self._lock, self._lease = store, lock, lease
        self._place = store.lock(place)
        with contextlib.suppress(NoLocks):
            self._place.wait()

    def wait(self) -> bool:
        """Waits until the process may start. Returns whether it must take over from one that holds the lock."""
        free = threading.Event()
        threading.Thread(target=_wait_for_lock, args=(self._store.lock(self._lock), free), name="lock", daemon=True).start()
        before, unchanged = self._lease(), 0
        while unchanged < EXPIRED_LOOKS:
            if free.wait(self._store.lease_s / LOOKS):
                return False
            lease = self._lease()
            unchanged = unchanged + 1 if lease is not None and lease == before else 0
            before = lease
        return True

    def close(self) -> None:
        """Lets another process stand by. May be called again."""
        self._place.release()


def _wait_for_lock(lock: Lock, free: threading.Event) -> None:
    """Waits until no process holds the lock, then sets `free`."""
    with contextlib.suppress(NoLocks):  # then only the lease counts
        lock.wait()
        lock.release()
        free.set()
