"""One supervisor per data folder: a lock while it runs, and a mark on every process that it starts.

    up.lock            locked by the supervisor until it ends; contains its process
    TAILGATE_UP=<data> in the environment of every child, and so of the processes that a child starts

If a supervisor is killed together with its watcher, its children remain. The next supervisor finds
them by the mark and kills them before it starts its own, because they hold ports and locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
from dataclasses import asdict
from pathlib import Path

from tailgate.embedded.children import ChildFailed
from tailgate.lake.host.locks import NO_LOCKS
from tailgate.lake.host.processes import Process

MARK = "TAILGATE_UP"
GONE_S = 30.0  # a process that waits in the kernel, for example for a slow disk, ends only after that
GONE_POLL_S = 0.02
LOCK_WAIT_S = 0.5  # a starting child shares the lock's file until its exec, a moment after fork returns


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
        """Returns the environment variable that marks the processes of this folder."""
        return {MARK: str(self._data)}

    def release(self) -> None:
        """Releases the lock. May be called again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _lock(self) -> None:
        """Locks up.lock. Raises ChildFailed if another supervisor holds it."""
        deadline = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ChildFailed(self._in_use_message()) from None
                time.sleep(GONE_POLL_S)
            except OSError as error:  # a file system without locks: check the process that up.lock names
                if error.errno not in NO_LOCKS:
                    raise
                holder = self._holder()
                if holder is not None and holder.lives() and holder.pid != os.getpid():
                    raise ChildFailed(self._in_use_message()) from None
                return

    def _holder(self) -> Process | None:
        with contextlib.suppress(ValueError, TypeError):
            return Process(**json.loads(os.pread(self._descriptor, 4096, 0)))
        return None

    def _in_use_message(self) -> str:
        holder = self._holder()
        who = "another process" if holder is None else f"process {holder.pid}"
        return f"the data folder {self._data} is in use by `tailgate up`, {who}: stop it, or give another --data"


def marked(data: Path) -> list[int]:
    """Returns the ids of this user's other processes that were started for a data folder. Empty where there is no /proc."""
    mark = f"{MARK}={data}".encode()
    pids = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        pid = int(path.parent.name)
        with contextlib.suppress(OSError):  # the process has ended, or belongs to another user
            if pid != os.getpid() and mark in path.read_bytes().split(b"\0"):
                pids.append(pid)
    return pids


def end_leftovers(data: Path) -> None:
    """Kills the processes that an earlier supervisor has left, and waits for their end. Raises ChildFailed if one does not end."""
    deadline = time.monotonic() + GONE_S
    killed: set[Process] = set()  # an ending process has no environment any more but still has its sockets
    while left := {Process.of(pid) for pid in marked(data)} | {p for p in killed if p.lives()}:
        for process in left - killed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        killed |= left
        if time.monotonic() > deadline:
            pids = ", ".join(str(p.pid) for p in left)
            raise ChildFailed(f"processes of an earlier `tailgate up` over {data} do not end: {pids}")
        time.sleep(GONE_POLL_S)
