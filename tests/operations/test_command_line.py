"""Invalid command lines: one line with the error, a hint, and no traceback."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tailgate import cli

INVALID = {
    "": "the following arguments are required: COMMAND",
    "up --listen 999999": 'argument --listen: "999999" is not HOST:PORT',
    "up --listen 127.0.0.1:70000": 'argument --listen: "127.0.0.1:70000" is not HOST:PORT',
    "up --listen ::1:6875": 'argument --listen: "::1:6875" is not HOST:PORT',
    "up --ksqldb 127.0.0.1:x": 'argument --ksqldb: "127.0.0.1:x" is not HOST:PORT',
    "up --ksqldb 8088": 'argument --ksqldb: "8088" is not HOST:PORT',
    "up --parallelism 0": "argument --parallelism: 0 is outside the valid range (1 .. 1024)",
    "up --gateways 0": "argument --gateways: 0 is outside the valid range (1 .. 64)",
    "gateway --http 8080": 'argument --http: "8080" is not HOST:PORT',
    "gateway --console x": 'argument --console: "x" is not HOST:PORT',
    "demo --rate -5": 'argument --rate: "-5" is not a number greater than 0',
    "demo --for 0": 'argument --for: "0" is not a number greater than 0',
    "presto --gateway :6875": "argument --gateway: :6875 names no host to which a process can connect",
    "ksqldb --gateway 1": 'argument --gateway: "1" is not HOST:PORT',
    "doctor --listen x": 'argument --listen: "x" is not HOST:PORT',
    "top --count 0": "argument --count: 0 is outside the valid range (1 .. 1000000000)",
    "log ls --count 0": "argument --count: 0 is outside the valid range (1 .. 1000000000)",
    "log show x": 'argument n: "x" is not a number',
}


@pytest.mark.parametrize("line", INVALID)
def test_an_invalid_option_is_an_error_with_a_hint(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(line.split())
    command = re.match(r"(log ls|log show|\w*)", line)
    assert command is not None
    hint = " ".join(["tailgate", *command[1].split(), "--help lists the options."])
    assert (ended.value.code, capsys.readouterr().err) == (2, f"tailgate: {INVALID[line]}\nHINT:  {hint}\n")


@pytest.mark.parametrize("words", [("up", "--data"), ("jars", "--to")])
def test_a_file_in_place_of_a_folder_is_an_error_without_a_traceback(words: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    ended = subprocess.run([sys.executable, "-m", "tailgate", *words, str(file)], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (1, f"tailgate: {file}: File exists\n")


def test_a_missing_program_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tailgate", "engine", "--data", str(tmp_path / "lake")]
    ended = subprocess.run(words, env={"PATH": "/nowhere"}, capture_output=True, text=True, timeout=60, check=False)
    message = "tailgate: java is not on PATH and JAVA_HOME is not set: Java 17 or newer is needed\n"
    assert (ended.returncode, ended.stderr) == (1, message)


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert re.fullmatch(r"tailgate \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)
