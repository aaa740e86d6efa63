"""Samples the sizes of folders and processes during a run, and checks that they stop growing.

samples every EVERY_S ──► the maxima of the second and last quarter ──► failure if the last is much larger

Input and changes arrive at a steady rate, and the retention is shorter than a quarter of the run.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from tests.embedded.sockets import descendants

EVERY_S = 15.0
FACTOR = 1.5  # limit for last quarter / second quarter
FOLDER_SLACK = 48 << 20  # bytes: segments, RocksDB files and snapshots appear and vanish as a whole
MEMORY_SLACK = 200 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")

# Part of a process's command line → its name in the report.
PROCESSES = {
    "PythonGatewayServer": "engine's JVM",
    "tailgate engine": "engine's Python",
    "tailgate gateway": "gateway",
    "tailgate sinks": "sinks",
    "kafka.Kafka": "Kafka",
    "tailgate.embedded.registry": "registry",
}


class Growth:
    """The samples of a run. `folders` are keyed by their names in the report."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = folders
        self._began = self._next = time.monotonic()
        self._sizes: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
        self._memory: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)

    def step(self) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY_S
        for name, folder in self._folders.items():
            self._sizes[name].append((now - self._began, size(folder)))
        for pid, words in descendants(os.getpid()).items():
            for part, name in PROCESSES.items():
                if part in words and not words.startswith("/bin/sh"):
                    self._memory[name].append((now - self._began, resident(pid)))

    def table(self) -> list[str]:
        """Returns the maximum of each quarter in MiB, as lines of a Markdown table."""
        lines = ["| | 1st quarter | 2nd | 3rd | 4th |", "|---|---|---|---|---|"]
        for kind, samples in (("", self._sizes), ("memory of the ", self._memory)):
            for name in sorted(samples):
                shown = (f"{largest / (1 << 20):.0f}" for largest in self._quarters(samples[name]))
                lines.append(f"| {kind}{name} | {' | '.join(shown)} |")
        return lines

    def wrong(self) -> tuple[str | None, str | None]:
        """Returns the folders and the processes that grew too much, as text; None for none."""
        return self._growing(self._sizes, FOLDER_SLACK), self._growing(self._memory, MEMORY_SLACK)

    def _growing(self, samples: Mapping[str, list[tuple[float, int]]], slack: int) -> str | None:
        findings = []
        for name, values in samples.items():
            _, second, _, last = self._quarters(values)
            if last > FACTOR * second + slack:
                findings.append(f"{name} grew from {second >> 20} to {last >> 20} MiB")
        return "; ".join(findings) or None

    def _quarters(self, samples: list[tuple[float, int]]) -> list[int]:
        end = max((at for at, _ in samples), default=0.0) + 1
        return [max((n for at, n in samples if q <= 4 * at / end < q + 1), default=0) for q in range(4)]


def size(folder: Path) -> int:
    """Returns the bytes that the files below a folder occupy."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
            except OSError:
                continue  # the file was removed meanwhile
    return total


def resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0
