"""Tests notifications: their ids, and their delivery to webhooks that fail."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tailgate.lake.errors import ObjectNotInPrerequisiteState
from tailgate.lake.folder import Lake
from tailgate.lake.host import disk, files
from tailgate.operations.watch import delivery, main, notifications, payloads
from tailgate.operations.watch.alerts import Condition, Event, Notification
from tailgate.operations.watch.delivery import Deliverer, Webhook
from tailgate.operations.watch.notifications import KEPT_MS, NOTIFICATIONS, Notifications, Writer
from testing.engine_process import until
from tests.operations.watch.receiver import Receiver

STALLED = Condition("source_stalled", "orders", "page", "source orders is stalled", "Look.")
FIRED = Event("fired", STALLED)


@pytest.fixture(autouse=True)
def short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "RETRY_FIRST_S", 0.05)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(tmp_path / "lake")


@pytest.fixture
def writer(lake: Lake) -> Iterator[Writer]:
    writer = Writer(lake)
    yield writer
    writer.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


def webhook(receiver: Receiver, form: payloads.Format = "plain", secret: str | None = None) -> Webhook:
    return Webhook(receiver.url, form, "the lake", lambda: secret, lambda notification: True)


def delivering(lake: Lake, target: Webhook, start: int = 0) -> Deliverer:
    deliverer = Deliverer(lake, target, start)
    deliverer.start()
    return deliverer


def stopped(deliverer: Deliverer) -> None:
    deliverer.end()
    deliverer.join(10)
    assert not deliverer.is_alive()


# ---- ids ---------------------------------------------------------------------------------------------------------------------


def test_ids_have_no_gap_over_restarts(lake: Lake) -> None:
    for n in (1, 2, 3):
        writer = Writer(lake)
        assert writer.append(FIRED).n == n
        writer.close()
    assert [notification.n for notification in Notifications(lake).all()] == [1, 2, 3]


def test_a_failure_of_the_disk_leaves_no_gap(lake: Lake, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(name: str, path: Path, action: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(disk, "hook", full)
        with pytest.raises(OSError, match="No space"):
            writer.append(FIRED)
    assert writer.append(FIRED).n == 1


def test_some_notifications_are_written_on_a_full_disk(lake: Lake, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each needs the space of an object of the reserve, which is filled when there is space again."""
    monkeypatch.setattr(notifications, "RESERVED", 2)
    write, left = files.write, 2

    def full(path: Path, parts: Iterable[bytes | memoryview]) -> None:
        nonlocal left
        if len(lake.store.names(notifications.RESERVE)) == left:
            raise OSError(28, "No space left on device")
        left -= 1
        write(path, parts)

    writer.maintain()
    with monkeypatch.context() as patch:
        patch.setattr(files, "write", full)
        for n in (1, 2):
            assert writer.append(FIRED).n == n
        with pytest.raises(OSError, match="No space"):
            writer.append(FIRED)
    writer.maintain()
    assert lake.store.sizes(notifications.RESERVE) == dict.fromkeys("12", notifications.RESERVED_BYTES)
    assert writer.append(FIRED).n == 3


def test_the_reserve_is_filled_at_the_start_also_when_the_machine_has_just_started(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "time", SimpleNamespace(monotonic=lambda: 60.0, time=time.time))
    watcher = main.Watcher(lake, [])
    watcher._observe()
    watcher._writer.close()
    assert len(lake.store.names(notifications.RESERVE)) == notifications.RESERVED


def test_a_second_writer_is_refused(lake: Lake, writer: Writer) -> None:
    with pytest.raises(ObjectNotInPrerequisiteState, match="another tailgate watch runs"):
        Writer(lake)
    # without locks, the name of the file is taken
    writer.append(FIRED)
    writer.newest = 0
    with pytest.raises(ObjectNotInPrerequisiteState, match="another tailgate watch runs"):
        writer.append(FIRED)


def test_a_writer_that_was_killed_holds_no_lock(lake: Lake) -> None:
    code = "import sys, time; from tailgate.lake.folder import Lake; from tailgate.operations.watch.notifications import Writer\n"
    code += "w = Writer(Lake(sys.argv[1])); print('ready', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, str(lake.path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(ObjectNotInPrerequisiteState):
            Writer(lake)
        process.kill()
    Writer(lake).close()


