"""Identification of a process, whose id may be used again, but not with the same start time in the same boot, and of its machine."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    """A process. `started`: ticks since boot, from /proc; 0 if there is no /proc, then only `pid` counts. `boot`: id of the boot."""

    pid: int
    started: int = 0
    boot: str = ""

    @staticmethod
    def of(pid: int) -> Process:
        return Process(pid, _started(pid), boot())

    def lives(self) -> bool:
        """Returns whether the process is running. A zombie is not."""
        if self.boot != boot():
            return False
        if self.started:
            return _started(self.pid) == self.started
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True


def _started(pid: int) -> int:
    """Returns field 22 of /proc/<pid>/stat; 0 if there is no such process or it is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    fields = stat.rpartition(")")[2].split()  # the name, in parentheses, may contain any character
    return 0 if fields[0] in "ZX" else int(fields[19])


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine. `id`: of its system, empty if it has none, as a container. Then only `host`, the name, counts."""

    host: str
    id: str = ""

    @staticmethod
    def here() -> Machine:
        return Machine(socket.gethostname(), _machine_id())

    @property
    def is_here(self) -> bool:
        """Returns whether this process runs on the machine. Earlier versions wrote no id."""
        here = Machine.here()
        return self.host == here.host and (not self.id or not here.id or self.id == here.id)


@cache
def _machine_id() -> str:
    try:
        return Path("/etc/machine-id").read_text().strip()
    except OSError:
        return ""


def boot() -> str:
    """Returns an id of this machine's boot; empty if the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
