"""`tailgate up` as a process: where it listens, and what it does when its processes are killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.children import free_port
from tests.embedded.sockets import descendants, listeners, verdicts

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

READY_S = 180.0

REFUSING_HTTP = frozenset({"control refused", "presto refused", "registry refused"})
# By the command that holds it and by what it answers. The four that are open are so by design: docs/security.md, "Ports".
SOCKETS = Counter(
    {
        ("embedded.registry", frozenset({"registry open"})): 1,
        ("kafka.Kafka", frozenset({"kafka open", "kafka controller open"})): 1,  # the latter is an answer: "not a controller"
        ("kafka.Kafka", frozenset()): 1,  # the controller
        ("cli engine", REFUSING_HTTP): 1,  # control
        ("cli engine", frozenset()): 1,  # PySpark's accumulators
        ("PythonGatewayServer", frozenset({"py4j refused"})): 1,
        ("PythonGatewayServer", frozenset({"spark refused"})): 2,  # RPC and blocks
        ("cli gateway", frozenset({"postgresql open"})): 1,
        ("cli gateway", frozenset()): 1,  # other gateways of the lake
        ("cli presto", frozenset({"presto open"})): 1,
    }
)


class Up:
    """`tailgate up` in a process of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.port = free_port()
        self.log = folder / "up.log"
        listen = ["--data", str(folder / "data"), "--listen", f"127.0.0.1:{self.port}"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([sys.executable, "-m", "cli", "up", *listen, *words], stdout=log, stderr=log)

    def wait_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        while "\nready " not in "\n" + self.log.read_text():
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = Up(tmp_path_factory.mktemp("up"), "--kafka", "embedded", "--schema-registry", "embedded", "--presto", str(free_port()))
    try:
        up.wait_ready()
        yield up
    finally:
        up.stop()


def test_every_listening_socket_asks_who_comes(up: Up) -> None:
    """Of all processes below `tailgate up` no socket but the four public ones serves a client that has not authenticated."""
    family = descendants(up.process.pid)
    found = listeners(list(family))
    assert {listener.host for listener in found} == {"127.0.0.1"}
    names = {name for name, _ in SOCKETS}
    named = [(next((n for n in names if n in family[at.pid]), family[at.pid]), frozenset(verdicts(at.host, at.port))) for at in found]
    assert Counter(named) == SOCKETS
