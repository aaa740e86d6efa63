"""Tests child processes: they end with their parent, their logs are bounded, and waits have timeouts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from tailgate.embedded import children
from tailgate.embedded.children import Child, ChildFailed, free_port, listening

SOON = timedelta(seconds=10)

# A parent, a child and a grandchild, which print their process ids; then the parent sleeps.
PARENT = """
import signal
import time
from datetime import timedelta
from pathlib import Path
from tailgate.embedded.children import Child
command = ["sh", "-c", "sleep 300 & echo $! > grandchild; echo here; wait"]
child = Child("child", command, log=Path("log"), announces="here")
child.wait_ready(child.announced, timedelta(seconds=10))
print(child.pid, Path("grandchild").read_text().strip(), flush=True)
signal.signal(signal.SIGINT, signal.default_int_handler)  # processes of a shell's background job ignore it
time.sleep(300)
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def all_ended(pids: list[int]) -> bool:
    deadline = time.monotonic() + SOON.total_seconds()
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not any(alive(pid) for pid in pids)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_children_and_theirs_end_with_a_parent_that_is_killed(tmp_path: Path, sent: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert all(alive(pid) for pid in pids)
        parent.send_signal(sent)
        parent.wait()
        assert all_ended(pids)


def test_the_children_of_a_child_end_with_it(tmp_path: Path) -> None:
    child = Child("child", ["sh", "-c", "sleep 300 & echo $! > grandchild; exit 3"], log=tmp_path / "log", folder=tmp_path)
    assert child.wait(SOON) == 3
    assert all_ended([int((tmp_path / "grandchild").read_text())])


def test_stop_asks_first(tmp_path: Path) -> None:
    command = ["sh", "-c", "trap 'echo flushed; exit 0' TERM; echo ready; while :; do sleep 0.05; done"]
    child = Child("polite", command, log=tmp_path / "log", announces="ready")
    child.wait_ready(child.announced, SOON)
    assert child.stop() == 0
    assert (tmp_path / "log").read_text() == "ready\nflushed\n"
    assert child.stop() == 0


def test_stop_kills_after_its_grace(tmp_path: Path) -> None:
    child = Child("deaf", ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"], log=tmp_path / "log", announces="ready")
    child.wait_ready(child.announced, SOON)
    assert child.stop(timedelta(milliseconds=200)) == -signal.SIGKILL


def test_a_failed_child_is_reported_with_its_last_output(tmp_path: Path) -> None:
    child = Child("unlucky", ["sh", "-c", "echo no such topic >&2; exit 7"], log=tmp_path / "log", announces="ready")
    with pytest.raises(ChildFailed, match=r"unlucky ended with 7 before it was ready(.|\n)*no such topic"):
        child.wait_ready(child.announced, SOON)


def test_waiting_for_readiness_ends(tmp_path: Path) -> None:
    child = Child("slow", ["sleep", "300"], log=tmp_path / "log")
    with pytest.raises(ChildFailed, match=r"slow was not ready after 0\.2 s"):
        child.wait_ready(lambda: False, timedelta(milliseconds=200))
    child.kill()
    assert not child.running()


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    child = Child("missing", ["/nowhere/program"], log=tmp_path / "log")
    with pytest.raises(ChildFailed, match="not found"):
        child.wait_ready(lambda: False, SOON)


def test_a_log_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "LOG_BYTES_MAX", 100_000)
    child = Child("talker", ["sh", "-c", "yes 'a line of some length' | head -c 1000000; echo the end"], log=tmp_path / "log")
    assert child.wait(SOON) == 0
    child.stop()
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 200_000
    assert (tmp_path / "log").read_text().endswith("the end\n")
    assert child.last_lines().endswith("the end")


def test_environment_and_signals_of_a_child_are_plain(tmp_path: Path) -> None:
    child = Child("plain", ["sh", "-c", 'echo "$WORD"; read line || echo no input'], log=tmp_path / "log", environment={"WORD": "said"})
    assert child.wait(SOON) == 0
    child.stop()
    assert (tmp_path / "log").read_text() == "said\nno input\n"


def test_a_child_keeps_no_pipe_of_its_parent(tmp_path: Path) -> None:
    """Otherwise the watcher, which waits for the end of the pipe, would not notice that the parent has ended."""
    child = Child("looker", ["sh", "-c", "ls -l /proc/self/fd"], log=tmp_path / "log")
    assert child.wait(SOON) == 0
    child.stop()
    watched = os.readlink(f"/proc/self/fd/{children._watcher.pipe()}")
    assert watched not in (tmp_path / "log").read_text()


def test_free_ports_differ_and_are_free() -> None:
    ports = [free_port() for _ in range(20)]
    assert len(set(ports)) == 20
    assert not any(listening(port) for port in ports)
