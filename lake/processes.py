"""A process as one can name it for ever: numbers of processes are used again, a number with its start is not."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    """`started`: ticks since boot, from /proc; 0 where there is no /proc, then the number alone tells. `boot`: which boot."""

    pid: int
    started: int = 0
    boot: str = ""

    @staticmethod
    def of(pid: int) -> Process:
        return Process(pid, _started(pid), boot())

    def lives(self) -> bool:
        """Whether it runs; a zombie does not."""
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
    """Field 22 of /proc/<pid>/stat; 0 if there is no such process or it is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    fields = stat.rpartition(")")[2].split()  # the name, in parentheses, may hold anything
    return 0 if fields[0] in "ZX" else int(fields[19])


def boot() -> str:
    """Identifies the boot of this machine; empty where the system does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
