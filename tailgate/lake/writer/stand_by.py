"""An engine that stands by: it waits until it may replace the running engine (W4).

    running engine ── every RENEWED_S ──► lease: the modification time of engine.json
    standing by    ── stand-by.lock, one at a time ──► until engine.lock is free, or the lease has expired

An engine that ends, also by SIGKILL, frees engine.lock at once. One that is stopped or hangs keeps it,
and its lease expires: it is unchanged in EXPIRED_LOOKS looks. The looks are counted by the process that
stands by, so wall clocks are never compared, and a machine that was suspended expires no lease. An
engine that continues after its lease has expired cannot write to the log any more (W1).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path

from tailgate.lake.folder import Lake
from tailgate.lake.host import files
from tailgate.lake.writer.engines import ANNOUNCEMENT, LOCK, Announcement, announced

RENEWED_S = 1.0  # between two renewals of the lease
LOOK_S = 0.5  # between two looks at it
EXPIRED_LOOKS = 6  # 3 s without a renewal
STAND_BY_LOCK = "stand-by.lock"


class Lease:
    """The renewals of the running engine's lease, by a thread, until `end`. `renew` renews it once."""

    def __init__(self, renew: Callable[[], None]) -> None:
        self._renew = renew
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(RENEWED_S):
            with contextlib.suppress(OSError):  # for example no space on the disk; the next renewal may succeed
                self._renew()

    def end(self) -> None:
        """Ends the renewals."""
        self._ended.set()
        self._thread.join()


class StandBy:
    """The place of the engine that stands by. `close` leaves it."""

    def __init__(self, lake: Lake) -> None:
        """Waits while another engine stands by."""
        self._lake = lake
        self._descriptor = _opened(lake.path / STAND_BY_LOCK)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def wait(self) -> bool:
        """Waits until the engine may start. Returns whether it must take over from one that holds the lock."""
        free = threading.Event()
        threading.Thread(target=_wait_for_lock, args=(self._lake.path / LOCK, free), name="engine-lock", daemon=True).start()
        before, unchanged = self._lease(), 0
        while unchanged < EXPIRED_LOOKS:
            if free.wait(LOOK_S):
                return False
            lease = self._lease()
            unchanged = unchanged + 1 if lease is not None and lease == before else 0
            before = lease
        return True

    def _lease(self) -> tuple[int, int] | None:
        """Returns epoch and time of the lease; None if no engine of the newest epoch has one."""
        try:
            announcement: Announcement | None = announced(self._lake)
            renewed = (self._lake.path / ANNOUNCEMENT).stat().st_mtime_ns
        except FileNotFoundError:
            return None
        newest = self._lake.log.newest()
        if announcement is None or not announcement.lease or newest is None or newest.epoch != announcement.epoch:
            return None
        return announcement.epoch, renewed

    def close(self) -> None:
        """Lets another engine stand by. May be called again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def standing_by(lake: Lake) -> bool:
    """Returns whether an engine stands by, or has begun to replace another."""
    try:
        descriptor = os.open(lake.path / STAND_BY_LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(descriptor)
    return False


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, files.PRIVATE)


def _wait_for_lock(path: Path, free: threading.Event) -> None:
    """Waits until no process holds the lock on the file at the path, also if the file is replaced meanwhile; then sets `free`."""
    while True:
        descriptor = _opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    free.set()
                    return
        except OSError:  # a file system without locks: only the lease counts
            return
        finally:
            os.close(descriptor)
