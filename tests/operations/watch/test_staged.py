"""Staged failures: each raises its alert at a webhook, `tailgate status` names its cause first, and the alert is resolved after it.

docs/operations/failures.md lists them; a test compares the page with this list. A supervisor that is stopped does not repair them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tailgate.lake.folder import Lake
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.operations.watch.checks import CLOCK_AHEAD_MAX_MS
from tailgate.operations.watch.notifications import RESERVE, RESERVED, RESERVED_BYTES
from testing.engine_process import stopped, until
from tests.docs.pages import DOCS
from tests.operations.watch.alerted import RAISED_S, REPAIRED_S, Alerted
from tests.operations.watch.receiver import Receiver

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

PAGE = DOCS / "operations" / "failures.md"


class Staged(Alerted):
    """A system with a separate broker and a registry."""

    def __init__(self, folder: Path, kafka: Kafka) -> None:
        self.registry, self.versions = Registry(folder / "registry"), 0
        super().__init__(folder, kafka)

    def register(self) -> int:
        """Registers a version of the schema of the topic `typed` that no record has used, and returns its id."""
        others = [{"name": f"n{n}", "type": ["null", "long"], "default": None} for n in range(self.versions)]
        self.versions += 1
        schema = {"type": "record", "name": "typed", "fields": [{"name": "id", "type": "long"}, *others]}
        body = json.dumps({"schema": json.dumps(schema)}).encode()
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        request = urllib.request.Request(f"{self.registry.url}/subjects/typed-value/versions", body, headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(json.loads(answer.read())["id"])

    def send_typed(self, schema: int) -> None:
        """Sends a record with the newest version of the schema: the number 1, and NULL in the other fields."""
        producer = Producer({"bootstrap.servers": self.kafka.address})
        producer.produce("typed", struct.pack(">bI", 0, schema) + b"\x02" + b"\x00" * (self.versions - 1))
        producer.flush()

    @contextlib.contextmanager
    def killed_registry(self) -> Iterator[None]:
        schema = self.register()
        os.kill(self.registry.pid, signal.SIGKILL)
        try:
            self.send_typed(schema)
            yield
        finally:
            until(lambda: not self.registry.running(), 20)
            self.registry.start()

    @contextlib.contextmanager
    def stopped_registry(self) -> Iterator[None]:
        schema = self.register()
        with stopped(self.registry.pid):
            self.send_typed(schema)
            yield

    @contextlib.contextmanager
    def killed(self, words: str) -> Iterator[None]:
        pid = self.pid(words)
        with self.unrepaired():
            os.kill(pid, signal.SIGKILL)
            yield

    @contextlib.contextmanager
    def stopped(self, words: str) -> Iterator[None]:
        pid = self.pid(words)
        with self.unrepaired(), stopped(pid):
            yield

    @contextlib.contextmanager
    def broken_lease(self) -> Iterator[None]:
        lease, moved = self.data / "engine.lease", self.data / "moved"
        lease.rename(moved)
        lease.mkdir()
        try:
            yield
        finally:
            lease.rmdir()
            moved.rename(lease)

    @contextlib.contextmanager
    def killed_broker(self) -> Iterator[None]:
        os.kill(self.kafka.pid, signal.SIGKILL)
        try:
            yield
        finally:
            until(lambda: not self.kafka.running(), 20)
            self.kafka.start()

    def stopped_broker(self) -> contextlib.AbstractContextManager[None]:
        return stopped(self.kafka.pid)

    @contextlib.contextmanager
    def division_by_zero(self) -> Iterator[None]:
        self.send("watched", {"id": 2, "n": 0})
        yield
        self.run("CREATE OR REPLACE MATERIALIZED VIEW quotients AS SELECT id, 10 / nullif(n, 0) AS q FROM watched")

    @contextlib.contextmanager
    def poison_record(self) -> Iterator[None]:
        self.source("poisoned")
        self.send("poisoned", "no JSON")
        yield
        self.run("DROP SOURCE poisoned")

    @contextlib.contextmanager
    def deleted_topic(self) -> Iterator[None]:
        self.source("deleted")
        admin = AdminClient({"bootstrap.servers": self.kafka.address})
        admin.delete_topics(["deleted"])["deleted"].result(20)
        yield
        self.run("DROP SOURCE deleted")

    @contextlib.contextmanager
    def recreated_topic(self) -> Iterator[None]:
        self.source("recreated")
        admin = AdminClient({"bootstrap.servers": self.kafka.address})
        admin.delete_topics(["recreated"])["recreated"].result(20)
        until(lambda: "recreated" not in admin.list_topics(timeout=10).topics, 20)
        self.send("recreated", {"id": 2, "n": 2})
        yield
        self.run("DROP SOURCE recreated")

    @contextlib.contextmanager
    def removed_records(self) -> Iterator[None]:
        self.source("removed")
        self.run("PAUSE SOURCE removed")
        self.send("removed", {"id": 2, "n": 2}, {"id": 3, "n": 3})
        admin = AdminClient({"bootstrap.servers": self.kafka.address})
        for future in admin.delete_records([TopicPartition("removed", 0, 3)]).values():
            future.result(20)
        self.run("RESUME SOURCE removed")
        yield
        self.run("ALTER SOURCE removed RESUME AT EARLIEST", "DROP SOURCE removed")

    @contextlib.contextmanager
    def dead_letters(self) -> Iterator[None]:
        self.send("lenient", "no JSON")
        yield
        self.run("DROP SOURCE lenient")

    def source(self, name: str, on_error: str = "FAIL") -> None:
        self.send(name, {"id": 1, "n": 1})
        columns = "(id bigint, n bigint)"
        kafka = f"KAFKA BROKER '{self.kafka.address}' TOPIC '{name}'"
        self.run(f"CREATE MATERIALIZED SOURCE {name} {columns} FROM {kafka} FORMAT JSON ON ERROR {on_error}")


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure: what breaks, how it is staged, the alert and its key, and what `tailgate status` names first."""

    what: str
    staged: Callable[[Staged], contextlib.AbstractContextManager[None]]
    alert: str
    key: str
    first: str


