"""The memory of a gateway (`--memory`): its shares, and the limit that the kernel enforces.

    half           DuckDB: mirrors, and the sorts and joins of queries
    a sixteenth    the DuckDB of the system catalog
    a quarter      memory that is held for clients (`gateway.resources.budgets`), including caches
    the rest       Python, its libraries, and the processes that prepare long statements

DuckDB's own limit does not count all its memory: a long list or text that a function returns is outside. `hold` therefore sets a
limit in the kernel, which refuses an allocation that grows faster than the gateway checks. The statement fails with 53200. The kernel
counts mapped memory, and allocators keep freed memory mapped. So the limit is not constant: at each check it is set to the mapped
memory plus the amount that may still become resident.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource
from dataclasses import dataclass

import pyarrow as pa

trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc

MIB = 1 << 20
LEAST = 1024 * MIB
MOST_BY_ITSELF = 8192 * MIB  # the default without --memory, or half of the machine's memory if that is less
SMALL = 16 * MIB  # the stacks of two threads, of which only a fraction becomes resident


@dataclass(frozen=True, slots=True)
class Memory:
    """The shares of a gateway's memory, in bytes."""

    total: int

    @property
    def duckdb(self) -> int:
        return self.total // 2

    @property
    def catalog(self) -> int:
        """Returns the limit of the system catalog's DuckDB."""
        return self.total // 16

    @property
    def clients(self) -> int:
        """Returns the limit of all memory that is held for clients."""
        return self.total // 4

    @property
    def role(self) -> int:
        """Returns the limit of all sessions of one role, except superusers."""
        return self.clients // 2

    @property
    def session(self) -> int:
        return self.clients // 2

    @property
    def process(self) -> int:
        """Returns the limit of a process that prepares a long statement."""
        return self.total // 16


def default() -> Memory:
    """Returns the memory of a gateway without --memory: half of the machine's, between LEAST and MOST_BY_ITSELF."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Memory(max(min(machine // 2, MOST_BY_ITSELF), LEAST))


def parsed(text: str) -> Memory:
    """Parses the value of --memory. Raises ValueError for a malformed size and for one below LEAST.

    >>> parsed("2GiB").total == parsed("2048MB").total == 2 << 30
    True
    """
    match = re.fullmatch(r"(\d{1,9})\s*(MB|MiB|GB|GiB)", text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size: write 2GB or 1500MB")
    size = int(match[1]) * (MIB if match[2][0] == "M" else 1024 * MIB)
    if size < LEAST:
        raise ValueError(f"{text} is too little: a gateway needs {LEAST // MIB} MB")
    return Memory(size)


def begin() -> None:
    """Makes Arrow use the system allocator: its own maps a GiB for the first array, which counts towards the limit of `hold`."""
    pa.set_memory_pool(pa.system_memory_pool())


def hold(high: int, total: int) -> int:
    """Sets the kernel's limit so that the process stays within `high` bytes until the next call. Returns the resident bytes.

    Between `high` and `total`, the process may allocate SMALL bytes until the next call. Small allocations then still succeed,
    and large ones fail.
    """
    resident, mapped = usage()
    if mapped and hasattr(resource, "RLIMIT_DATA"):
        with contextlib.suppress(ValueError, OSError):  # a lower limit may already be set
            most = resource.getrlimit(resource.RLIMIT_DATA)[1]
            limit = mapped + max(high - resident, min(SMALL, total - resident), 0)
            resource.setrlimit(resource.RLIMIT_DATA, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))
    return resident


def give_back() -> None:
    """Returns freed memory from the C library to the kernel. Takes up to about 10 ms, without the interpreter's lock."""
    if trim is not None:
        trim(0)


def usage() -> tuple[int, int]:
    """Returns this process's resident bytes and its mapped private bytes, or zeros if the system does not report them."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/self/statm") as file:
        fields = file.read().split()
        page = os.sysconf("SC_PAGE_SIZE")
        return int(fields[1]) * page, int(fields[5]) * page
    return 0, 0