def test_old_notifications_are_removed_but_not_those_of_active_alerts(lake: Lake, writer: Writer) -> None:
    other = Condition("view_failing", "totals", "page", "view totals is failing")
    for event in (Event("fired", other), FIRED, Event("resolved", STALLED, 1), FIRED, Event("resolved", STALLED, 1)):
        old = writer.append(event).to_json() | {"at": time.time_ns() // 1_000_000 - KEPT_MS - 1}
        lake.store.put(f"{NOTIFICATIONS}/{writer.newest}", json.dumps(old).encode())
    writer.maintain()
    assert writer.read.numbers() == [1, 5]
    assert writer.append(FIRED).n == 6


# ---- webhooks ----------------------------------------------------------------------------------------------------------------


def test_notifications_arrive_in_order_and_once(lake: Lake, writer: Writer, receiver: Receiver) -> None:
    deliverer = delivering(lake, webhook(receiver))
    for _ in range(10):
        writer.append(FIRED)
        deliverer.wake()
    until(lambda: len(receiver.bodies) == 10, 10)
    stopped(deliverer)
    assert [body["id"] for body in receiver.bodies] == list(range(1, 11))
    assert notifications.position(lake, deliverer.target.name) == 10
    # a process that starts again continues after the last one
    writer.append(FIRED)
    deliverer = delivering(lake, webhook(receiver))
    until(lambda: len(receiver.bodies) == 11, 10)
    stopped(deliverer)


def test_a_webhook_that_fails_misses_nothing(lake: Lake, writer: Writer, receiver: Receiver) -> None:
    receiver.statuses = [500, 404, 302]
    writer.append(FIRED)
    writer.append(Event("resolved", STALLED, 1))
    deliverer = delivering(lake, webhook(receiver))
    until(lambda: len(receiver.bodies) == 2, 20)
    assert [body["status"] for body in receiver.bodies] == ["firing", "resolved"]
    assert receiver.requests == 5
    stopped(deliverer)


def test_a_full_disk_does_not_repeat_notifications(lake: Lake, writer: Writer, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.append(FIRED)
    deliverer = delivering(lake, webhook(receiver))
    until(lambda: len(receiver.bodies) == 1, 10)

    def full(lake: Lake, target: str, n: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(notifications, "set_position", full)
        writer.append(FIRED)
        deliverer.wake()
        until(lambda: len(receiver.bodies) == 2, 10)
        time.sleep(0.3)
    writer.append(FIRED)
    deliverer.wake()
    until(lambda: notifications.position(lake, deliverer.target.name) == 3, 10)
    assert [body["id"] for body in receiver.bodies] == [1, 2, 3]
    stopped(deliverer)


def test_a_webhook_that_does_not_listen(lake: Lake, writer: Writer, receiver: Receiver) -> None:
    target = webhook(receiver)
    receiver.stop()
    writer.append(FIRED)
    deliverer = delivering(lake, target)
    time.sleep(0.5)
    assert deliverer.position == 0
    again = Receiver(receiver.port)
    until(lambda: len(again.bodies) == 1, 20)
    stopped(deliverer)
    again.stop()


def test_a_silenced_notification_is_not_sent(lake: Lake, writer: Writer, receiver: Receiver) -> None:
    writer.append(FIRED, silenced=True)
    writer.append(FIRED)
    deliverer = delivering(lake, webhook(receiver))
    until(lambda: deliverer.position == 2, 10)
    assert [body["id"] for body in receiver.bodies] == [2]
    stopped(deliverer)


def test_a_signature(lake: Lake, writer: Writer, receiver: Receiver) -> None:
    writer.append(FIRED)
    deliverer = delivering(lake, webhook(receiver, secret="the key"))
    until(lambda: receiver.bodies, 10)
    stopped(deliverer)
    (headers,) = receiver.headers
    sent_at, _, signature = headers["Tailgate-Signature"].partition(",v1=")
    seconds = int(sent_at.removeprefix("t="))
    assert signature == payloads.signature(receiver.raw[0], "the key", seconds)
    assert abs(seconds - time.time()) < 30
    assert headers["Tailgate-Notification"] == "1"
    assert "the key" not in str(headers) + receiver.raw[0].decode()


def test_the_plain_form() -> None:
    body = json.loads(payloads.body(Notification(7, 2500, "updated", STALLED, 1000), "plain", "x"))
    assert body == {
        "version": 1,
        "id": 7,
        "lake": "x",
        "alert": "source_stalled",
        "key": "orders",
        "status": "firing",
        "event": "updated",
        "severity": "page",
        "summary": "source orders is stalled",
        "hint": "Look.",
        "fields": {},
        "since": "1970-01-01T00:00:01.000Z",
        "at": "1970-01-01T00:00:02.500Z",
    }


def test_the_form_of_alertmanager() -> None:
    fired, resolved = (
        json.loads(payloads.body(notification, "alertmanager", "x"))
        for notification in (Notification(7, 1000, "fired", STALLED, 1000), Notification(8, 2000, "resolved", STALLED, 1000))
    )
    labels = {"alertname": "source_stalled", "severity": "page", "lake": "x", "key": "orders"}
    assert (fired["version"], fired["status"], fired["receiver"]) == ("4", "firing", "tailgate")
    (alert,) = fired["alerts"]
    assert alert["labels"] == fired["commonLabels"] == labels
    assert (alert["startsAt"], alert["endsAt"]) == ("1970-01-01T00:00:01.000Z", "0001-01-01T00:00:00Z")
    assert alert["annotations"] == {"summary": "source orders is stalled", "hint": "Look."}
    (end,) = resolved["alerts"]
    assert (end["status"], end["endsAt"]) == ("resolved", "1970-01-01T00:00:02.000Z")
    assert end["fingerprint"] == alert["fingerprint"]
    # the fields of Alertmanager's own template data
    assert fired.keys() == {
        "version", "groupKey", "truncatedAlerts", "status", "receiver", "groupLabels", "commonLabels", "commonAnnotations",
        "externalURL", "alerts",
    }  # fmt: skip
