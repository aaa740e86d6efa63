"""Programs of NOTIFY COMMAND, without a gateway."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from tailgate.operations.watch.alerts import Condition, Notification
from tailgate.operations.watch.targets import programs
from tailgate.operations.watch.targets.programs import Program
from testing.engine_process import until

NOTIFICATION = Notification(7, 2000, "fired", Condition("late", "1", "page", "a parcel is late", fields={"id": 1}), 1000)


def program(folder: Path | None, path: str = "call") -> Program:
    return Program(path, folder, "lake", lambda notification: True, "5")


def script(folder: Path, text: str, mode: int = 0o700) -> Path:
    """Writes an executable file `call` into a folder."""
    path = folder / "call"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(mode)
    return path


def test_a_program_gets_the_notification_and_nothing_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILGATE_TOKEN", "secret")
    script(tmp_path, "cat > received; env > environment; pwd > folder")
    assert program(tmp_path).send(NOTIFICATION) is None
    received = json.loads((tmp_path / "received").read_text())
    assert (received["id"], received["alert"], received["event"], received["fields"]) == (7, "late", "fired", {"id": 1})
    assert "TAILGATE_TOKEN" not in (tmp_path / "environment").read_text()
    assert (tmp_path / "folder").read_text().strip() == str(tmp_path)


def test_an_exit_code_is_a_refusal(tmp_path: Path) -> None:
    script(tmp_path, "exit 3")
    assert program(tmp_path).send(NOTIFICATION) == "exit code 3"


def test_only_programs_below_the_folder_are_executed(tmp_path: Path) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    assert program(None).send(NOTIFICATION) == "NOTIFY COMMAND needs --alert-commands and --secrets-dir"
    outside = script(tmp_path, "touch executed")
    (folder / "link").symlink_to(outside)
    for path in ("link", "../call", str(outside)):
        assert program(folder, path).send(NOTIFICATION) == f'program "{path}" is not below --secrets-dir'
    assert not (tmp_path / "executed").exists()
    script(folder, "touch executed", 0o600)
    if os.geteuid() != 0 or not os.access(folder / "call", os.X_OK):
        assert program(folder).send(NOTIFICATION) == 'program "call" cannot be executed: Permission denied'
    assert program(folder, "missing").send(NOTIFICATION) == 'program "missing" cannot be executed: No such file or directory'


def test_a_program_that_does_not_end_is_killed_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PROGRAM_S", 0.3)
    script(tmp_path, "sleep 60 & echo $! > child; wait")
    began = time.monotonic()
    assert program(tmp_path).send(NOTIFICATION) == "the program did not end within 0.3 s"
    assert time.monotonic() - began < 30
    child = int((tmp_path / "child").read_text())
    state = Path(f"/proc/{child}/stat")
    # the kernel carries out SIGKILL a moment after it was sent
    until(lambda: not state.exists() or state.read_text().rpartition(")")[2].split()[0] in "ZX", 10)


def test_the_position_of_a_program_is_its_own(tmp_path: Path) -> None:
    names = {program(tmp_path).name, program(tmp_path, "other").name, Program("call", tmp_path, "lake", lambda n: True, "6").name}
    assert len(names) == 3
