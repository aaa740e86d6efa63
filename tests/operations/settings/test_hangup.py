"""Tests that running processes read their settings again after SIGHUP."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tailgate.lake.folder import Lake
from tailgate.operations.settings.process import Published, published
from testing.engine_process import until
from tests.gateway.serving.model_lake import ModelLake

pytestmark = pytest.mark.long

REPOSITORY = Path(__file__).parents[3]
COMMANDS = ("gateway --listen 127.0.0.1:0", "sinks", "watch")


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """Runs a gateway, sinks and a watch over a lake. Their settings are in `tailgate.toml` in the same folder."""
    model = ModelLake(tmp_path / "lake")
    model.create("v")
    (tmp_path / "tailgate.toml").write_text("")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TAILGATE_DATA": str(tmp_path / "lake")}
    children = [_started(command, tmp_path, environment) for command in COMMANDS]
    until(lambda: len(published(model.lake.store)) == len(COMMANDS))
    yield model.lake
    for child in children:
        assert child.poll() is None
        child.terminate()
    for child in children:
        assert child.wait(30) == 0
    assert published(model.lake.store) == []
    model.writer.close()


def _started(command: str, folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    name = command.split()[0]
    with (folder / f"{name}.out").open("w") as out, (folder / f"{name}.err").open("w") as err:
        return subprocess.Popen([sys.executable, "-m", "tailgate", *command.split()], cwd=folder, env=environment, stdout=out, stderr=err)


def setting(process: Published, name: str) -> str:
    return next(each.value for each in process.settings if each.name == f"{process.command}.{name}")


def test_processes_read_their_settings_again(lake: Lake) -> None:
    text = 'log = "json"\nset = ["statement_timeout=9s"]\n[watch]\nwebhook = ["http://127.0.0.1:9/"]\n'
    (lake.path.parent / "tailgate.toml").write_text(text)
    for process in published(lake.store):
        os.kill(process.pid, signal.SIGHUP)
    until(lambda: [setting(process, "log") for process in published(lake.store)] == ["json"] * len(COMMANDS))
    processes = {process.command: process for process in published(lake.store)}
    assert setting(processes["watch"], "webhook") == "http://127.0.0.1:9/"
    for log in [lake.path.parent / f"{command}.err" for command in processes]:
        until(lambda log=log: '"message": "the settings were read again"' in log.read_text())
    dsn = next(line for line in (lake.path.parent / "gateway.out").read_text().split() if line.startswith("postgresql=")).partition("=")[2]
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SHOW statement_timeout").fetchone() == ("9s",)
