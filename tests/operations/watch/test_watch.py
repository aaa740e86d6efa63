"""Tests `tailgate watch`: it finds failures of an engine and a gateway, also after it was killed."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate import cli
from tailgate.engine.runtime.control.control import Answers, Control
from tailgate.lake.store import documents
from tailgate.lake.store.stand_by import Lease
from tailgate.lake.writer.engines import LEASE_S, Announcement
from tailgate.operations.sketch import STEP_S
from tailgate.operations.watch import history, main, missed, states
from tailgate.operations.watch.delivery import Webhook
from tailgate.operations.watch.history import HOUR_STEPS
from testing.engine_process import until
from tests.operations.watch.receiver import Receiver
from tests.operations.watch.test_checks import HEALTH
from tests.wire.live import Live

RAISED_S = 10.0


class Watched:
    """A gateway, an engine that answers requests for its health and renews its lease, and a webhook."""

    def __init__(self, folder: Path) -> None:
        self.live = Live(folder / "lake")
        self.lake = self.live.model.lake
        self.health: dict[str, Any] = json.loads(json.dumps(HEALTH))
        self.receiver = Receiver()
        self.lease = Lease(LEASE_S, self.live.model.writer.renew_lease)
        self.start_engine()

    def start_engine(self) -> None:
        nothing: Any = lambda *arguments: {}  # noqa: E731
        self.control = Control(Answers(nothing, nothing, nothing, nothing, health=lambda: self.health))
        self.control.start()
        Announcement.mine(self.live.model.writer.epoch, self.control.address, self.control.token, None).write(self.lake)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.live.dsn, autocommit=True) as connection:
            return connection.execute(query).fetchall()  # type: ignore[call-overload, no-any-return]

    def close(self) -> None:
        self.control.stop()
        self.lease.end()
        self.live.close()
        self.receiver.stop()


class System(Watched):
    """The same, with the process `tailgate watch`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.start_watch()

    def start_watch(self) -> None:
        words = ["watch", "--data", str(self.lake.path), "--webhook", self.receiver.url]
        self.process = subprocess.Popen([sys.executable, "-m", "tailgate", *words], stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith(b"ready watch=")

    def kill_watch(self) -> None:
        self.process.kill()
        self.process.communicate()

    def close(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=20)
        super().close()


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    system = System(tmp_path)
    yield system
    system.close()


@pytest.mark.parametrize("looks", [main.LOOKS, 1_000_000])
def test_an_alert_reaches_the_webhook_and_the_history(looks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An alert does so, too, if the lake is rarely read, as in a bucket: the watch asks the engine meanwhile."""
    monkeypatch.setattr(states, "QUIET_S", 0.1)
    monkeypatch.setattr(main, "POLL_S", 0.05)
    monkeypatch.setattr(main, "LOOKS", looks)
    watched = Watched(tmp_path)
    target = Webhook(watched.receiver.url, "plain", watched.lake.id, lambda: None, lambda notification: True)
    watcher = main.Watcher(watched.lake, [target])
    thread = threading.Thread(target=watcher.run)
    thread.start()
    query = "SELECT key, severity, state, summary, fields, resolved_at IS NULL, last_notification FROM tailgate.alerts"
    query += " WHERE alert = 'view_failing'"
    try:
        assert watched.rows(query) == []
        watched.health["views"]["totals"]["status"] = "failing"
        until(lambda: watched.receiver.events("view_failing", "totals") == ["fired"], RAISED_S)
        assert watched.rows(query) == [("totals", "page", "firing", "view totals is failing", {}, True, watcher.newest)]
        watched.health["views"]["totals"]["status"] = "running"
        until(lambda: watched.receiver.events("view_failing", "totals") == ["fired", "resolved"], RAISED_S)
        assert watched.rows(query) == [("totals", "page", "resolved", "view totals is failing", {}, False, watcher.newest)]
    finally:
        watcher.stop()
        thread.join(20)
        watched.close()


def test_it_starts_while_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """After an hour in which it did not run, when it has to write rows of the history and a notification at once."""

    def full(path: Path, parts: Iterable[bytes | memoryview]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(main, "POLL_S", 0.05)
    watched = Watched(tmp_path)
    now = time.time()
    hour, step = int(now) // 3600 - 1, int(now) // STEP_S - HOUR_STEPS
    watched.lake.store.put(f"{history.NAME}/{hour}", json.dumps({"step": step, "rows": []}).encode())
    documents.write(watched.lake.store, missed.NAME, {"at": int(now * 1000) - 3_600_000, "n": 0, "epoch": 0})
    target = Webhook(watched.receiver.url, "plain", watched.lake.id, lambda: None, lambda notification: True)
    try:
        with monkeypatch.context() as patch:
            patch.setattr("tailgate.lake.host.files.write", full)
            watcher = main.Watcher(watched.lake, [target])
            thread = threading.Thread(target=watcher.run)
            thread.start()
            until(lambda: caplog.text.count("the lake cannot be observed") > 1, RAISED_S)
        until(lambda: watched.receiver.events("watch_was_stopped") == ["fired", "resolved"], RAISED_S)
        until(lambda: history.hours(watched.lake.store) == [f"{history.NAME}/{hour}{history.PARQUET}"], RAISED_S)
    finally:
        watcher.stop()
        thread.join(20)
        watched.close()


@pytest.mark.long
def test_failures_are_reported_within_ten_seconds_and_resolved(system: System) -> None:
    receiver = system.receiver
    stalled = "SELECT key, severity, state, summary, resolved_at IS NULL FROM tailgate.alerts WHERE alert = 'source_stalled'"
    assert system.rows(stalled) == []
    system.health["sources"]["orders"]["status"] = "stalled"
    until(lambda: receiver.events("source_stalled", "orders") == ["fired"], RAISED_S)
    assert system.rows(stalled) == [("orders", "page", "firing", "source orders is stalled", True)]
    # the alert and the ids survive that the process is killed
    system.kill_watch()
    system.start_watch()
    system.health["sources"]["orders"]["status"] = "running"
    until(lambda: receiver.events("source_stalled", "orders") == ["fired", "resolved"], RAISED_S)
    assert system.rows(stalled) == [("orders", "page", "resolved", "source orders is stalled", False)]
    # an engine that ends; alerts that it cannot report now keep their state
    system.health["views"]["totals"]["status"] = "failing"
    until(lambda: receiver.events("view_failing", "totals") == ["fired"], RAISED_S)
    system.control.stop()
    until(lambda: receiver.events("engine_unavailable") == ["fired"], RAISED_S)
    system.start_engine()
    until(lambda: receiver.events("engine_unavailable") == ["fired", "resolved"], RAISED_S)
    assert receiver.events("view_failing") == ["fired"]
    ids = [body["id"] for body in receiver.bodies]
    assert ids == list(range(1, len(ids) + 1))


@pytest.mark.long
def test_a_gateway_that_ends(system: System) -> None:
    system.live.call(system.live.server.stop())
    until(lambda: system.receiver.events("gateway_unavailable") == ["fired"], RAISED_S)


@pytest.mark.long
def test_a_second_process_is_refused(system: System) -> None:
    words = [sys.executable, "-m", "tailgate", "watch", "--data", str(system.lake.path)]
    second = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert second.returncode == 1
    assert "another tailgate watch runs on the lake" in second.stderr


@pytest.mark.long
def test_an_outage_is_reported_once(system: System) -> None:
    receiver = system.receiver
    until((system.lake.path / "watch" / "seen").exists, RAISED_S)
    system.kill_watch()
    last = missed.seen(system.lake)
    assert last is not None
    before = {"at": last.at - 3_600_000, "n": last.n, "epoch": last.epoch - 1}
    (system.lake.path / "watch" / "seen").write_text(json.dumps(before))
    time_of_entry = system.live.tick()
    for _ in range(2):
        system.start_watch()
        until(lambda: receiver.events("watch_was_stopped") == ["fired", "resolved"], RAISED_S)
        system.kill_watch()
    (summary,) = {body["summary"] for body in receiver.bodies if body["alert"] == "watch_was_stopped"}
    assert summary.startswith("tailgate watch did not run from ")
    seconds = round((time_of_entry - before["at"]) / 1000)
    assert "the engine was started 1 time" in summary
    assert f"no entry was appended to the log for {seconds} s" in summary
    system.start_watch()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--webhook-secret-file", os.devnull], f"--webhook-secret-file {os.devnull} is empty"),
        (["--webhook-secret-file", "/nowhere"], "--webhook-secret-file /nowhere cannot be read"),
    ],
)
def test_options(words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["watch", "--data", str(tmp_path), *words]) == 1
    assert message in capsys.readouterr().err


def test_a_webhook_is_a_url_of_http(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["watch", "--webhook", "ftp://x/y"])
    assert "argument --webhook: ftp://x/y is not a URL of http or https" in capsys.readouterr().err
