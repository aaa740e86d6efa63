"""One Kafka node, broker and controller in one JVM, from the jars of `make setup`.

    data/ports.json          its ports; sources and clients remember them, so they do not change
    data/kafka.properties    written at each start, mode 0600: contains the password of the controller's port
    data/log/                Kafka's own files, formatted once
    data/kafka.log           its output

It is the same program as in a cluster, with threads and timers reduced for one machine: it starts in
about 4 s, takes 300 MB, and is nearly idle without writes. Topics, groups, transactions and
compaction behave as usual.

Idle, measured over 30 s on a 2-core machine, in percent of one core: 1.9 with the default settings, 1.2 with those below.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tailgate.embedded.children import Child, ChildFailed, ChildServer, await_free, free, free_port
from tailgate.lake.host import java

JARS = Path(__file__).parents[1] / "jars" / "kafka"  # from `make setup`, or part of an installed wheel
CLASSES = JARS.parent / "kafka.jsa"  # written by embedded.kafka_classes

FORMAT_TIMEOUT = timedelta(seconds=60)  # 1.0 to 1.7 s measured
READY_TIMEOUT = timedelta(seconds=90)  # 2 to 4 s measured, 6 after a kill, when recovery reads the last segments again
TOPIC_TIMEOUT = timedelta(seconds=30)
LEADER_LOOK = timedelta(milliseconds=20)  # between two looks at a new topic
STARTED = "Kafka Server started"
RETENTION_BYTES = 4 << 30  # of a partition

# C1 and the serial collector start fastest and use the least CPU when idle; 384 MB are ample for 5,000 events a second.
JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")

SETTINGS: Mapping[str, object] = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    "num.partitions": 1,
    # One node: no replication, and one partition suffices for internal topics.
    "default.replication.factor": 1,
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    # A group's only consumer need not wait three seconds for others.
    "group.initial.rebalance.delay.ms": 0,
    # Topics lose their oldest records by size, not by age: events may have times of years ago.
    "log.retention.ms": -1,
    "log.retention.bytes": RETENTION_BYTES,
    # Each thread wakes a few times a second.
    "num.network.threads": 1,
    "num.io.threads": 4,
    "background.threads": 2,
    "log.cleaner.backoff.ms": 30_000,
    # By default Kafka 4 reports every metric over JMX.
    "metric.reporters": "",
    # By default a controller writes an empty record twice a second to show followers its progress; this one has no followers.
    "metadata.max.idle.interval.ms": 0,
    # After a kill, the old registration blocks the new broker until its session ends, so a long session delays the restart.
    "broker.session.timeout.ms": 4_000,
    "broker.heartbeat.interval.ms": 1_000,
    "replica.high.watermark.checkpoint.interval.ms": 30_000,
}

GUARDED = "GUARDED"  # name of the second listener
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"

_LOGGING = """\
rootLogger.level=warn
rootLogger.appenderRef.o.ref=o
logger.server.name={server}
logger.server.level=info
appender.o.type=Console
appender.o.name=o
appender.o.layout.type=PatternLayout
appender.o.layout.pattern=[%d] %p %m (%c)%n
"""


@dataclass(frozen=True, slots=True)
class Guard:
    """A second listener with TLS and authentication of clients.

    `protocol`: SASL_SSL authenticates by password (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512), SSL by
    certificate. `certificate` and `key`: the broker's, as PEM. `ca`: certificate of the authority that
    signs clients' certificates. `users`: passwords by name.
    """

    protocol: Literal["SASL_SSL", "SSL"]
    certificate: str
    key: str = field(repr=False)
    ca: str
    users: Mapping[str, str] = field(default_factory=dict, repr=False)

    def settings(self) -> dict[str, str]:
        """Returns the broker's settings for this listener."""
        name = f"listener.name.{GUARDED.lower()}"
        settings = {
            f"{name}.ssl.keystore.type": "PEM",
            f"{name}.ssl.keystore.certificate.chain": _one_line(self.certificate),
            f"{name}.ssl.keystore.key": _one_line(self.key),
            f"{name}.ssl.truststore.type": "PEM",
            f"{name}.ssl.truststore.certificates": _one_line(self.ca),
            f"{name}.ssl.client.auth": "required" if self.protocol == "SSL" else "none",
        }
        if self.protocol == "SASL_SSL":
            logins = " ".join(f'user_{user}="{password}"' for user, password in self.users.items())
            settings[f"{name}.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
            settings[f"{name}.plain.sasl.jaas.config"] = f"{PLAIN_LOGIN} {logins};"
            for mechanism in ("scram-sha-256", "scram-sha-512"):
                settings[f"{name}.{mechanism}.sasl.jaas.config"] = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        return settings


class Kafka(ChildServer):
    """A broker on 127.0.0.1 over a data folder.

    `port` applies to the first start with a folder. After that the folder keeps its port, and another one
    is refused. With a `guard`, the broker also listens on `guarded`; its users are those of the first
    start. `environment`: variables added to ours. `jvm`: options of the JVM.
    """

    ready_timeout = READY_TIMEOUT

    def __init__(
        self,
        data: Path,
        port: int | None = None,
        guard: Guard | None = None,
        environment: Mapping[str, str] | None = None,
        jvm: Sequence[str] = JVM,
    ) -> None:
        self.data = data.absolute()
        self._environment = environment
        self._jvm = jvm
        self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.port, self._controller_port = self._ports(port)
        self._guard = guard
        self._guarded_port = free_port() if guard is not None else 0

    @property
    def address(self) -> str:
        """Returns the address for clients on this machine."""
        return f"127.0.0.1:{self.port}"

    @property
    def guarded(self) -> str:
        """Returns the address of the second listener."""
        assert self._guard is not None
        return f"127.0.0.1:{self._guarded_port}"

    def launch(self) -> Child:
        """Starts the broker without waiting; it announces itself when clients can connect. Raises ChildFailed if its port is in use."""
        await_free("127.0.0.1", self.port)
        if not free("127.0.0.1", self._controller_port):  # only this broker uses it, so it can change
            self._controller_port = free_port()
        properties = self._write_settings()
        if not (self.data / "log" / "meta.properties").exists():
            self._format(properties)
        self._child = Child(
            "Kafka",
            self._java("kafka.Kafka", str(properties)),
            log=self.data / "kafka.log",
            folder=self.data,
            environment=self._environment,
            announces=STARTED,
        )
        return self._child

    def create_topic(self, name: str, *, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
        """Creates a topic unless it exists, and waits until its partitions have a leader."""
        admin = AdminClient({"bootstrap.servers": self.address})
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(settings or {}))
        try:
            admin.create_topics([topic], operation_timeout=TOPIC_TIMEOUT.total_seconds())[name].result(TOPIC_TIMEOUT.total_seconds())
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
        deadline = time.monotonic() + TOPIC_TIMEOUT.total_seconds()
        while not _has_leaders(admin, name):  # the controller answers before the broker knows the topic
            if time.monotonic() > deadline:
                raise TimeoutError(f'topic "{name}" was created and cannot be used yet')
            time.sleep(LEADER_LOOK.total_seconds())

    def _ports(self, port: int | None) -> tuple[int, int]:
        """Returns the ports of broker and controller: those in ports.json, or new ones, which it writes to ports.json."""
        remembered = self.data / "ports.json"
        if remembered.exists():
            ports = json.loads(remembered.read_text())
            if port is not None and port != ports["broker"]:
                raise ValueError(f"the Kafka of {self.data} has port {ports['broker']}, which its clients know; {port} was asked for")
            return ports["broker"], ports["controller"]
        broker, controller = port or free_port(), free_port()
        write_private(remembered, json.dumps({"broker": broker, "controller": controller}) + "\n")
        return broker, controller

    def _write_settings(self) -> Path:
        """Writes kafka.properties and log4j2.properties, and returns the path of the first."""
        password = secrets.token_urlsafe(32)  # of the broker at its own controller; new at each start
        settings = {
            **SETTINGS,
            "listener.name.controller.plain.sasl.jaas.config": (
                f'{PLAIN_LOGIN} username="broker" password="{password}" user_broker="{password}";'
            ),
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self._controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": str(self.data / "log"),
        }
        if self._guard is not None:
            settings |= self._guard.settings()
            settings["listener.security.protocol.map"] = f"{SETTINGS['listener.security.protocol.map']},{GUARDED}:{self._guard.protocol}"
            settings["listeners"] = f"{settings['listeners']},{GUARDED}://{self.guarded}"
            settings["advertised.listeners"] = f"{settings['advertised.listeners']},{GUARDED}://{self.guarded}"
        write_private(self.data / "log4j2.properties", logging_settings("kafka.server.KafkaRaftServer"))
        path = self.data / "kafka.properties"
        write_private(path, "".join(f"{name}={value}\n" for name, value in settings.items()))
        return path

    def _format(self, properties: Path) -> None:
        """Formats the folder for a new cluster. Raises ChildFailed on failure."""
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
        formatting = Child(
            "formatting Kafka's folder",
            self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties), *self._users()),
            log=self.data / "kafka.log",
            folder=self.data,
            environment=self._environment,
        )
        code = formatting.wait(FORMAT_TIMEOUT)
        formatting.stop()
        if code != 0:
            raise ChildFailed(f"Kafka's folder {self.data / 'log'} was not formatted:\n{formatting.last_lines()}")

    def _users(self) -> Iterator[str]:
        """Yields arguments for formatting: SCRAM users are part of the cluster's metadata."""
        for user, password in self._guard.users.items() if self._guard is not None else ():
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                yield from ("--add-scram", f"{mechanism}=[name={user},password={password}]")

    def _java(self, *arguments: str) -> list[str]:
        if not any(JARS.glob("kafka_*.jar")):
            raise FileNotFoundError(f"no Kafka in {JARS}: `make setup` brings it")
        class_path = ":".join(map(str, sorted(JARS.glob("*.jar"))))
        logging = f"-Dlog4j2.configurationFile={self.data / 'log4j2.properties'}"
        return [java.program(), *self._jvm, *java.archive_options(CLASSES), logging, "-cp", class_path, *arguments]


def _one_line(pem: str) -> str:
    """Returns the text as one line of a properties file."""
    return pem.strip().replace("\n", "\\n")


def logging_settings(server: str) -> str:
    """Returns the settings of Log4j: warnings, and the messages of the class with the name `server`."""
    return _LOGGING.replace("{server}", server)


def write_private(path: Path, text: str) -> Path:
    """Writes a file atomically, readable only by its owner. Returns its path."""
    fresh = path.with_name(path.name + ".new")
    fresh.touch(mode=0o600)
    fresh.write_text(text)
    fresh.replace(path)
    return path


def _has_leaders(admin: AdminClient, name: str) -> bool:
    """Returns whether the broker knows a topic, and each of its partitions has a leader."""
    topic = admin.list_topics(name, timeout=TOPIC_TIMEOUT.total_seconds()).topics[name]
    return topic.error is None and all(partition.leader >= 0 for partition in topic.partitions.values())
