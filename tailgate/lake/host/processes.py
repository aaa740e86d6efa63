"""Identification of a process: process ids are reused, but not with the same start time in the same boot."""

from __future__ import annotations

import os
from dataclasses import dataclass
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


def boot() -> str:
    """Returns an id of this machine's boot; empty if the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
