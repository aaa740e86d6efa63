"""Markdown tables, and a description of the machine."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CORES = 2


def use_cores(count: int = CORES) -> None:
    """Pins this process and its children to `count` cores, or to all if there are fewer."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def commit() -> str:
    """Returns the commit of this checkout, with `-dirty` if files have changed."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine() -> str:
    """Returns processor, cores in use, memory and kernel."""
    model = next((line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), platform.processor())
    memory = next((int(line.split()[1]) >> 20 for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{model}, {cores} of {os.cpu_count()} cores, {memory} GiB, Linux {platform.release()}"


def header() -> str:
    """Returns the first lines of a report: date, commit, machine and command."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    command = " ".join(["python", os.path.relpath(sys.argv[0], ROOT), *sys.argv[1:]])
    lines = (f"{now}, commit {commit()}, load average {os.getloadavg()[0]:.1f} before the run", machine(), f"`{command}`")
    return "  \n".join(lines) + "\n"


def head(columns: Sequence[str]) -> str:
    """Returns the first two lines of a Markdown table.

    >>> print(head(("", "p50")))
    |  | p50 |
    |---|---|
    """
    return line(columns) + "\n" + "|---" * len(columns) + "|"


def line(cells: Sequence[Any]) -> str:
    """Returns a line of a Markdown table.

    >>> line(("COPY (TAIL …)", 45))
    '| COPY (TAIL …) | 45 |'
    """
    return "| " + " | ".join(map(str, cells)) + " |"


def mark(value: float, limit: float | None, least: bool = False) -> str:
    """Returns a mark and whether the value meets it; empty without a mark.

    >>> mark(41.0, 45), mark(54_000, 100_000, least=True), mark(1.0, None)
    ('at most 45: met', 'at least 100000: missed', '')
    """
    if limit is None:
        return ""
    met = value >= limit if least else value <= limit
    return f"{'at least' if least else 'at most'} {limit:g}: {'met' if met else 'missed'}"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
