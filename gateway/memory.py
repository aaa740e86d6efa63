"""How the memory of a gateway (`--memory`) is shared out, and what keeps it within that.

    half           DuckDB: mirrors, and what queries sort and join
    a sixteenth    the DuckDB of the system catalog
    a quarter      what clients make the gateway hold (`gateway.budgets`), caches among it
    the rest       Python, its libraries, and the processes that prepare long statements

DuckDB's own limit does not count all that it takes: a list or a text that one function makes is outside. So the kernel is asked to refuse
what grows too fast to be seen (`hold`); who asked for it gets 53200. The kernel counts what is mapped, and allocators keep mapped what was
given back; so the limit is no fixed number, but what is mapped now and what may still become resident, renewed at each look.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
from dataclasses import dataclass

import pyarrow as pa

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc

MIB = 1 << 20
LEAST = 1024 * MIB
MOST_BY_ITSELF = 8192 * MIB  # what a gateway takes that was not told; half of the machine's memory if that is less
SMALL = 16 * MIB  # two stacks of threads, which touch a fraction of them


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


def begin() -> None:
    """For a process that is held: Arrow takes memory where it needs it, and does not map a GiB at its first array."""
    pa.set_memory_pool(pa.system_memory_pool())


def hold(high: int, total: int) -> int:
    """Has the kernel refuse what would take this process beyond `high` before the next look; the bytes that are resident now.

    Above `high` up to `total`, SMALL may be taken between two looks: what is small goes on while what is large is refused.
    """
    resident, mapped = usage()
    if mapped and resource is not None and hasattr(resource, "RLIMIT_DATA"):
        with contextlib.suppress(ValueError, OSError):  # a limit from outside may be lower
            most = resource.getrlimit(resource.RLIMIT_DATA)[1]
            limit = mapped + max(high - resident, min(SMALL, total - resident), 0)
            resource.setrlimit(resource.RLIMIT_DATA, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))
    return resident


def give_back() -> None:
    """Returns to the kernel what the C library keeps of what was freed. Takes up to some 10 ms, outside the interpreter's lock."""
    if trim is not None:
        trim(0)


def usage() -> tuple[int, int]:
    """Bytes of this process that are in memory, and those of its own that are mapped; 0 where that cannot be told."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/self/statm") as file:
        fields = file.read().split()
        page = os.sysconf("SC_PAGE_SIZE")
        return int(fields[1]) * page, int(fields[5]) * page
    return 0, 0
