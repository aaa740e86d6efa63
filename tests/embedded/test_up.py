"""Tests `tailgate up`: its listening sockets, restarts after its processes are killed, and the traces and metrics of all processes."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from tailgate.embedded.children import Child, free_port
from tailgate.embedded.claim import marked
from tailgate.lake.folder import Lake
from testing.collector import Collector
from testing.engine_process import until
from tests.embedded.sockets import descendants, listeners, verdicts
from tests.operations.system import PROCESSES, samples

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

READY_S = 180.0
TRACED_S = 60.0

REFUSING_HTTP = frozenset({"control refused", "metrics refused", "presto refused", "registry refused"})
METRICS = {(f"tailgate {process}", frozenset({"metrics open"})): 1 for process in PROCESSES}
# By command and verdicts. The four open sockets, and those of METRICS, are intended: docs/security.md, "Ports".
SOCKETS = Counter(
    {
        ("tailgate.embedded.registry", frozenset({"registry open"})): 1,
        ("kafka.Kafka", frozenset({"kafka open", "kafka controller open"})): 1,  # the controller's answer is "not a controller"
        ("kafka.Kafka", frozenset()): 1,  # the controller
        ("tailgate engine", REFUSING_HTTP): 1,  # control
        ("tailgate engine", frozenset()): 1,  # PySpark's accumulators
        ("PythonGatewayServer", frozenset({"py4j refused"})): 1,
        ("PythonGatewayServer", frozenset({"spark refused"})): 2,  # RPC and blocks
        ("tailgate gateway", frozenset({"postgresql open"})): 1,
        ("tailgate gateway", frozenset()): 1,  # other gateways of the lake
        ("tailgate presto", frozenset({"presto open"})): 1,
        **METRICS,
    }
)


PARTS = ("engine", "gateway", "presto", "sinks")


class Up:
    """A `tailgate up` process with everything embedded, or a `tailgate demo` process."""

    def __init__(self, folder: Path, command: str = "up", options: tuple[str, ...] = ()) -> None:
        self._command, self._options = command, options
        self.data = folder / "data"
        self.log = folder / "up.log"
        self.port, self._presto, self.metrics = free_port(), free_port(), free_port(len(PROCESSES))
        self.start()

    def start(self) -> None:
        words = [self._command, "--data", str(self.data), "--listen", f"127.0.0.1:{self.port}"]
        if self._command == "up":
            words += ["--kafka", "embedded", "--schema-registry", "embedded", "--presto", str(self._presto)]
            words += ["--metrics", str(self.metrics)]
        words += self._options
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([sys.executable, "-m", "tailgate", *words], stdout=log, stderr=log)

    def wait_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        while not self._line():
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    def _line(self) -> str:
        return next((line for line in self.log.read_text(errors="replace").splitlines() if line.startswith("ready ")), "")

    def places(self) -> dict[str, str]:
        """Returns the addresses of the servers, by name."""
        return dict(word.split("=", 1) for word in self._line().split()[1:])

    def ask(self, text: str) -> Any:
        """Returns the first value of the answer, or None without rows.

        Raises OSError if the gateway or the engine is down.
        """
        try:
            with psycopg.connect(f"host=127.0.0.1 port={self.port} user=ann dbname=tailgate", autocommit=True) as connection:
                cursor = connection.execute(text)  # type: ignore[call-overload]
                row = cursor.fetchone() if cursor.description else None
                return None if row is None else row[0]
        except psycopg.OperationalError as error:
            raise OSError(str(error)) from error

    def pids(self, name: str) -> list[int]:
        """Returns the processes of the tree with this text in the command line.

        A process that has just been forked still has its parent's command line.
        """
        processes = descendants(self.process.pid)
        return [
            pid for pid, words in processes.items() if name in words and (name.startswith("/bin/sh") or not words.startswith("/bin/sh"))
        ]

    def works(self, number: int, *, name: str, killed: int) -> bool:
        """Returns whether all parts serve again after `name` was killed.

        Writes a row, and asks Kafka, registry and Presto. Raises OSError if one does not answer.
        """
        now = self.pids(name)
        if len(now) != 1 or now == [killed]:
            return False
        self.ask(f"INSERT INTO killed VALUES ({number}) ON CONFLICT DO NOTHING")
        places = self.places()
        try:
            AdminClient({"bootstrap.servers": places["kafka"], "log_level": 2, "logger": _silent}).list_topics(timeout=5)
        except KafkaException as error:
            raise OSError(str(error)) from error
        for place in (f"{places['schema-registry']}/subjects", f"{places['presto']}/v1/info"):
            urllib.request.urlopen(place, timeout=5).close()
        return True

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


_silent = logging.Logger("kafka", logging.CRITICAL)


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.stop()


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Up]:
    up = Up(tmp_path_factory.mktemp("up"), options=("--otlp", collector.url))
    try:
        up.wait_ready()
        yield up
    finally:
        up.stop()


def sockets(up: Up) -> Counter[tuple[str, frozenset[str]]]:
    """Returns the listening sockets of the process tree, in the form of SOCKETS."""
    family = descendants(up.process.pid)
    open_sockets = listeners(list(family))
    assert {listener.host for listener in open_sockets} == {"127.0.0.1"}
    names = {name for name, _ in SOCKETS}
    with ThreadPoolExecutor(len(open_sockets)) as pool:  # each waits for its silent probes
        answers = pool.map(lambda at: frozenset(verdicts(at.host, at.port)), open_sockets)
        commands = (next((n for n in names if n in family[at.pid]), family[at.pid]) for at in open_sockets)
        return Counter(zip(commands, answers, strict=True))


def test_every_listening_socket_authenticates(up: Up) -> None:
    """Only the four public sockets of `tailgate up`, and metrics, serve clients without authentication."""
    assert sockets(up) == SOCKETS


@pytest.mark.long
def test_every_listening_socket_of_the_demo(tmp_path: Path) -> None:
    demo = Up(tmp_path, "demo")
    try:
        demo.wait_ready()
        assert sockets(demo) == Counter({key: n for key, n in SOCKETS.items() if key not in METRICS and key[0] != "tailgate presto"})
    finally:
        demo.stop()


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command of `tailgate` and waits for its end."""
    return subprocess.run([sys.executable, "-m", "tailgate", *words], capture_output=True, text=True, timeout=READY_S)


