"""Tests that take too long, and processes of pytest-xdist that end: the other tests run, and none runs twice."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import distribution

COLLECTION = [f"{file}.py::test_{n}" for file in "abcd" for n in range(2)]
# Each test hangs where another part of the limit ends it. SECONDS is how long the child sleeps, by which the test finds it.
HANGING = """
import collections, itertools, subprocess, threading
import pytest

def wait():
    threading.Event().wait()

@pytest.fixture
def never_ready():
    wait()

@pytest.fixture
def never_over():
    yield
    wait()

def test_join():
    thread = threading.Thread(target=wait, name="another", daemon=True)
    thread.start()
    thread.join()

def test_set_up(never_ready):
    pass

def test_tear_down_after_a_failure(never_over):
    assert False

def test_call_of_c():
    subprocess.Popen(["sleep", "SECONDS"])
    collections.deque(itertools.repeat(0), 0)

def test_after():
    pass
"""
# The end of a process in a tear-down is a failure, too.
RESULTS = [
    "ERROR set_up",
    "FAILED call_of_c",
    "FAILED join",
    "FAILED tear_down_after_a_failure",
    "FAILED tear_down_after_a_failure",
    "PASSED after",
    "PASSED test_other.py::test",
]


class Node:
    """A process of xdist, with the tests that it was given."""

    def __init__(self) -> None:
        self.gateway = SimpleNamespace(id="gw0")
        self.shutting_down = False
        self.given: list[str] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += [COLLECTION[i] for i in indices]

    def shutdown(self) -> None:
        self.shutting_down = True


@pytest.fixture
def scheduler(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(pytestconfig.option, "tx", ["2*popen"])
    monkeypatch.setattr(pytestconfig.option, "loadscopereorder", False)
    return distribution.pytest_xdist_make_scheduler(pytestconfig, None)


def begin(scheduler: Any, *nodes: Node) -> None:
    for node in nodes:
        scheduler.add_node(node)
        scheduler.add_node_collection(node, COLLECTION)
    scheduler.schedule()


def complete(scheduler: Any, node: Node, count: int, after: int = 0) -> None:
    for test in node.given[after : after + count]:
        scheduler.mark_test_complete(node, COLLECTION.index(test))


def test_a_process_that_replaces_another_one_runs_the_tests_after_the_one_that_ended_it(scheduler: Any) -> None:
    first, second, third = Node(), Node(), Node()
    begin(scheduler, first, second)
    complete(scheduler, second, 4)  # all that it gets
    complete(scheduler, first, 2)
    assert second.shutting_down
    assert first.given == ["a.py::test_0", "a.py::test_1", "c.py::test_0", "c.py::test_1"]
    assert scheduler.remove_node(first) == "c.py::test_0"
    begin(scheduler, third)
    assert third.given == ["c.py::test_1"]
    assert third.shutting_down  # so it runs the only test
    complete(scheduler, third, 1)
    assert not scheduler.has_pending
    assert scheduler.remove_node(third) is None


def test_a_process_that_ended_in_its_last_test_leaves_nothing(scheduler: Any) -> None:
    first, second = Node(), Node()
    begin(scheduler, first, second)
    complete(scheduler, second, 4)
    complete(scheduler, first, 3)
    assert scheduler.remove_node(first) == first.given[-1]
    assert not scheduler.has_pending


@pytest.mark.long
def test_a_test_that_hangs_fails(repository: Path, tmp_path: Path) -> None:
    seconds = f"60.{os.getpid()}"
    (tmp_path / "test_hanging.py").write_text(HANGING.replace("SECONDS", seconds))
    (tmp_path / "test_other.py").write_text("def test(): pass")
    command = [sys.executable, "-m", "pytest", "-p", "tests.distribution", "-p", "tests.limits", "-n", "2", "--timeout", "1", "-rA"]
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    results = sorted(line.split()[:2] for line in run.stdout.splitlines() if line.startswith(("PASSED", "FAILED", "ERROR")))
    assert [" ".join(result).replace("test_hanging.py::test_", "") for result in results] == RESULTS
    assert "Stack of another" in run.stdout  # test_join waits for it
    assert "in test_call_of_c" in run.stderr
    assert children(seconds) == []


def children(argument: str) -> list[str]:
    """Returns the processes with this argument."""
    commands = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            commands.append(command.read_text())
    return [command for command in commands if argument in command.split("\0")]
