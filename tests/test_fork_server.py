"""A forked process has what Popen gives an executed one, and its parent sees how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tailgate.embedded.children import Child
from testing import fork_server

COMMAND = [sys.executable, "-m", "tests.forked_process", "a", "b c"]
ROOT = Path(__file__).parents[1]
FORKED = {("tests.forked_process",): ("json",)}

pytestmark = pytest.mark.skipif(fork_server.SYS_CLONE is None, reason="processes are executed on this system")


def run(folder: Path, *, is_forked: bool, **options: Any) -> tuple[dict[str, Any], int]:
    """Returns the output of a process and its exit code."""
    environment = {**os.environ, "WORD": "ä", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(COMMAND, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
    assert process.stdin is not None and process.stdout is not None
    with process:
        line = process.stdout.readline()
        forked = b"testing.fork_server" in Path(f"/proc/{process.pid}/cmdline").read_bytes()
        process.stdin.write("four")
    assert forked == is_forked
    return json.loads(line), process.returncode


@pytest.mark.parametrize("options", [{}, {"start_new_session": True}], ids=["group", "session"])
def test_a_process_has_what_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    read, write = os.pipe()
    with open(read), open(write, "wb"):
        executed = run(tmp_path, is_forked=False, pass_fds=(read,), **options)
        monkeypatch.setattr(fork_server, "PRELOADED", FORKED)
        forked = run(tmp_path, is_forked=True, pass_fds=(read,), **options)
    assert forked == executed
    assert (forked[0]["parent"], forked[0]["environment"]["WORD"], forked[1]) == (os.getpid(), "ä", 4)


def test_a_process_that_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "PRELOADED", FORKED)
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL


def test_a_child_is_registered_with_its_watcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "PRELOADED", FORKED)
    child = Child("forked", COMMAND, log=tmp_path / "log", announces="arguments")
    assert child.wait(timedelta(seconds=30)) == 0  # its input is empty
    child.stop()  # its log is complete
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert (json.loads(line)["is_session_leader"], json.loads(line)["descriptors"]) == (True, [0, 1, 2])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[fork_server.Server]:
    """Forks the processes of one test only."""
    server = fork_server.Server()
    monkeypatch.setattr(fork_server, "_server", server)
    monkeypatch.setattr(fork_server, "PRELOADED", FORKED)
    yield server
    server.stop()


class Interrupted(socket.socket):
    """Raises an exception in place of the first answer."""

    raised = False

    def recv(self, *arguments: Any) -> bytes:
        if self.raised:
            return super().recv(*arguments)
        self.raised = True
        raise KeyboardInterrupt


def test_the_answer_to_an_interrupted_request_is_not_that_to_the_next_one(tmp_path: Path, server: fork_server.Server) -> None:
    server._control = Interrupted(fileno=server._started().detach())
    with pytest.raises(KeyboardInterrupt):
        subprocess.Popen(COMMAND, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    assert run(tmp_path, is_forked=True)[1] == 4


def test_a_server_that_was_killed_is_started_again(tmp_path: Path, server: fork_server.Server) -> None:
    run(tmp_path, is_forked=True)
    assert server._process is not None
    server._process.kill()
    server._process.wait()
    assert [run(tmp_path, is_forked=forked)[1] for forked in (False, True)] == [4, 4]


def test_a_process_with_duckdb_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: fork_server.Server) -> None:
    monkeypatch.setattr(fork_server, "PRELOADED", dict.fromkeys(FORKED, ("duckdb",)))
    process = subprocess.Popen(COMMAND, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.usefixtures("server")
def test_an_ignored_interrupt(tmp_path: Path) -> None:
    """A shell without job control ignores SIGINT in processes in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert not run(tmp_path, is_forked=True)[0]["interrupt"]
    finally:
        signal.signal(signal.SIGINT, before)


IMPORTS = """
from importlib import import_module
from testing import fork_server

for command, names in fork_server.PRELOADED.items():
    for name in names:
        import_module(name)
    assert fork_server.is_alone(), command
"""


def test_the_modules_start_no_thread() -> None:
    """Otherwise all processes would be executed: a gateway's first, and those after it."""
    environment = {**os.environ, **fork_server.WITHOUT_THREADS}
    result = subprocess.run([sys.executable, "-c", IMPORTS], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_a_process_with_threads_does_not_fork() -> None:
    done = threading.Event()
    threading.Thread(target=done.wait).start()
    try:
        assert not fork_server.is_alone()
    finally:
        done.set()
