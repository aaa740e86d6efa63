"""Prints the suite's results in the Test Anything Protocol.

The tests of `differences.txt` are expected to fail on Tailgate. They are not counted; a line of which no test
fails any more is a failed check.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

import sqlalchemy.dialects.postgresql.provision  # noqa: E402, F401
from sqlalchemy.testing import provision  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403

DIFFERENCES = [line.split(": ")[0] for line in (Path(__file__).parent / "differences.txt").read_text().splitlines() if line]
EXPECTED = DIFFERENCES if os.environ["FLAVOUR"] == "tailgate" else []

provision.post_configure_engine.fns["postgresql"] = lambda *_: None  # it creates the extensions citext and hstore


class Results:
    """The results of a run, by test."""

    def __init__(self) -> None:
        self.count = 0
        self.seen: set[str] = set()

    def report(self, name: str, reason: str | None) -> None:
        self.count += 1
        print(f"\nok {self.count} - {name}" if reason is None else f"\nnot ok {self.count} - {name}\n  # {reason}", flush=True)


results = Results()


def name_of(nodeid: str) -> str:
    """Returns Class::test[parameters], without the dialect and the server's version."""
    _, group, test = nodeid.split("::", 2)
    return f"{group.split('_postgresql')[0]}::{test}"


def pytest_runtest_logreport(report: Any) -> None:
    if report.skipped or (report.passed and report.when != "call"):
        return
    name = name_of(report.nodeid)
    expected = [pattern for pattern in EXPECTED if fnmatchcase(name, pattern.replace("[", "[[]"))]
    if report.failed and expected:
        results.seen.update(expected)
    else:
        lines = [line[1:].strip() for line in str(report.longrepr).splitlines() if line.startswith("E ")]
        results.report(name, None if report.passed else " | ".join(lines) or str(report.longrepr)[-300:].replace("\n", " | "))


def pytest_sessionfinish(session: Any) -> None:
    for pattern in EXPECTED:
        if pattern not in results.seen:
            results.report(f"differences.txt: {pattern}", "no test fails: remove the line")
    print(f"\n1..{results.count}", flush=True)
