"""A `tailgate up` for tests of operations."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import psycopg
from prometheus_client.parser import text_string_to_metric_families

from tailgate.embedded.children import free_port
from tailgate.embedded.kafka import Kafka

READY_S = 300.0
Served = dict[str, dict[tuple[str, ...], float]]  # by the name of the sample and the values of its labels
PROCESSES = ("up", "engine", "sinks", "gateway", "watch")  # with metrics at consecutive ports


def status(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def samples(port: int, secret: str | None = None) -> Served:
    """Returns the samples that a process serves, as Prometheus' own parser reads them. `secret`: a text that they must not contain."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    assert secret is None or secret not in text
    served: Served = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            served.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return served


class System:
    """A `tailgate up` with metrics, and its clients."""

    def __init__(self, folder: Path, kafka: Kafka, *options: str) -> None:
        self.kafka = kafka
        self.port = free_port()
        self.metrics = free_port(len(PROCESSES))
        self.dsn = f"host=127.0.0.1 port={self.port} user=ann dbname=tailgate"
        self.log = folder / "up.log"
        words = ["up", "--data", str(folder / "data"), "--listen", f"127.0.0.1:{self.port}", "--metrics", str(self.metrics), *options]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([sys.executable, "-m", "tailgate", *words], stdout=log, stderr=log)

    @property
    def ports(self) -> dict[str, int]:
        return {name: self.metrics + i for i, name in enumerate(PROCESSES)}

    def wait_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        while status(self.ports["up"], "/readyz") != 200:
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.2)

    def run(self, *statements: str) -> list[Any]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)
