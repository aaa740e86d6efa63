"""Moves the wall clock of the processes under test by days, with a preloaded library (clock.c).

    move(seconds) ──► a file that all processes have mapped ──► their next read of the clock

The clocks of the machine and of this process do not change. Needs Linux with glibc, and gcc.
"""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

MOVES_MAX = 16  # as in clock.c
BUILD_TIMEOUT_S = 60.0  # 0.3 s measured
_MOVE = struct.Struct("=qq")
_COUNT = struct.Struct("=q")


class Clock:
    """The clock of the processes that are started with `environment`.

    Raises OSError or subprocess errors if the library cannot be built.
    """

    def __init__(self, folder: Path) -> None:
        library, table = folder / "clock.so", folder / "clock.table"
        source = Path(__file__).with_name("clock.c")
        command = ["gcc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
        subprocess.run(command, check=True, capture_output=True, timeout=BUILD_TIMEOUT_S)
        table.write_bytes(bytes(_COUNT.size + MOVES_MAX * _MOVE.size))
        self._file = table.open("r+b")
        self._table = mmap.mmap(self._file.fileno(), 0)
        self._count = 0
        self.offset_s = 0.0
        self.environment = {"LD_PRELOAD": str(library), "TAILGATE_SOAK_CLOCK": str(table)}

    @staticmethod
    def missing() -> str | None:
        """Returns the requirement that this machine lacks, or None."""
        if sys.platform != "linux":
            return "Linux"
        return None if shutil.which("gcc") else "gcc"

    def move(self, offset_s: float) -> None:
        """Sets the distance of the clock to the machine's clock, in seconds, from now on."""
        assert self._count < MOVES_MAX
        at = _COUNT.size + self._count * _MOVE.size
        self._table[at : at + _MOVE.size] = _MOVE.pack(time.time_ns(), round(offset_s * 1e9))
        self._count += 1
        self._table[: _COUNT.size] = _COUNT.pack(self._count)
        self.offset_s = offset_s

    def close(self) -> None:
        self._table.close()
        self._file.close()
