"""The process `tailgate sinks` of a lake: its lock, sinks.lock, and its announcement, sinks.json.

Others notice from the announcement that it was killed. Its modification time is the process's lease
(`lake.host.stand_by`). A process that starts without `--stand-by` replaces the one that runs.
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from tailgate.lake.folder import Lake
from tailgate.lake.host import files
from tailgate.lake.host.locks import Lock, NoLocks
from tailgate.lake.host.processes import Process
from tailgate.lake.host.stand_by import StandBy

FILE, LOCK, PLACE = "sinks.json", "sinks.lock", "sinks-stand-by.lock"


def stand_by(lake: Lake) -> StandBy:
    """Returns the place of the process that stands by, once no other process has it."""
    return StandBy(lake.path / PLACE, lake.path / LOCK, lambda: _lease(lake))


class SinksProcess:
    """The calling process, as the one that runs the sinks of a lake."""

    def __init__(self, lake: Lake) -> None:
        """Announces this process. From now on another one that runs the sinks is replaced."""
        self._lake = lake
        self._lock = Lock(lake.path / LOCK)
        with suppress(NoLocks):
            if not self._lock.take():
                self._lock.replace()
        self._content = {**asdict(Process.of(os.getpid())), "host": socket.gethostname()}
        files.replace(lake.path / FILE, json.dumps(self._content).encode())

    def renew(self) -> bool:
        """Renews the lease. Returns False if another process has replaced this one."""
        if _read(self._lake) != self._content:
            return False
        os.utime(self._lake.path / FILE)
        return True

    def end(self) -> None:
        """Removes the announcement, unless another process has announced itself, and releases the lock."""
        if _read(self._lake) == self._content:
            files.discard(self._lake.path / FILE)
        self._lock.release()


def ended_unexpectedly(lake: Lake) -> bool:
    """Returns whether the process that has announced itself on this machine does not exist any more."""
    data = _read(lake)
    if data is None or data["host"] != socket.gethostname():
        return False
    return not Process(data["pid"], data["started"], data["boot"]).lives()


def _lease(lake: Lake) -> int | None:
    try:
        return (lake.path / FILE).stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _read(lake: Lake) -> dict[str, Any] | None:
    try:
        data: dict[str, Any] = json.loads((lake.path / FILE).read_bytes())
    except FileNotFoundError:
        return None
    return data
