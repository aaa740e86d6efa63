"""The end of tests that take too long: pytest-timeout ends them after `timeout` of pyproject.toml; the process ends if it cannot.

set-up, call and tear-down ──► SIGALRM after `timeout`: the stacks of all threads, a failure, and fixtures stop their servers
each of the three ──► GRACE of it later, because a call of C, of the JVM or a tear-down waits: the stacks, and the process ends
  └──► pytest-xdist reports a failure and starts a process for the other tests; the children of the ended process are killed
"""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

LONG_S = 3600.0  # of tests that are marked `long`; the longest take a quarter of an hour
GRACE = 0.25  # of the limit
LIMIT = pytest.StashKey[float]()  # of a test, in seconds; missing if it has none
STDERR = pytest.StashKey[int]()  # not captured


def pytest_configure(config: pytest.Config) -> None:
    config.stash[STDERR] = os.dup(2)


def pytest_unconfigure(config: pytest.Config) -> None:
    os.close(config.stash[STDERR])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("long") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LONG_S))


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    """Records a test's limit. Sets no timer for one with a Spark session: after an error within a request to the JVM, later ones fail."""
    item.stash[LIMIT] = settings.timeout
    return True if "session" in getattr(item, "fixturenames", ()) else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def _ends(item: pytest.Item) -> Generator[None, Any, Any]:
    """Ends the process if this part of a test takes too long. Neither pytest-timeout nor pytest limits a tear-down after a failure."""
    if LIMIT in item.stash:
        faulthandler.dump_traceback_later(item.stash[LIMIT] * (1 + GRACE), file=item.config.stash[STDERR], exit=True)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


pytest_runtest_setup = pytest_runtest_call = pytest_runtest_teardown = _ends


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Kills the processes that tests of a process of xdist have started, if it ended early."""
    if error is not None:
        names = {"PYTEST_XDIST_WORKER": "workerid", "PYTEST_XDIST_TESTRUNUID": "testrunuid"}
        ours = {f"{name}={node.workerinput[key]}".encode() for name, key in names.items()}
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):  # it has ended, or is another user's
                if ours <= set(environment.read_bytes().split(b"\0")):
                    os.kill(int(environment.parent.name), signal.SIGKILL)
