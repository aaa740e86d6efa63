"""One supervisor a data folder: a lock while it lives, and a mark on every process that it starts.

    up.lock            held by the supervisor until it ends, however that comes; says which process it is
    TAILGATE_UP=<data> in the environment of every child, and so of what the child starts

A supervisor that was killed together with its watcher leaves children behind. The next one finds them by the mark and kills
them before it starts its own: they hold ports and locks that it needs.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import signal
import time
from dataclasses import asdict
from pathlib import Path

from embedded.children import ChildFailed
from lake.processes import Process

MARK = "TAILGATE_UP"
GONE_S = 30.0  # a process in the kernel's hands (a slow disk) ends when that lets it go
GONE_POLL_S = 0.02
LOCK_WAIT_S = 0.5  # a child that is being started shares the lock's file until its exec, a moment after fork returns
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL)


class Claim:
    """The right to run processes over a data folder. Raises ChildFailed if another supervisor has it."""

    def __init__(self, data: Path) -> None:
        self._data = data.resolve()
        self._path = self._data / "up.lock"
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._lock()
            end_leftovers(self._data)
        except BaseException:
            self.release()
            raise
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps(asdict(Process.of(os.getpid()))).encode() + b"\n", 0)

    @property
    def environment(self) -> dict[str, str]:
        """What marks the processes of this folder."""
        return {MARK: str(self._data)}

    def release(self) -> None:
        """Doing it again changes nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _lock(self) -> None:
        deadline = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ChildFailed(self._taken()) from None
                time.sleep(GONE_POLL_S)
            except OSError as error:  # a file system without locks: the process that is named tells
                if error.errno not in _NO_LOCKS:
                    raise
                holder = self._holder()
                if holder is not None and holder.lives() and holder.pid != os.getpid():
                    raise ChildFailed(self._taken()) from None
                return

    def _holder(self) -> Process | None:
        with contextlib.suppress(ValueError, TypeError):
            return Process(**json.loads(os.pread(self._descriptor, 4096, 0)))
        return None

    def _taken(self) -> str:
        holder = self._holder()
        who = "another process" if holder is None else f"process {holder.pid}"
        return f"the data folder {self._data} is in use by `tailgate up`, {who}: stop it, or give another --data"


def marked(data: Path) -> list[int]:
    """The processes of this user that were started for a data folder, but this one. Empty where there is no /proc."""
    mark = f"{MARK}={data}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        pid = int(path.parent.name)
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if pid != os.getpid() and mark in path.read_bytes().split(b"\0"):
                found.append(pid)
    return found


def end_leftovers(data: Path) -> None:
    """Kills what an earlier supervisor of the folder has left; returns when it is gone. Raises ChildFailed if it stays."""
    deadline = time.monotonic() + GONE_S
    killed: set[Process] = set()  # one that ends has no environment any more, and still its sockets
    while left := {Process.of(pid) for pid in marked(data)} | {p for p in killed if p.lives()}:
        for process in left - killed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        killed |= left
        if time.monotonic() > deadline:
            pids = ", ".join(str(p.pid) for p in left)
            raise ChildFailed(f"processes of an earlier `tailgate up` over {data} do not end: {pids}")
        time.sleep(GONE_POLL_S)
