"""Tests `tailgate log ls` and `tailgate log show`."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailgate import cli
from tailgate.operations.support import top
from tests.gateway.serving.model_lake import ModelLake

VALUE = "a value of a row"


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[ModelLake]:
    lake = ModelLake(tmp_path / "lake")
    yield lake
    lake.writer.close()


def run(capsys: pytest.CaptureFixture[str], lake: ModelLake, *words: str) -> tuple[int, str, str]:
    code = cli.main(["log", *words, "--data", str(lake.lake.path)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_entries_are_listed_and_shown(lake: ModelLake, capsys: pytest.CaptureFixture[str]) -> None:
    view = lake.create("v")
    created = lake.writer.newest.n
    time = lake.tick({view.id: [((1, VALUE, 1.0), 1), ((2, VALUE, 1.0), 1)]})
    code, out, _ = run(capsys, lake, "ls", "--json", "--count", "2")
    first, second = map(json.loads, out.splitlines())
    assert code == 0
    assert (first["n"], first["kind"]) == (created, "catalog")
    assert (second["n"], second["kind"], second["time_ms"], second["relations"], second["rows"]) == (created + 1, "tick", time, 1, 2)
    _, out, _ = run(capsys, lake, "show", str(created), "--json")
    assert json.loads(out)["catalog"] == {"put": {"items": ["v"]}, "drop": {}}
    _, out, _ = run(capsys, lake, "show", str(created + 1), "--json")
    assert json.loads(out)["changed_rows"] == {"public.v": 2}
    assert VALUE not in out


def test_text(lake: ModelLake, capsys: pytest.CaptureFixture[str]) -> None:
    view = lake.create("v")
    lake.tick({view.id: [((1, VALUE, 1.0), 1)]})
    _, out, _ = run(capsys, lake, "ls")
    assert len(out.splitlines()) == lake.writer.newest.n - lake.lake.log.first() + 1
    assert out.splitlines()[-1].endswith("relations 1  rows 1")
    _, out, _ = run(capsys, lake, "show", str(lake.writer.newest.n))
    assert 'changed_rows:   {"public.v": 1}' in out
    assert VALUE not in out


def test_an_entry_that_is_not_in_the_log(lake: ModelLake, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = run(capsys, lake, "show", "1000")
    detail = f"DETAIL:  The log has entries {lake.lake.log.first()} to {lake.writer.newest.n}.\n"
    assert (code, error) == (1, f"tailgate: entry 1000 is not in the log\n{detail}")


@pytest.mark.parametrize("count", ["1", "100000"])
def test_the_reader_of_the_output_may_end(lake: ModelLake, count: str) -> None:
    """The command ends without an error if its reader ends, such as head, whether its output is written at once or at its end."""
    view = lake.create("v")
    for id in range(200):
        lake.tick({view.id: [((id, VALUE, 1.0), 1)]})
    command = [sys.executable, "-m", "tailgate", "log", "ls", "--data", str(lake.lake.path), "--count", count]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert (process.stderr.read(), process.wait(60)) == (b"", 0)


def test_a_connection_that_ends_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a connection is not taken for the end of the output's reader, with which a command ends without an error."""

    def broken(_: object) -> int:
        one, other = socket.socketpair()
        other.close()
        with one:
            one.sendall(b"x")
        return 0

    monkeypatch.setattr(top, "run", broken)
    with pytest.raises(BrokenPipeError):
        cli.main(["top"])


def test_a_data_folder_that_cannot_be_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert cli.main(["status", "--data", str(tmp_path / "file" / "data")]) == 1
    assert capsys.readouterr().err.endswith("/file/data/lake.json: Not a directory\n")
