"""A runner of Django's tests that prints their results (`suite.Results`)."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any

from django.test.runner import DiscoverRunner

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "clients" / "python"))
from suite import Results


class Reported(unittest.TextTestResult):
    """Results that are printed when the tests end. A test with several failed subtests has the reason of the first."""

    def __init__(self, *arguments: Any, **words: Any) -> None:
        super().__init__(*arguments, **words)
        self._results = Results(Path(__file__).parent / "differences.txt")
        self._failures: dict[str, str] = {}

    def addSuccess(self, test: Any) -> None:
        super().addSuccess(test)
        self._results.passed(test.id())

    def addError(self, test: Any, err: Any) -> None:
        super().addError(test, err)
        self._failures.setdefault(test.id(), _reason(err))

    def addFailure(self, test: Any, err: Any) -> None:
        super().addFailure(test, err)
        self._failures.setdefault(test.id(), _reason(err))

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._failures.setdefault(test.id(), _reason(err))

    def stopTestRun(self) -> None:
        super().stopTestRun()
        for name, reason in self._failures.items():
            self._results.failed(name, reason)
        self._results.finish()


def _reason(err: Any) -> str:
    kind, error, _ = err
    return f"{kind.__name__}: {error}"[:600]


class Runner(DiscoverRunner):
    """Django's runner with these results."""

    def get_resultclass(self) -> type[Reported]:
        return Reported
