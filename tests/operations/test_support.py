"""`tailgate top` and `tailgate bundle`."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from tailgate import cli
from tailgate.operations.support import bundle
from tailgate.operations.support.top import view
from tests.authorization.world import World

SECRET = "s3cr3t-value"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "lake")
    with world.connect() as connection:
        for text in (
            "CREATE TABLE orders (id bigint PRIMARY KEY, name text)",
            f"INSERT INTO orders VALUES (1, '{SECRET}')",
            f"CREATE MATERIALIZED VIEW chosen AS SELECT id FROM orders WHERE name = '{SECRET}'",
            f"CREATE SECRET key AS '{SECRET}'",
            f"CREATE ROLE ann LOGIN PASSWORD '{SECRET}'",
            f"COMMENT ON TABLE orders IS '{SECRET}'",
        ):
            connection.execute(text.encode())
    return world


def test_a_bundle_has_no_data_and_no_secrets(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TAILGATE_SCHEMA_REGISTRY", f"http://ann:{SECRET}@localhost:8081")
    logs = world.lake.path / "logs"
    logs.mkdir()
    (logs / "engine.log").write_text("a line of a log")
    words = ["bundle", "--data", str(world.lake.path), "--to"]
    try:
        assert cli.main([*words, str(tmp_path / "small.tar.gz")]) == 0
        assert cli.main([*words, str(tmp_path / "large.tar.gz"), "--logs"]) == 0
        assert cli.main([*words, str(tmp_path / "small.tar.gz")]) == 1
        assert "already exists" in capsys.readouterr().err
        assert cli.main([*words, str(tmp_path / "missing" / "small.tar.gz")]) == 1
        assert "cannot be created: No such file or directory" in capsys.readouterr().err
        failing = tmp_path / "failing.tar.gz"
        with monkeypatch.context() as patch:
            patch.setattr(bundle, "_versions", lambda: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                cli.main([*words, str(failing)])
            patch.setenv("TAILGATE_HTTP_RATE", "many")
            assert cli.main([*words, str(failing)]) != 0
        assert not failing.exists()
    finally:
        world.close()
    files = {name: unpacked(tmp_path / f"{name}.tar.gz") for name in ("small", "large")}
    assert files["small"].keys() == {"versions.json", "status.json", "config.json", "catalog.json", "log.jsonl", "folders.json"}
    assert files["large"].keys() - files["small"].keys() == {"logs/engine.log"}
    for name, text in files["large"].items():
        assert SECRET not in text and "SCRAM" not in text, name
    names = {item["name"]: item["columns"] for item in json.loads(files["small"]["catalog.json"])}
    assert names["public.orders"] == {"id": "bigint", "name": "text"}
    assert "public.chosen" in names
    assert "changed_rows" in json.loads(files["small"]["log.jsonl"].splitlines()[-1])


def unpacked(path: Path) -> dict[str, str]:
    """Returns the contents of a bundle's files by name."""
    with tarfile.open(path) as archive:
        members = {member.name.removeprefix("tailgate-bundle/"): archive.extractfile(member) for member in archive}
        return {name: file.read().decode() for name, file in members.items() if file is not None}


def test_top_shows_the_status_and_rates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = World(tmp_path / "lake")
    try:
        assert cli.main(["top", "--data", str(world.lake.path), "--count", "1"]) == 0
    finally:
        world.close()
    assert "engine    running" in capsys.readouterr().out
    report = {
        "data": "lake", "disk_free": 0.5, "entry": None, "engine": {"state": "running"}, "gateways": [], "views": {}, "sinks": {},
        "gateways_not_reached": [], "sources": {"orders": {"status": "running", "per_second": 12.5}}, "alerts": [], "problems": [],
        "ticks": 30, "tick_ms": {"p50": 4.0, "p95": 7.5},
    }  # fmt: skip
    lines = list(view(report, ({**report, "ticks": 10}, 100.0), 104.0))
    assert "ticks     5.0/s, p50 4.0 ms, p95 7.5 ms" in lines
    assert "rate      orders: 12.5 records/s" in lines
