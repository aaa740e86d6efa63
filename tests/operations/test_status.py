"""Tests `tailgate status`: processes, problems in the order of causes, and the exit code."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailgate import cli
from tailgate.engine.runtime.control.control import Answers, Control
from tailgate.lake import peers
from tailgate.lake.store import documents
from tailgate.lake.writer.engines import Announcement
from tailgate.operations.watch import missed
from tailgate.operations.watch.alerts import Condition, Event
from tailgate.operations.watch.notifications import Writer
from tests.gateway.serving.model_lake import ModelLake

SECRET = "a value of a row"
HEALTHY: dict[str, Any] = {
    "sources": {"orders": {"status": "running", "error": None, "lag": 7, "last_error": SECRET}},
    "views": {"totals": {"status": "filling", "error": None, "rows": 10, "percent": 50.0}},
    "sinks": {"out": {"status": "running", "error": None}},
    "ticks": 3,
    "tick_ms": {"p50": 4.0},
}


class Status:
    """A lake with an engine that answers requests for its status."""

    def __init__(self, path: Path) -> None:
        self.model = ModelLake(path)
        self.model.tick({self.model.create("v").id: [((1, "a", 1.0), 1)]})
        self.lake = self.model.lake
        self.answer: dict[str, Any] = json.loads(json.dumps(HEALTHY))
        nothing: Any = lambda *arguments: {}  # noqa: E731
        self.control = Control(Answers(nothing, nothing, lambda lags: self.answer, nothing))

    def start(self) -> None:
        self.control.start()
        Announcement.mine(self.model.writer.epoch, self.control.address, self.control.token, None).write(self.lake)
        peers.Announcement(self.lake, "127.0.0.1:1", "token", [("127.0.0.1", 6875)])

    def run(self, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any], str]:
        """Returns the exit code, the JSON and the text of the command."""
        code = cli.main(["status", "--data", str(self.lake.path), "--json"])
        fields = json.loads(capsys.readouterr().out)
        assert cli.main(["status", "--data", str(self.lake.path)]) == code
        text = capsys.readouterr().out
        assert SECRET not in text + json.dumps(fields)
        return code, fields, text


@pytest.fixture
def status(tmp_path: Path) -> Iterator[Status]:
    status = Status(tmp_path / "lake")
    yield status
    status.control.stop()
    status.model.writer.close()


@pytest.fixture(autouse=True)
def free_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 50, 50))  # type: ignore[attr-defined]


def test_a_healthy_lake_has_no_problems(status: Status, capsys: pytest.CaptureFixture[str]) -> None:
    status.start()
    code, fields, text = status.run(capsys)
    assert (code, fields["problems"], fields["engine"]["state"]) == (0, [], "running")
    assert fields["sources"]["orders"] == {"status": "running", "lag": 7}
    assert fields["entry"]["n"] == status.lake.log.newest().n  # type: ignore[union-attr]
    for line in ("source    orders: running, 7 records behind", "view      totals: filling, 50.0 % of the backfill", "no problems"):
        assert line in text.splitlines()


def test_the_freshness_lag_is_the_largest_of_the_gateways(
    status: Status, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status.start()
    peers.Announcement(status.lake, "127.0.0.1:2", "token", [("127.0.0.1", 6876)])
    lags = {"127.0.0.1:1": {"orders": 120.4, "totals": None}, "127.0.0.1:2": {"orders": 900.0, "totals": 5.0}}
    monkeypatch.setattr("tailgate.lake.peers.ask", lambda peer, request, timeout_s: {"lags": lags[peer.address]})
    _, fields, text = status.run(capsys)
    assert fields["sources"]["orders"] == {"status": "running", "lag": 7, "freshness_lag_ms": 900}
    assert "source    orders: running, 7 records behind, freshness lag 0.9 s" in text.splitlines()
    assert "view      totals: filling, freshness lag unknown, 50.0 % of the backfill" in text.splitlines()


def test_gateways_that_are_not_reached_are_named(
    status: Status, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status.start()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("socket.gethostname", lambda: "elsewhere")
        peers.Announcement(status.lake, "127.0.0.1:3", "token")
    code, fields, text = status.run(capsys)
    process = f"{os.getpid()} on elsewhere"
    assert (code, fields["gateways_not_reached"], len(fields["gateways"])) == (0, [process], 1)
    assert f"gateway   process {process}: its state is not known here, because it runs without --control-listen" in text.splitlines()


def test_gateways_that_are_not_reached_may_serve_clients(
    status: Status, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("socket.gethostname", lambda: "elsewhere")
        peers.Announcement(status.lake, "127.0.0.1:3", "token")
    _, fields, _ = status.run(capsys)
    what = "no gateway runs on this machine, and the state of those on other machines is not known here"
    assert what in [problem["what"] for problem in fields["problems"]]


def test_a_lake_without_processes(status: Status, capsys: pytest.CaptureFixture[str]) -> None:
    code, fields, _ = status.run(capsys)
    assert code == 1
    assert [problem["what"] for problem in fields["problems"]] == [
        "the engine is not running: views do not change",
        "no gateway runs on this machine: clients cannot connect",
    ]


def test_broken_items_have_hints(status: Status, capsys: pytest.CaptureFixture[str]) -> None:
    status.start()
    status.answer["sources"]["orders"] |= {"status": "stalled", "error": SECRET}
    status.answer["views"]["totals"] |= {"status": "failing", "error": SECRET}
    status.answer["sinks"]["out"]["status"] = "waiting for tailgate sinks"
    code, fields, text = status.run(capsys)
    assert code == 1
    assert [problem["what"] for problem in fields["problems"]] == [
        "source orders is stalled",
        "view totals is failing",
        "sink out is waiting for tailgate sinks",
    ]
    assert "HINT:     Read the error: SELECT name, status, error FROM tailgate.sources." in text
    assert "HINT:     Start the process that writes sinks: tailgate up, or tailgate sinks." in text


def test_a_full_disk_is_named_before_an_engine_that_does_not_answer(
    status: Status, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status.start()
    Announcement.mine(status.model.writer.epoch, status.control.address, "another", None).write(status.lake)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 97, 3))  # type: ignore[attr-defined]
    code, fields, _ = status.run(capsys)
    assert code == 1
    assert [problem["what"] for problem in fields["problems"]] == ["only 3% of the disk is free", "the engine does not answer"]


def test_what_the_watch_has_noticed_is_named_in_the_order_of_causes(status: Status, capsys: pytest.CaptureFixture[str]) -> None:
    """Some failures are not visible at once. Warnings do not change the exit code."""
    status.start()
    writer = Writer(status.lake)
    try:
        letters = Condition("dead_letters", "orders", "warning", "source orders has new dead letters", "Read them.")
        writer.append(Event("fired", letters))
        documents.write(status.lake.store, missed.NAME, {"at": time.time_ns() // 1_000_000, "n": 1, "epoch": 1})
        code, fields, text = status.run(capsys)
        assert (code, fields["problems"]) == (0, [])
        assert "WARNING:  source orders has new dead letters" in text
        status.answer["sources"]["orders"] |= {"status": "stalled", "error": SECRET}
        own = Condition("own", "1", "page", SECRET, fields={"a": SECRET})
        gateway = Condition("gateway_unavailable", "7", "page", "the gateway with process id 7 does not answer", "Look at its log.")
        sink = Condition("sink_failing", "out", "page", "sink out does not write", "Look.")
        for condition in (sink, own, gateway, Condition("source_stalled", "orders", "page", "source orders is stalled", "Read.")):
            writer.append(Event("fired", condition))
        code, fields, _ = status.run(capsys)
        whats = ["the gateway with process id 7 does not answer", "source orders is stalled", "sink out does not write"]
        assert (code, [problem["what"] for problem in fields["problems"]]) == (1, whats)
        # a watch that does not run says nothing about the present
        documents.write(status.lake.store, missed.NAME, {"at": 1, "n": 1, "epoch": 1})
        _, fields, _ = status.run(capsys)
        assert [problem["what"] for problem in fields["problems"]] == ["source orders is stalled"]
    finally:
        writer.close()


def test_an_engine_that_was_killed(status: Status, capsys: pytest.CaptureFixture[str]) -> None:
    status.start()
    file = status.lake.path / "engine.json"
    announcement = json.loads(file.read_text())
    announcement["address"], announcement["process"]["started"] = "127.0.0.1:1", 1
    file.write_text(json.dumps(announcement))
    code, fields, _ = status.run(capsys)
    assert code == 1
    assert fields["problems"][0]["what"] == "the engine has ended unexpectedly"
