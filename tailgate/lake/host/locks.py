"""A lock on a file, held until it is released or the process ends. Children of the process do not inherit it.

A process that holds the lock can be replaced: a new, locked file takes the place of the file, so that a third
process is refused again. A lock therefore counts only if the locked file is still the one at the path.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
import weakref
from pathlib import Path

from tailgate.lake.host import files

WAIT_S = 0.3  # a starting child shares all open files until its exec, a moment after fork returns
POLL_S = 0.01

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL)  # errors of a file system without locks


class NoLocks(OSError):
    """The file system has no locks."""


class Lock:
    """The lock on the file at a path. It is not held before `take`, `wait` or `replace`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Returns whether this process now holds the lock. Raises NoLocks."""
        deadline = time.monotonic() + WAIT_S
        while not (locked := self._locked(fcntl.LOCK_EX | fcntl.LOCK_NB)) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return locked

    def wait(self) -> None:
        """Waits until this process holds the lock. Raises NoLocks."""
        self._locked(fcntl.LOCK_EX)

    def replace(self) -> None:
        """Takes the lock from the process that holds it, which keeps the lock of a file without a name."""
        mine = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        self._open(mine)
        assert self._descriptor is not None
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        files.rename(mine, self._path)

    def release(self) -> None:
        """Releases the lock. May be called again, also by another thread at the same time."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
        _held.discard(self)

    def _locked(self, operation: int) -> bool:
        while True:
            self._open(self._path)
            assert self._descriptor is not None
            try:
                fcntl.flock(self._descriptor, operation)
            except BlockingIOError:
                self.release()
                return False
            except OSError as error:
                self.release()
                if error.errno in NO_LOCKS:
                    raise NoLocks(*error.args) from None
                raise
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._descriptor), os.stat(self._path)):
                    return True

    def _open(self, path: Path) -> None:
        self.release()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, files.PRIVATE)
        _held.add(self)


_held: weakref.WeakSet[Lock] = weakref.WeakSet()


def _let_go_in_child() -> None:
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_let_go_in_child)


def held(path: Path) -> bool:
    """Returns whether a process holds the lock on the file at the path; False if the file system has no locks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        if error.errno in NO_LOCKS:
            return False
        raise
    finally:
        os.close(descriptor)
    return False
