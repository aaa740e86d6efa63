"""Tests `tailgate log ls` and `tailgate log show`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailgate import cli
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
    assert (code, error) == (1, "tailgate: entry 1000 is not in the log\n")
