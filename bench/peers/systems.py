"""The peers: how each maintains workload W1, with which settings and guarantees.

Settings are those that the system's manual recommends for low latency; all others are the defaults.
The peers run on the same cores as Tailgate, each as one process (PostgreSQL: a server, and a
process that copies the topics into tables and refreshes the view).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path

from bench.w1.orders import VIEW
from bench.w1.readers import Output
from bench.w1.systems import READY, System, Tailgate
from bench.w1.turns import Make
from tailgate.embedded.children import Child
from tailgate.lake.host import java
from testing.postgres import JARS, Postgres

HERE = Path(__file__).parent
INSTALLED = HERE.parents[1] / ".peers"
HEAP = "-Xmx2g"
LINGER_MS = 5  # Kafka's default; the default of Kafka Streams is 100
COMMIT_MS = 100  # commit interval of exactly-once sinks, Kafka Streams' default with exactly_once_v2
JAVA_OPENS = ("--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.util=ALL-UNNAMED")


class Peer(System):
    """A peer that writes the view to a Kafka topic, as one process."""

    topics = (VIEW,)
    sql = False
    isolation = "read_uncommitted"
    form = "upserts"
    unit = Decimal(1)

    @property
    def output(self) -> Output:
        return Output("topic", self.brokers, self.form, self.isolation, self.unit)

    def run(self, *command: str, **environment: str) -> None:
        log = self.folder / f"{self.name}.log"
        self.children.append(Child(self.name, command, log=log, folder=self.folder, environment=environment))

    def run_java(self, kind: str, program: str, *arguments: str) -> None:
        jars = _installed(kind)
        logging = f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}"
        self.run(java.program(), HEAP, logging, *JAVA_OPENS, "-cp", f"{jars / 'classes'}:{jars}/*", program, *arguments)


class KafkaStreams(Peer):
    name = "Kafka Streams"
    guarantee = "at least once"
    chosen: Mapping[str, object] = {
        "processing.guarantee": "at_least_once",
        "statestore.cache.max.bytes": 0,
        "commit.interval.ms": COMMIT_MS,
    }

    @property
    def version(self) -> str:
        return _jar_version("streams", "kafka-streams")

    @property
    def options(self) -> dict[str, object]:
        """Returns the settings other than addresses and folders."""
        return {**self.chosen, "producer.linger.ms": LINGER_MS, "topology.optimization": "all", "num.stream.threads": 2}

    @property
    def settings(self) -> str:
        return _words(self.options)

    def start(self) -> None:
        own = {"application.id": "w1", "bootstrap.servers": self.brokers, "state.dir": self.folder / "state"}
        # Topics are read from the beginning, which is Kafka Streams' default.
        self.run_java("streams", "Orders", *(f"{name}={value}" for name, value in {**own, **self.options}.items()))


class KafkaStreamsExactlyOnce(KafkaStreams):
    name = "Kafka Streams, exactly once"
    guarantee = "exactly once, up to read_committed readers of the topic"
    isolation = "read_committed"
    chosen: Mapping[str, object] = {"processing.guarantee": "exactly_once_v2", "commit.interval.ms": COMMIT_MS}


class Flink(Peer):
    name = "Flink SQL"
    guarantee = "at least once in the topic; exactly once in its state"
    checkpoint_ms = 1_000
    sink: Mapping[str, object] = {"properties.linger.ms": LINGER_MS}

    @property
    def version(self) -> str:
        return f"{_jar_version('flink', 'flink-table-runtime')}, connector {_jar_version('flink', 'flink-connector-kafka')}"

    @property
    def options(self) -> dict[str, object]:
        """Returns the settings other than addresses and folders."""
        return {
            "execution.buffer-timeout.interval": "5 ms",
            "execution.checkpointing.interval": f"{self.checkpoint_ms} ms",
            "state.backend.type": "hashmap",
            "pipeline.object-reuse": "true",
            "parallelism.default": 1,
        }

    @property
    def settings(self) -> str:
        return _words({**self.options, **{f"sink: {name}": value for name, value in self.sink.items()}})

    def start(self) -> None:
        statements = (HERE / "flink" / "orders.sql").read_text()
        sink = ", ".join(f"'{name}' = '{value}'" for name, value in self.sink.items())
        script = self.folder / "orders.sql"
        script.write_text(statements.replace("{brokers}", self.brokers).replace("{sink}", sink))
        own = {"execution.checkpointing.dir": (self.folder / "checkpoints").as_uri()}
        self.run_java("flink", "Sql", str(script), *(f"{name}={value}" for name, value in {**own, **self.options}.items()))


class FlinkExactlyOnce(Flink):
    name = "Flink SQL, exactly once"
    guarantee = "exactly once, up to read_committed readers of the topic"
    isolation = "read_committed"
    checkpoint_ms = COMMIT_MS
    sink: Mapping[str, object] = {
        "properties.linger.ms": LINGER_MS,
        "sink.delivery-guarantee": "exactly-once",
        "sink.transactional-id-prefix": "w1",
        "properties.transaction.timeout.ms": 600_000,
    }


class Pathway(Peer):
    name = "Pathway"
    guarantee = "none after a crash: without persistence it begins anew"
    form = "changes"
    unit = Decimal("0.01")
    commit_ms = 10

    @property
    def version(self) -> str:
        (metadata,) = _installed("pathway").glob("lib/python*/site-packages/pathway-*.dist-info")
        return metadata.name.removeprefix("pathway-").removesuffix(".dist-info")

    @property
    def settings(self) -> str:
        return f"autocommit_duration_ms={self.commit_ms}, output linger.ms={LINGER_MS}, no persistence, one thread"

    def start(self) -> None:
        program = str(HERE / "pathway" / "program.py")
        self.run(str(_installed("pathway") / "bin" / "python"), program, self.brokers, str(self.commit_ms), PYTHONPATH="")


class PostgreSQL(System):
    """PostgreSQL with tables filled from the topics, and an endless REFRESH MATERIALIZED VIEW CONCURRENTLY."""

    name = "PostgreSQL, REFRESH in a loop"
    guarantee = "each answer is the view at one time; at least once from the topics into its tables"
    sql = True
    options: Mapping[str, str] = {"fsync": "on", "shared_buffers": "1GB", "work_mem": "64MB", "max_wal_size": "4GB"}

    _server: Postgres | None = None

    @property
    def version(self) -> str:
        (jar,) = JARS.glob("embedded-postgres-binaries-*.jar")
        return jar.stem.rpartition("-")[2]

    @property
    def settings(self) -> str:
        return f"{_words(self.options)}; REFRESH … CONCURRENTLY, one after the other"

    @property
    def output(self) -> Output:
        assert self._server is not None, "not started"
        return Output("select", self._server.dsn)

    def start(self) -> None:
        self._server = Postgres(dict(self.options))
        self._server.start()
        self.children.append(self._server.child)
        command = [sys.executable, "-m", "bench.peers.refresh", self.brokers, self._server.dsn]
        loop = Child("refresh", command, log=self.folder / "refresh.log", folder=HERE.parents[1], announces="ready")
        self.children.append(loop)
        loop.wait_ready(loop.announced, READY)

    def stop(self) -> None:
        super().stop()
        if self._server is not None:
            self._server.stop()


def systems() -> dict[str, tuple[type[System], Make]]:
    """Returns the systems by their names on the command line, Tailgate first."""
    kinds: dict[str, tuple[type[System], Make]] = {
        "tailgate": (Tailgate, partial(Tailgate, reader="tail")),
        "tailgate-select": (Tailgate, partial(Tailgate, reader="select")),
    }
    for kind in (KafkaStreams, KafkaStreamsExactlyOnce, Flink, FlinkExactlyOnce, Pathway, PostgreSQL):
        word = kind.name.split(", REFRESH")[0].lower().replace(", ", "-").replace(" ", "-")
        kinds[word] = (kind, kind)
    return kinds


def _installed(kind: str) -> Path:
    folder = INSTALLED / kind
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is missing: `make bench-peers` installs it")
    return folder


def _jar_version(kind: str, artifact: str) -> str:
    versions: Iterator[str] = (jar.stem.removeprefix(f"{artifact}-") for jar in _installed(kind).glob(f"{artifact}-[0-9]*.jar"))
    return next(versions)


def _words(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())
