"""Detection of a running engine: by engine.lock where the file system has locks, elsewhere by new entries of the log (W4).

engine.json (mode 0600) describes the engine: its epoch, address, control token, process and JVM. A JVM
outlives its Python driver by about a second, so the next engine on the machine waits for it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import http.client
import json
import os
import socket
import time
import weakref
from dataclasses import asdict, dataclass

from tailgate.lake import control
from tailgate.lake.errors import ObjectNotInPrerequisiteState, TailgateError
from tailgate.lake.folder import Lake
from tailgate.lake.host import files
from tailgate.lake.host.processes import Process

LOCK, ANNOUNCEMENT = "engine.lock", "engine.json"  # files of the data folder
LOCK_WAIT_S = 0.3  # a starting child shares all open files until its exec, a moment after fork returns
LOCK_POLL_S = 0.01
ALIVE_S = 12.0  # without locks, an engine that appends nothing for this long has ended: an idle one appends every 10 s
GONE_TIMEOUT_S = 30.0  # an earlier JVM normally ends after about 1 s
GONE_POLL_S = 0.05

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL)


class EngineLock:
    """The lock on engine.lock, held until it is released or the process ends. Children do not inherit it.

    Taking over replaces the file that a running engine holds with a new, locked one, so that a third engine
    is refused again.
    """

    def __init__(self, lake: Lake, take_over: bool) -> None:
        self._path = lake.path / LOCK
        self._descriptor: int | None = self._open()
        _held.add(self)
        try:
            deadline = time.monotonic() + LOCK_WAIT_S
            while not (locked := self._try()) and time.monotonic() < deadline:
                time.sleep(LOCK_POLL_S)
        except OSError as e:
            self.release()
            if e.errno not in _NO_LOCKS:
                raise
            if not take_over:
                refuse_if_alive(lake)
            return
        if not locked:
            self.release()
            if not take_over:
                raise _refused(lake)
            self._replace()

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, files.PRIVATE)

    def _try(self) -> bool:
        """Returns whether this process now holds the lock on the file at the path. The file may be replaced between opening and locking."""
        while True:
            assert self._descriptor is not None
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._descriptor), os.stat(self._path)):
                    return True
            os.close(self._descriptor)
            self._descriptor = self._open()

    def _replace(self) -> None:
        mine = self._path.with_name(f".engine.lock.{os.getpid()}")
        self._descriptor = os.open(mine, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, files.PRIVATE)
        _held.add(self)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        files.rename(mine, self._path)

    def release(self) -> None:
        """Releases the lock. May be called again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        _held.discard(self)


_held: weakref.WeakSet[EngineLock] = weakref.WeakSet()


def _let_go_in_child() -> None:
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_let_go_in_child)


def refuse_if_alive(lake: Lake) -> None:
    """Raises 55000 if the log grows and its engine has not announced its end (W4 without locks). Does not use wall clocks."""
    newest = lake.log.newest()
    if newest is not None and announced(lake) is not None and lake.log.wait(newest.n, ALIVE_S) is not None:
        raise _refused(lake)


def _refused(lake: Lake) -> TailgateError:
    running = announced(lake)
    return ObjectNotInPrerequisiteState(
        f"another engine runs on the lake in {lake.path}",
        detail=f"It is process {running.process.pid} on {running.host}, in epoch {running.epoch}." if running else None,
        hint="Stop it first, or replace it with --take-over.",
    )


@dataclass(frozen=True, slots=True)
class Announcement:
    """The content of engine.json."""

    epoch: int
    address: str
    token: str
    host: str
    process: Process
    jvm: Process | None
    lease: bool = True  # whether the engine renews the file's modification time (`stand_by`); earlier versions do not

    @staticmethod
    def mine(epoch: int, address: str, token: str, jvm: int | None) -> Announcement:
        """Returns the announcement of this process. `jvm`: the id of its JVM's process."""
        return Announcement(epoch, address, token, socket.gethostname(), Process.of(os.getpid()), None if jvm is None else Process.of(jvm))

    def write(self, lake: Lake) -> None:
        """Writes engine.json, unless a later epoch has written it."""
        current = announced(lake)
        if current is None or current.epoch <= self.epoch:
            files.replace(lake.path / ANNOUNCEMENT, json.dumps(asdict(self)).encode() + b"\n")


def announced(lake: Lake) -> Announcement | None:
    """Returns the engine that is running or crashed; None if the last one ended normally."""
    try:
        data = json.loads((lake.path / ANNOUNCEMENT).read_bytes())
    except FileNotFoundError:
        return None
    jvm = None if data["jvm"] is None else Process(**data["jvm"])
    process = Process(**data["process"])
    return Announcement(data["epoch"], data["address"], data["token"], data["host"], process, jvm, data.get("lease", False))


def renew(lake: Lake, announcement: Announcement) -> None:
    """Renews the lease of the engine of this announcement, unless another one is announced."""
    if announced(lake) == announcement:
        os.utime(lake.path / ANNOUNCEMENT)


def ask(engine: Announcement, path: str, timeout_s: float) -> control.Answer:
    """Returns the engine's answer to a GET request. Raises OSError, HTTPException or ValueError if there is none in time."""
    host, _, port = engine.address.rpartition(":")
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=timeout_s)
    try:
        connection.request("GET", path, headers=control.headers(engine.token))
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    if response.status != 200:
        raise ValueError(f"the engine answered {response.status}")
    return control.decode(body)


def forget(lake: Lake, epoch: int) -> None:
    """Removes the announcement of this epoch."""
    current = announced(lake)
    if current is not None and current.epoch == epoch:
        files.discard(lake.path / ANNOUNCEMENT)


def wait_until_gone(announcement: Announcement, *, insist: bool) -> None:
    """Waits until the JVM of an earlier engine on this machine has ended.

    Raises 55000 on timeout. If not `insist`, returns instead, and does not wait for a running engine.
    """
    if announcement.jvm is None or announcement.host != socket.gethostname():
        return
    deadline = time.monotonic() + GONE_TIMEOUT_S
    while announcement.jvm.lives():
        if not insist and announcement.process.lives():
            return  # a running engine is being replaced; it will notice at its next entry
        if time.monotonic() > deadline:
            if not insist:
                return
            raise ObjectNotInPrerequisiteState(
                f"the JVM of an earlier engine still runs as process {announcement.jvm.pid}",
                hint="End that process, or start anyway with --take-over.",
            )
        time.sleep(GONE_POLL_S)