ENGINE, GATEWAY = "engine_unavailable", "gateway_unavailable"
FAILURES = (
    Failure("the engine is killed", lambda s: s.killed("tailgate engine"), ENGINE, "", "the engine has ended unexpectedly"),
    Failure("the engine is stopped", lambda s: s.stopped("tailgate engine"), ENGINE, "", "the engine does not answer"),
    Failure("the engine's JVM is killed", lambda s: s.killed("PythonGatewayServer"), ENGINE, "", "the engine "),
    Failure("the engine's JVM is stopped", lambda s: s.stopped("PythonGatewayServer"), ENGINE, "", "the engine "),
    Failure("the engine's lease cannot be renewed", Staged.broken_lease, "lease_not_renewed", "", "the engine does not renew its lease"),
    Failure("the gateway is killed", lambda s: s.killed("tailgate gateway"), GATEWAY, "", "no gateway runs on this machine"),
    Failure("the gateway is stopped", lambda s: s.stopped("tailgate gateway"), GATEWAY, "", "the gateway with process id"),
    Failure("`tailgate sinks` is killed", lambda s: s.killed("tailgate sinks"), "sinks_unavailable", "", "tailgate sinks has ended"),
    Failure("`tailgate sinks` is stopped", lambda s: s.stopped("tailgate sinks"), "sinks_unavailable", "", "tailgate sinks does not renew"),
    Failure("the broker is killed", Staged.killed_broker, "source_stalled", "watched", "source watched is stalled"),
    Failure("the broker is stopped", Staged.stopped_broker, "source_stalled", "watched", "source watched is stalled"),
    Failure("the schema registry is killed", Staged.killed_registry, "source_stalled", "typed", "source typed is stalled"),
    Failure("the schema registry is stopped", Staged.stopped_registry, "source_stalled", "typed", "source typed is stalled"),
    Failure("a topic is deleted", Staged.deleted_topic, "source_stalled", "deleted", "source deleted is "),
    Failure("a topic is deleted and created again", Staged.recreated_topic, "source_stalled", "recreated", "source recreated is "),
    Failure(
        "a topic has removed records before a source read them", Staged.removed_records, "source_stalled", "removed", "source removed is "
    ),
    Failure("a record cannot be read", Staged.dead_letters, "dead_letters", "lenient", "source lenient has new dead letters"),
    Failure("a record cannot be read, with ON ERROR FAIL", Staged.poison_record, "source_stalled", "poisoned", "source poisoned is "),
    Failure("a view divides by zero", Staged.division_by_zero, "view_failing", "quotients", "view quotients is failing"),
)


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Staged]:
    kafka = Kafka(tmp_path_factory.mktemp("kafka"))
    kafka.start()
    system = Staged(tmp_path_factory.mktemp("staged"), kafka)
    try:
        system.wait_ready()
        system.source("watched")
        system.source("lenient", on_error="DEAD LETTER")  # `tailgate watch` sees it before it has a dead letter
        system.registry.start()
        system.send_typed(system.register())
        avro = f"FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{system.registry.url}'"
        system.run(f"CREATE MATERIALIZED SOURCE typed FROM KAFKA BROKER '{kafka.address}' TOPIC 'typed' {avro}")
        system.create_observed()
        yield system
    finally:
        system.stop()
        system.registry.stop()
        kafka.stop()


