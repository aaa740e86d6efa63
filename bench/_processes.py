"""What a process has used, as the kernel counts it."""

from __future__ import annotations

import os
from pathlib import Path


def cpu_s(pid: int) -> float:
    """Seconds of CPU so far, in the kernel too; of its threads, not of its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> int:
    """Memory that it holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def stolen_ms() -> float:
    """Time of all processors that the host of this virtual machine has used otherwise; in steps of 10 ms."""
    return int(Path("/proc/stat").read_text().split(maxsplit=9)[8]) * 1000 / os.sysconf("SC_CLK_TCK")
