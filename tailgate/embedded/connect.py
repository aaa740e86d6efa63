"""One worker of Kafka Connect, from the jars of `make setup`.

    data/port                  the port of its REST interface, on 127.0.0.1
    data/worker.properties     written at each start, mode 0600
    data/plugins/              the plugins that Tailgate has: the converter for Avro
    data/connect.log           its output

Connectors, their offsets and their status are in topics of the Kafka, so that they survive a restart, and records of source connectors
and their offsets are written in one transaction. It starts in about 3 s, takes 130 MB without connectors and 235 to 415 MB with some.

Its REST interface has no users, as the embedded Kafka and registry have none: everybody on this machine may use it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from tailgate.embedded import kafka
from tailgate.embedded.children import Child, ChildServer, await_free, remembered_port
from tailgate.embedded.connect_options import ConnectOptions
from tailgate.formats.converters import APICURIO_AVRO, SIDES, apicurio_avro, with_installed_converters
from tailgate.lake.host import java

JARS = kafka.JARS.with_name("connect")  # without the jars that Kafka has, too
CONVERTER = kafka.JARS.with_name("avro-converter")
READY_TIMEOUT = timedelta(seconds=90)  # 2 to 4 s measured
STARTED = "Kafka Connect started"
JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
JSON = "org.apache.kafka.connect.json.JsonConverter"
SESSION_MS = 6000  # the shortest that a broker accepts: connectors of a killed worker start again after it

SETTINGS: Mapping[str, object] = {
    "group.id": "tailgate-connect",
    "plugin.discovery": "service_load",  # the default scans all classes, and takes 10 s more
    "rest.advertised.host.name": "127.0.0.1",
    **{f"{what}.storage.topic": f"__tailgate_connect_{what}" for what in ("config", "offset", "status")},
    **{f"{what}.storage.replication.factor": -1 for what in ("config", "offset", "status")},  # the broker's default
    "offset.storage.partitions": 1,
    "status.storage.partitions": 1,
    "exactly.once.source.support": "enabled",
    "session.timeout.ms": SESSION_MS,
    "heartbeat.interval.ms": SESSION_MS // 3,
    "scheduled.rebalance.max.delay.ms": 0,  # no other worker could take the connectors meanwhile
}


class Connect(ChildServer):
    """A worker over a data folder, which remembers its port. `registry`: the URL of a schema registry, or ''."""

    ready_timeout = READY_TIMEOUT

    def __init__(
        self, data: Path, brokers: str, registry: str, options: ConnectOptions, environment: Mapping[str, str] | None = None
    ) -> None:
        self.data = data.absolute()
        self._brokers, self._registry, self._options, self._environment = brokers, registry, options, environment
        self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.port = remembered_port(self.data / "port", None, "Kafka Connect")

    @property
    def url(self) -> str:
        """Returns the URL of the REST interface."""
        return f"http://127.0.0.1:{self.port}"

    def launch(self) -> Child:
        """Starts the worker without waiting; it announces itself when it answers requests. Raises ChildFailed if its port is in use."""
        if not any(JARS.glob("connect-runtime-*.jar")):
            raise FileNotFoundError(f"no Kafka Connect in {JARS}: `make setup` brings it")
        await_free("127.0.0.1", self.port)
        logging = kafka.write_private(self.data / "log4j2.properties", kafka.logging_settings("org.apache.kafka.connect.runtime.Connect"))
        settings = self.data / "worker.properties"
        kafka.write_private(settings, "".join(f"{name}={_escaped(str(value))}\n" for name, value in self.settings().items()))
        command = [java.program(), *JVM, f"-Dlog4j2.configurationFile={logging}", "-cp", f"{JARS}/*:{kafka.JARS}/*"]
        command += ["org.apache.kafka.connect.cli.ConnectDistributed", str(settings)]
        log = self.data / "connect.log"
        self._child = Child("Kafka Connect", command, log=log, folder=self.data, environment=self._environment, announces=STARTED)
        return self._child

    def settings(self) -> dict[str, object]:
        """Returns the worker's settings. Creates the folder of plugins."""
        ours = self.data / "plugins"
        ours.mkdir(exist_ok=True)
        installed = ours / CONVERTER.name
        if not installed.is_symlink() or Path(os.readlink(installed)) != CONVERTER:
            installed.unlink(missing_ok=True)
            installed.symlink_to(CONVERTER)
        theirs = self._options.settings.get("plugin.path") or self._options.plugins
        paths = [ours] if theirs is None else [ours, theirs]
        own_settings, _ = with_installed_converters(self._options.settings, (APICURIO_AVRO,))
        return {
            **SETTINGS,
            **self._converters(own_settings),
            "bootstrap.servers": self._brokers,
            **own_settings,
            "listeners": f"http://127.0.0.1:{self.port}",
            "plugin.path": ",".join(map(str, paths)),
        }

    def _converters(self, own_settings: Mapping[str, str]) -> dict[str, str]:
        """Returns the converters of keys and values that the settings do not name: Avro with a registry, else JSON without schemas."""
        settings: dict[str, str] = {}
        for side in SIDES:
            if side not in own_settings and self._registry:
                settings |= apicurio_avro(side, self._registry)
            elif side not in own_settings:
                settings |= {side: JSON, f"{side}.schemas.enable": "false"}
        return settings


def _escaped(value: str) -> str:
    """Returns a value as a file of properties has it."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")