@pytest.mark.parametrize("failure", FAILURES, ids=[failure.what for failure in FAILURES])
def test_the_alert_and_the_status_name_the_cause(failure: Failure, staged: Staged) -> None:
    until(lambda: not staged.problems(), REPAIRED_S)
    staged.receiver.clear()
    key = failure.key or None
    with failure.staged(staged):
        start = time.monotonic()
        until(lambda: "fired" in staged.receiver.events(failure.alert, key), RAISED_S)
        print(f"{failure.what}: {failure.alert} fired after {time.monotonic() - start:.1f} s")
        problems = staged.problems() or staged.warnings()
        assert problems and problems[0].startswith(failure.first), problems
    until(lambda: staged.receiver.events(failure.alert, key)[-1] == "resolved", REPAIRED_S)


class Watched:
    """A lake without an engine, a real `tailgate watch`, and its webhook."""

    def __init__(self, data: Path) -> None:
        self.lake = Lake.create(data)
        self.receiver = Receiver()
        command = [sys.executable, "-m", "tailgate", "watch", "--data", str(data), "--webhook", self.receiver.url]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        until(lambda: self.receiver.events("engine_unavailable"), 60)

    def first_problem(self) -> str:
        command = [sys.executable, "-m", "tailgate", "status", "--data", str(self.lake.path)]
        status = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return next(line for line in status.stdout.splitlines() if line.startswith("PROBLEM")).removeprefix("PROBLEM:").strip()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        self.receiver.stop()


@pytest.mark.parametrize("free", [4 << 20, 0])
def test_a_full_disk(free: int, tmp_path: Path) -> None:
    """A file system in memory without space, or with little. No process needs to run but `tailgate watch`."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("needs the privilege to mount a file system")
    try:
        watched = Watched(folder / "data")
        try:
            until(lambda: len(watched.lake.store.names(RESERVE)) == RESERVED, 60)
            with (folder / "ballast").open("wb") as ballast:  # filled at once, before the alert has fired
                os.posix_fallocate(ballast.fileno(), 0, shutil.disk_usage(folder).free - free)
            until(lambda: watched.receiver.events("disk_full")[:1] == ["fired"], RAISED_S)
            assert re.fullmatch(r"only \d% of the disk is free", watched.first_problem())
            assert free > 0 or shutil.disk_usage(folder).free < RESERVED_BYTES
            (folder / "ballast").unlink()
            until(lambda: watched.receiver.events("disk_full")[-1] == "resolved", RAISED_S)
        finally:
            watched.stop()
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_clock_that_is_set_back(tmp_path: Path) -> None:
    """The newest entry of the log is ahead of the clock, as after a correction of the clock, until the clock has followed."""
    watched = Watched(tmp_path / "data")
    try:
        writer = open_epoch(watched.lake, take_over=True)
        writer.append(time=time.time_ns() // 1_000_000 + CLOCK_AHEAD_MAX_MS + 12_000)
        until(lambda: watched.receiver.events("clock_ahead") == ["fired"], RAISED_S)
        assert watched.first_problem() == "the log is ahead of the clock of this machine"
        until(lambda: watched.receiver.events("clock_ahead") == ["fired", "resolved"], 3 * RAISED_S)
        writer.close()
    finally:
        watched.stop()


def test_the_page_lists_the_failures() -> None:
    rows = re.findall(r"^\| (.+?) \| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    others = {("the disk is full", "disk_full"), ("the clock is set back by more than a minute", "clock_ahead")}
    assert set(rows) == {(failure.what, failure.alert) for failure in FAILURES} | others
