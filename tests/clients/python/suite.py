"""Prints the results of a client's own tests in the Test Anything Protocol.

The tests of `differences.txt` are expected to fail on Tailgate. They are not counted; a line of which no test
fails any more is a failed check.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path


class Results:
    """The results of a run. A line of `differences` is `pattern: reason`; the pattern matches names of tests."""

    def __init__(self, differences: Path) -> None:
        lines = differences.read_text().splitlines() if os.environ["FLAVOUR"] == "tailgate" else []
        self._expected = [line.split(": ")[0] for line in lines if line]
        self._failed: set[str] = set()
        self._count = 0

    def passed(self, name: str) -> None:
        self._print(name, None)

    def failed(self, name: str, reason: str) -> None:
        """Records a failure. `reason`: one line or more."""
        expected = [pattern for pattern in self._expected if fnmatchcase(name, pattern.replace("[", "[[]"))]
        self._failed.update(expected)
        if not expected:
            self._print(name, reason.replace("\n", " | "))

    def finish(self) -> None:
        """Prints the lines of which no test has failed, and the number of results."""
        for pattern in self._expected:
            if pattern not in self._failed:
                self._print(f"differences.txt: {pattern}", "no test fails: remove the line")
        print(f"\n1..{self._count}", flush=True)

    def _print(self, name: str, reason: str | None) -> None:
        self._count += 1
        print(f"\nok {self._count} - {name}" if reason is None else f"\nnot ok {self._count} - {name}\n  # {reason}", flush=True)
