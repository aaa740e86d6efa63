"""CPU time and memory of a process, from the kernel, and its metrics."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
import urllib.request
from multiprocessing.connection import Connection
from pathlib import Path

STEP_S = 0.001  # between two times at which a `Sleeper` wakes up
LATE_S = 0.0005  # delays that it keeps


def cpu_s(pid: int) -> float:
    """Returns the CPU seconds of a process so far, user and system, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main_thread_cpu_s(pid: int) -> float:
    """Returns the CPU seconds of the first thread of a process so far. In the driver it runs the ticks."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def resident_mib(pid: int) -> int:
    """Returns the resident memory of a process in MiB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def proportional_mib(pid: int) -> int:
    """Returns the memory of a process in MiB. A page that n processes share, as of a library, counts as 1/n page (Pss)."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) >> 10
    return 0


def written_mib(pid: int) -> int:
    """Returns how much a process has written to files so far, in MiB."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) >> 20 for line in lines if line.startswith("write_bytes:"))


def stolen_ms() -> float:
    """Returns the CPU time that the host has taken from this virtual machine (steal), in steps of 10 ms."""
    return int(Path("/proc/stat").read_text().split(maxsplit=9)[8]) * 1000 / os.sysconf("SC_CLK_TCK")


def tree_cpu_s(pid: int) -> float:
    """Returns the CPU seconds of a process and its descendants, including those that have ended."""
    children, below = set[int](), 0.0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            children.update(map(int, (thread / "children").read_text().split()))
    for child in children:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the child has ended: the fields below have its time
            below += tree_cpu_s(child)
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + below


def scraped(port: int, timeout_s: float = 10) -> bytes:
    """Returns the answer of a process to a scrape."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=timeout_s) as answer:
        data: bytes = answer.read()
    return data


class Sleeper:
    """A process that sleeps in steps of STEP_S within the block, and notes how late it wakes up.

    It needs hardly any CPU, so its delays are those that the machine and its host cause. `priority`: as that of the measuring process.
    """

    def __init__(self, priority: int) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawning.Pipe()
        self._process = spawning.Process(target=_sleep, args=(priority, theirs))

    def __enter__(self) -> Sleeper:
        self._process.start()
        self._pipe.recv()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._process.is_alive():
            self._process.kill()

    def delays(self) -> list[tuple[float, float]]:
        """Ends the process. Returns the delays from LATE_S on: when each began and ended, of `time.perf_counter`."""
        self._pipe.send("end")
        delays: list[tuple[float, float]] = self._pipe.recv()
        self._process.join()
        return delays


def _sleep(priority: int, pipe: Connection) -> None:
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, priority)
    pipe.send("ready")
    delays = list[tuple[float, float]]()
    while not pipe.poll():
        due = time.perf_counter() + STEP_S
        time.sleep(STEP_S)
        if (now := time.perf_counter()) - due >= LATE_S:
            delays.append((due, now))
    pipe.send(delays)


def within(delays: list[tuple[float, float]], began: float, ended: float) -> float:
    """Returns the seconds of the delays within a period."""
    return sum(max(0.0, min(ended, last) - max(began, first)) for first, last in delays)
