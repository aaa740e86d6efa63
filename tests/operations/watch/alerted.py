"""A `tailgate up` whose alerts go to a webhook, and what `tailgate status` says about it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tailgate.embedded.kafka import Kafka
from testing.engine_process import stopped, until
from tests.embedded.sockets import descendants
from tests.operations.system import System
from tests.operations.watch.receiver import Receiver

RAISED_S = 12.0  # 10 s, and the time for a busy machine
REPAIRED_S = 120.0  # an engine starts again


def send(kafka: Kafka, topic: str, *values: object) -> None:
    """Writes records: texts as they are, other values as JSON."""
    producer = Producer({"bootstrap.servers": kafka.address})
    for value in values:
        producer.produce(topic, value if isinstance(value, str) else json.dumps(value))
    producer.flush()


class Alerted(System):
    """A `tailgate up` whose alerts go to a webhook."""

    def __init__(self, folder: Path, kafka: Kafka) -> None:
        self.receiver, self.data = Receiver(), folder / "data"
        super().__init__(folder, kafka, "--webhook", self.receiver.url, "--webhook-format", "plain")

    def stop(self) -> None:
        super().stop()
        self.receiver.stop()

    def pid(self, words: str) -> int:
        """Returns the process of the tree with this text in its command line."""
        until(lambda: len(self._pids(words)) == 1, 60)
        return self._pids(words)[0]

    def _pids(self, words: str) -> list[int]:
        return [pid for pid, command in descendants(self.process.pid).items() if words in command and not command.startswith("/bin/sh")]

    def unrepaired(self) -> contextlib.AbstractContextManager[None]:
        """Stops the supervisor, so that it starts no process again."""
        return stopped(self.process.pid)

    def fires(self, alert: str, key: str | None = None) -> None:
        """Waits until an alert fires, at most RAISED_S."""
        start = time.monotonic()
        until(lambda: "fired" in self.receiver.events(alert, key), RAISED_S)
        print(f"{alert} fired after {time.monotonic() - start:.1f} s")

    def resolves(self, alert: str, key: str | None = None) -> None:
        """Waits until an alert is resolved."""
        until(lambda: self.receiver.events(alert, key)[-1] == "resolved", REPAIRED_S)

    def create_observed(self) -> None:
        """Creates a view of the source `watched` that divides, a table and its sink."""
        self.run(
            "CREATE MATERIALIZED VIEW quotients AS SELECT id, 10 / n AS q FROM watched",
            "CREATE TABLE notes (id bigint PRIMARY KEY)",
            f"CREATE SINK notes_out FROM notes INTO KAFKA BROKER '{self.kafka.address}' TOPIC 'notes' KEY (id) FORMAT JSON ENVELOPE UPSERT",
        )

    def send(self, topic: str, *values: object) -> None:
        send(self.kafka, topic, *values)

    def problems(self) -> list[str]:
        """Returns the problems that `tailgate status` names, in its order."""
        return [problem["what"] for problem in self._status()["problems"]]

    def warnings(self) -> list[str]:
        """Returns the warnings that `tailgate status` names, but for the memory of this machine, which other tests use."""
        alerts = self._status()["alerts"]
        return [alert["summary"] for alert in alerts if alert["severity"] == "warning" and alert["alert"] != "memory_full"]

    def _status(self) -> Any:
        command = [sys.executable, "-m", "tailgate", "status", "--data", str(self.data), "--json"]
        return json.loads(subprocess.run(command, capture_output=True, check=False, timeout=60).stdout)
