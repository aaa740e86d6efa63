"""How the memory of a gateway (`--memory`) is shared out, and what keeps it within that.

    half           DuckDB: mirrors, and what queries sort and join
    a sixteenth    the DuckDB of the system catalog
    a quarter      what clients make the gateway hold (`gateway.budgets`), caches among it
    the rest       Python, its libraries, and the processes that prepare long statements

DuckDB's own limit does not count all that it takes: a list or a text that one function makes is outside. So the kernel is asked to refuse
what would go beyond the whole (`hold`); who asked for it gets 53200.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

MIB = 1 << 20
LEAST = 1024 * MIB
MOST_BY_ITSELF = 8192 * MIB  # what a gateway takes that was not told; half of the machine's memory if that is less
MAPPED = 200 * MIB  # libraries, as far as they are resident: no data, so the kernel does not count them
STACK = 8 * MIB  # of a thread, of which it touches a fraction


@dataclass(frozen=True, slots=True)
class Memory:
    """Shares of a gateway's memory, in bytes. `total`: all of it."""

    total: int

    @property
    def duckdb(self) -> int:
        return self.total // 2

    @property
    def catalog(self) -> int:
        """Of the DuckDB of the system catalog."""
        return self.total // 16

    @property
    def clients(self) -> int:
        """Of all that clients make it hold."""
        return self.total // 4

    @property
    def role(self) -> int:
        """Of all sessions of one role that is no superuser."""
        return self.clients // 2

    @property
    def session(self) -> int:
        return self.clients // 2

    @property
    def process(self) -> int:
        """Of one process that prepares a long statement."""
        return self.total // 16


def default() -> Memory:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Memory(max(min(machine // 2, MOST_BY_ITSELF), LEAST))


def parsed(text: str) -> Memory:
    """
    >>> parsed("2GiB").total == parsed("2048MB").total == 2 << 30
    True
    """
    match = re.fullmatch(r"(\d{1,9})\s*(MB|MiB|GB|GiB)", text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no size: write 2GB or 1500MB")
    size = int(match[1]) * (MIB if match[2][0] == "M" else 1024 * MIB)
    if size < LEAST:
        raise ValueError(f"{text} is too little: a gateway needs {LEAST // MIB} MB")
    return Memory(size)


def hold(memory: Memory, threads: int) -> None:
    """Has the kernel refuse more data than the memory, for the rest of this process. `threads`: how many it may have."""
    if resource is not None and hasattr(resource, "RLIMIT_DATA"):
        limit = memory.total - MAPPED + threads * STACK
        with contextlib.suppress(ValueError, OSError):  # a limit from outside may be lower already
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def resident() -> int:
    """Bytes of this process that are in memory; 0 where that cannot be told."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0
