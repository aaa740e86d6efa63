"""The output of a long run: one line for each check, with the time, and a summary."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path


class Report:
    """A report.

    `told` records a check with its error, or None. `clean` keeps `folder` after a failure.
    """

    def __init__(self, folder: Path, seed: int | None) -> None:
        self.folder = folder
        self.seed = seed if seed is not None else random.SystemRandom().randrange(2**32)
        self.began = time.monotonic()
        self.failed: list[str] = []

    def say(self, words: str) -> None:
        print(f"{time.monotonic() - self.began:6.0f} s  {words}", flush=True)

    def record(self, check: str, wrong: str | None) -> None:
        self.say(f"{'ok    ' if wrong is None else 'FAILED'}  {check}" + (f"\n                  {wrong}" if wrong else ""))
        if wrong is not None:
            self.failed.append(check)

    def end(self) -> int:
        """Prints the summary. Returns the exit code."""
        self.say(f"{'FAILED: ' + '; '.join(self.failed) if self.failed else 'all is equal'} (seed {self.seed})")
        return 1 if self.failed else 0

    def clean(self, code: int, *, keep: bool) -> None:
        if code == 0 and not keep:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            self.say(f"logs: {self.folder}")