def test_a_second_supervisor_of_a_folder_is_refused(up: Up) -> None:
    result = command("up", "--data", str(up.data), "--listen", f"127.0.0.1:{free_port()}")
    assert result.returncode == 1
    assert f"{up.data} is in use by `tailgate up`, process {up.process.pid}" in result.stderr


def test_a_port_belongs_to_one_lake(up: Up, tmp_path: Path) -> None:
    (gateway,) = up.pids("tailgate gateway")
    for other in ("up", "gateway"):
        data = tmp_path / other
        Lake.create(data)
        result = command(other, "--data", str(data), "--listen", f"127.0.0.1:{up.port}")
        assert result.returncode == 1
        assert f"port {up.port} of 127.0.0.1 is in use by process {gateway}" in result.stderr
        assert f"over the data folder {up.data}" in result.stderr
        assert "ready" not in result.stdout
        assert marked(data) == []


def test_a_port_of_another_program_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = command("up", "--data", str(tmp_path), "--listen", f"127.0.0.1:{free_port()}", "--presto", str(port))
    assert result.returncode == 1
    assert f"port {port} of 127.0.0.1 is in use by process {os.getpid()}" in result.stderr


def test_gateways_of_a_lake_share_its_port(up: Up, tmp_path: Path) -> None:
    listen = f"127.0.0.1:{up.port}"
    words = [sys.executable, "-m", "tailgate", "gateway", "--data", str(up.data), "--listen", listen]
    second = Child("gateway", words, log=tmp_path / "log", announces="ready ")
    try:
        second.wait_ready(second.announced, timedelta(seconds=60))
        processes = set()
        until(lambda: len(processes.add(up.ask("SELECT pg_backend_pid() >> 16")) or processes) == 2)  # type: ignore[func-returns-value]
    finally:
        second.stop()
    assert up.ask("SELECT 1") == 1


