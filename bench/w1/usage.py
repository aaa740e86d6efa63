"""CPU and memory of processes and their descendants, from the kernel."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from bench._processes import cpu_s, proportional_mib

LOOK_S = 3.0


class Process(Protocol):
    @property
    def pid(self) -> int: ...


class Usage:
    """A context that samples the memory of named lists of processes. The lists may grow meanwhile.

    `peak_mib` is the maximum resident memory of all processes of a list together; a page that they share counts once.
    """

    def __init__(self, processes: Mapping[str, Sequence[Process]]) -> None:
        self._processes = processes
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="usage", daemon=True)
        self.peak_mib = dict.fromkeys(processes, 0)

    def __enter__(self) -> Usage:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def cpu_s(self) -> dict[str, float]:
        """Returns the CPU seconds so far of the running processes."""
        return {name: sum(_of_each(cpu_s, pids)) for name, pids in self._pids().items()}

    def _look(self) -> None:
        while not self._ended.wait(LOOK_S):
            for name, pids in self._pids().items():
                self.peak_mib[name] = max(self.peak_mib[name], round(sum(_of_each(proportional_mib, pids))))

    def _pids(self) -> dict[str, list[int]]:
        children: dict[int, list[int]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                for parent in _of_each(_parent, [int(entry.name)]):
                    children.setdefault(int(parent), []).append(int(entry.name))

        def family(pid: int) -> list[int]:
            return [pid, *(each for child in children.get(pid, ()) for each in family(child))]

        return {name: [pid for process in list(processes) for pid in family(process.pid)] for name, processes in self._processes.items()}


def _parent(pid: int) -> float:
    return float(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _of_each(figure, pids: Sequence[int]) -> list[float]:
    """Returns the figures of the processes that still run."""
    figures = []
    for pid in pids:
        try:
            figures.append(figure(pid))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return figures
