"""A Kafka Connect worker with one Debezium connector, which tests kill and restart.

standalone    stores offsets in a file every OFFSETS_MS; later messages are repeated after a kill
distributed   with exactly-once source support: messages and offsets are one Kafka transaction
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tailgate.embedded.children import Child, free_port
from tailgate.embedded.connect import CONVERTER, JARS, JSON, JVM, SESSION_MS
from tailgate.embedded.kafka import JARS as KAFKA_JARS
from tailgate.formats.converters import SIDES, apicurio_avro
from tailgate.lake.host import java
from tests.cdc import needed

Mode: TypeAlias = Literal["standalone", "distributed"]

READY = timedelta(seconds=120)  # 3 s measured; after a kill, a distributed worker waits for the end of its predecessor's session
ANSWER_S = 10.0
OFFSETS_MS = 3000  # instead of 60 s, so that a run has kills before and after a flush
_LOGGING = """\
rootLogger.level=info
rootLogger.appenderRef.o.ref=o
appender.o.type=Console
appender.o.name=o
appender.o.layout.type=PatternLayout
appender.o.layout.pattern=[%d] %p %m (%c)%n
"""


class Worker:
    """A worker with one connector.

    `connector` has the connector's settings without converters, which are for JSON or, with a
    registry, Avro. A `forgetful` worker may lose its offsets.
    """

    def __init__(
        self, folder: Path, name: str, mode: Mode, kafka: str, plugin: str, connector: Mapping[str, str], registry: str | None
    ) -> None:
        self.name = name
        self.mode = mode
        self.forgetful = False
        self._folder = folder
        self._port = free_port()
        self._child: Child | None = None
        folder.mkdir(parents=True)
        (folder / "plugins").mkdir()
        for name_of, jars in ((plugin, needed.jars(plugin)), *([("avro", CONVERTER)] if registry else [])):
            (folder / "plugins" / name_of).symlink_to(jars)
        (folder / "log4j2.properties").write_text(_LOGGING)
        settings = self._settings(kafka) | {"plugin.path": str(folder / "plugins")}
        (folder / "worker.properties").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self._connector = {"tasks.max": "1", **connector, **(_avro(registry) if registry else _json())}
        (folder / "connector.json").write_text(json.dumps({"name": name, "config": self._connector}))

    def _settings(self, kafka: str) -> dict[str, str]:
        settings = {
            "bootstrap.servers": kafka,
            "plugin.discovery": "service_load",  # ten times faster than the default
            "listeners": f"http://127.0.0.1:{self._port}",
            "rest.advertised.host.name": "127.0.0.1",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "offset.flush.interval.ms": str(OFFSETS_MS),
        }
        if self.mode == "standalone":
            return settings | {"offset.storage.file.filename": str(self._folder / "offsets")}
        for what in ("offset", "config", "status"):
            settings[f"{what}.storage.topic"] = f"{self.name}-{what}"
            settings[f"{what}.storage.replication.factor"] = "1"
        return settings | {
            "group.id": self.name,
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
            "exactly.once.source.support": "enabled",
            "session.timeout.ms": str(SESSION_MS),
            "heartbeat.interval.ms": str(SESSION_MS // 3),
            "scheduled.rebalance.max.delay.ms": "0",  # instead of 5 minutes: no other worker could take the tasks meanwhile
        }

    def start(self) -> None:
        """Starts the worker without waiting; `running` returns whether the connector runs."""
        main = "ConnectStandalone" if self.mode == "standalone" else "ConnectDistributed"
        command = [java.program(), *JVM, f"-Dlog4j2.configurationFile={self._folder}/log4j2.properties", "-cp", f"{JARS}/*:{KAFKA_JARS}/*"]
        command += [f"org.apache.kafka.connect.cli.{main}", str(self._folder / "worker.properties")]
        if self.mode == "standalone":
            command.append(str(self._folder / "connector.json"))  # it does not keep connectors created over REST
        self._child = Child(self.name, command, log=self._folder / "log", folder=self._folder)

    def make(self) -> None:
        """Starts the worker for the first time. Returns when the connector runs."""
        self.start()
        assert self._child is not None
        if self.mode == "distributed":
            self._child.wait_ready(self._put_connector, READY)
        self._child.wait_ready(self.running, READY)

    def _put_connector(self) -> bool:
        try:
            self._ask("PUT", f"/connectors/{self.name}/config", self._connector)
        except OSError:
            return False
        return True

    def running(self) -> bool:
        """Returns whether the connector's task runs. Restarts a failed one."""
        try:
            status = self._ask("GET", f"/connectors/{self.name}/status")
        except OSError:
            return False
        tasks = [task["state"] for task in status["tasks"]]
        if "FAILED" in (status["connector"]["state"], *tasks):
            self.restart()
        return status["connector"]["state"] == "RUNNING" and tasks == ["RUNNING"]

    def failure(self) -> str | None:
        """Returns the stack trace of a failed connector or task, or None."""
        try:
            status = self._ask("GET", f"/connectors/{self.name}/status")
        except OSError:
            return None
        return next((each["trace"] for each in (status["connector"], *status["tasks"]) if each["state"] == "FAILED"), None)

    def restart(self) -> bool:
        """Restarts the connector and its task in the running worker.

        Returns False if it does not answer.
        """
        try:
            self._ask("POST", f"/connectors/{self.name}/restart?includeTasks=true")
        except OSError:
            return False  # starting, or rebalancing
        return True

    def kill(self) -> bool:
        """Kills the worker with SIGKILL. Returns False if it was not running."""
        assert self._child is not None
        if not self._child.running():
            return False
        self._child.kill()
        return True

    def lose_offsets(self) -> bool:
        """Kills the worker and deletes its offsets, so that the connector begins with a new snapshot."""
        if not self.kill():
            return False
        (self._folder / "offsets").unlink(missing_ok=True)
        return True

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop()

    def _ask(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{path}", method=method)
        data = None if body is None else json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, data, timeout=ANSWER_S) as answer:
            return json.loads(answer.read() or b"null")


def _json() -> dict[str, str]:
    return {f"{side}{rest}": value for side in SIDES for rest, value in (("", JSON), (".schemas.enable", "false"))}


def _avro(registry: str) -> dict[str, str]:
    return {name: value for side in SIDES for name, value in apicurio_avro(side, registry).items()}