def test_a_tick_is_a_trace(up: Up, collector: Collector) -> None:
    """The trace has spans of the engine and of the gateway."""
    kafka = up.places()["kafka"]
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce("traced", '{"id": 1}')
    producer.flush()
    up.ask(f"CREATE MATERIALIZED SOURCE traced (id int) FROM KAFKA BROKER '{kafka}' TOPIC 'traced' FORMAT JSON")
    up.ask("CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM traced")
    until(lambda: up.ask("SELECT n FROM counted") == 1)  # CREATE MATERIALIZED SOURCE does not wait for the records
    producer.produce("traced", '{"id": 2}')
    producer.flush()

    def whole() -> list[tuple[str, str]]:
        """Returns service and name of the spans of a tick that the gateway shows and that has changed a row, by their begin."""
        for spans in collector.traces().values():
            names = {span.name for _, span in spans}
            changed = any(a.key == "tailgate.changed_rows" and a.value.int_value > 0 for _, span in spans for a in span.attributes)
            if changed and {"mirror", "level 0"} <= names:
                return [(service, span.name) for service, span in spans]
        return []

    until(whole, TRACED_S)
    spans = whole()
    assert {name for service, name in spans if service == "tailgate-engine"} >= {"tick", "read", "decode", "level 0", "state", "entry"}
    assert [service for service, name in spans if name == "mirror"] == ["tailgate-gateway"]
    for trace in collector.traces().values():
        roots = [span for _, span in trace if span.name == "tick"]
        for root in roots:
            assert not root.parent_span_id
            for _, span in trace:
                assert span is root or span.parent_span_id == root.span_id
                assert span.start_time_unix_nano >= root.start_time_unix_nano
    for process in ("engine", "gateway", "sinks", "watch", "up"):
        until(lambda process=process: "process_cpu_seconds_total" in collector.metrics(f"tailgate-{process}"), TRACED_S)
    assert "tailgate_engine_rocksdb_bytes" in collector.metrics("tailgate-engine")


def test_the_metrics_of_all_processes_parse_under_load(up: Up) -> None:
    """Parsed by Prometheus' own parser, while sessions read and write."""
    up.ask("CREATE TABLE loaded (id int PRIMARY KEY)")
    stop = threading.Event()

    def load(number: int) -> None:
        while not stop.is_set():
            up.ask(f"INSERT INTO loaded VALUES ({number}) ON CONFLICT DO NOTHING")
            up.ask("SELECT count(*) FROM loaded")
            number += 2

    with ThreadPoolExecutor(2) as pool:
        loads = [pool.submit(load, number) for number in range(2)]
        try:
            for _ in range(3):
                for number, process in enumerate(PROCESSES):
                    served = samples(up.metrics + number)
                    assert "process_cpu_seconds_total" in served
                    has_own = any(name.startswith(f"tailgate_{process}_") for name in served)
                    assert has_own == (process != "sinks"), process  # without a sink, its metrics have no series
        finally:
            stop.set()
    for each in loads:
        each.result()
    up.ask("DROP TABLE loaded")


def test_a_start_that_fails_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "schema-registry").mkdir()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        (tmp_path / "schema-registry" / "port").write_text(str(other.getsockname()[1]))
        listen = f"127.0.0.1:{free_port()}"
        result = command("up", "--data", str(tmp_path), "--listen", listen, "--kafka", "embedded", "--schema-registry", "embedded")
    assert result.returncode == 1
    assert f"is in use by process {os.getpid()}" in result.stderr
    assert "Traceback" not in result.stderr
    assert marked(tmp_path) == []


def test_the_watcher_may_be_killed(up: Up) -> None:
    """Regression: after the watcher's death, the end of the next child ended the supervisor, but not its children."""
    (watcher,) = up.pids("/bin/sh -c")
    os.kill(watcher, signal.SIGKILL)
    (sinks,) = up.pids("tailgate sinks")
    os.kill(sinks, signal.SIGKILL)
    until(lambda: up.pids("tailgate sinks") not in ([], [sinks]) and up.pids("/bin/sh -c") not in ([], [watcher]))
    assert up.process.poll() is None


@pytest.mark.long
def test_every_process_may_be_killed(up: Up) -> None:
    up.ask("CREATE TABLE killed (id int PRIMARY KEY)")
    names = ["/bin/sh -c", "kafka.Kafka", "tailgate.embedded.registry", "PythonGatewayServer", *(f"tailgate {p}" for p in PARTS)]
    for number, name in enumerate(names):
        (pid,) = up.pids(name)
        os.kill(pid, signal.SIGKILL)
        until(lambda: up.works(number, name=name, killed=pid), READY_S)  # noqa: B023
    assert up.ask("SELECT count(*) FROM killed") == len(names)
    assert up.process.poll() is None


@pytest.mark.long
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_start_ends_the_remains_of_an_earlier_one(up: Up, sent: signal.Signals) -> None:
    """Supervisor and watcher are killed together, so the children survive, running or stopped."""
    left = marked(up.data)
    assert len(left) >= 6
    (watcher,) = up.pids("/bin/sh -c")
    for pid in left:
        if sent is signal.SIGSTOP:
            os.kill(pid, sent)
    os.kill(watcher, signal.SIGKILL)
    os.kill(up.process.pid, signal.SIGKILL)
    up.process.wait()
    assert set(left) <= set(marked(up.data))
    up.start()
    up.wait_ready()
    assert not set(left) & set(marked(up.data))
    assert up.ask("SELECT 1") == 1
