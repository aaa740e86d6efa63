"""`tailgate up`: engine, gateways and sinks as child processes over one data folder, optionally with a Kafka and a registry.

    claim ──► Kafka, registry, Connect ──ready──► engine ──ready──► gateways, sinks ──► "ready postgresql=… kafka=… schema-registry=…"
    a child that ends is restarted after 0.2 s, or after up to 5 s while it ends within a minute of its start

If a child ends before all children were ready, the start fails and all children are stopped. After
that, every child is restarted without limit, whatever ended it: a full disk gets free again, a
missing address comes back, and the other children continue to serve meanwhile.

Children are stopped in reverse order. They also end when this process is killed (embedded.children);
if that fails, the next start kills them (embedded.claim).
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from tailgate.embedded import connect, kafka, registry
from tailgate.embedded.children import Child, ChildFailed, await_free, tend
from tailgate.embedded.claim import Claim, end_leftovers
from tailgate.embedded.connect import Connect
from tailgate.embedded.connect_options import ConnectOptions
from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tailgate.lake import peers
from tailgate.lake.folder import WORK_DIR, Lake
from tailgate.lake.host import process_tls
from tailgate.operations.data_folder import Location
from tailgate.operations.definitions import UP
from tailgate.operations.endpoint import Address, Endpoint, opened
from tailgate.operations.metrics import labeled
from tailgate.operations.settings.addresses import EVERY_ADDRESS
from tailgate.operations.settings.process import PROCESSES

RESTART_FIRST_S, RESTART_LAST_S = 0.2, 5.0  # delays before a restart
STEADY_S = 60.0  # a child that has run for this long is restarted after the first delay
ENGINE_READY = timedelta(seconds=120)  # 6-10 s measured; a large state takes longer
READY = timedelta(seconds=60)  # of the other children: 0.5 to 3 s measured
WATCH_S = 0.5  # interval between checks of the children; long, so that an idle machine stays idle

# The ports of the processes' metrics, after that of the supervisor.
ENGINE_METRICS, SINKS_METRICS, GATEWAY_METRICS = 1, 2, 3

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """The processes to run.

    `data`: the location of the lake. `work_dir`: this machine's folder, if the lake is in a bucket.
    `kafka`, `registry` and `connect`: an address, "embedded", or None. `listening`: arguments for the gateways.
    `secrets`: arguments for the engine and the sinks.
    """

    data: Location
    listen: str = "127.0.0.1:6875"
    kafka: str | None = None
    registry: str | None = None
    gateways: int = 1
    parallelism: int = 1
    listening: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    connect: str | None = None  # Kafka Connect
    connect_options: ConnectOptions = field(default_factory=ConnectOptions)  # of the embedded one
    presto: int | None = None  # the port of Presto's HTTP protocol
    ksqldb: str | None = None  # the address of ksqlDB's HTTP API
    ksqldb_options: tuple[str, ...] = ()  # more arguments for its process
    processing_log: bool = False  # whether the engine writes ksqlDB's processing log
    engine: tuple[str, ...] = ()  # more arguments for the engine
    stand_by: bool = False  # whether a second engine and a second sinks process stand by
    metrics: Address | None = None  # of the supervisor; engine, sinks, each gateway, the watch, second engine and sinks have the next ports
    otlp: str | None = None  # the collector of all processes
    watch: tuple[str, ...] = ()  # more arguments for the watch
    log: str | None = None  # the form of the logs of engine, sinks and gateways, unless they have it from elsewhere
    work_dir: Path | None = None
    secrets_dir: Path | None = None
    control_listen: str | None = None  # where other machines reach the engine; the gateways and the second engine have the next ports

    @property
    def folder(self) -> Path:
        """Returns the folder of this machine: the lake, or the working folder of a lake in a bucket."""
        return self.data if isinstance(self.data, Path) else self.work_dir or WORK_DIR

    @property
    def lake(self) -> tuple[str, ...]:
        """Returns the options of a child for the lake."""
        work_dir = () if isinstance(self.data, Path) else ("--work-dir", str(self.folder.resolve()))
        secrets_dir = () if self.secrets_dir is None else ("--secrets-dir", str(self.secrets_dir.resolve()))
        return ("--data", str(self.data), *work_dir, *secrets_dir)

    def operations(self, number: int) -> tuple[str, ...]:
        """Returns the options for the log, the metrics and the traces of a child."""
        metrics = () if self.metrics is None else ("--metrics", str(self.metrics.plus(number)))
        exported = () if self.otlp is None else ("--otlp", self.otlp)
        return (*metrics, *exported) if self.log is None else (*metrics, *exported, "--log", self.log)

    def control(self, number: int) -> tuple[str, ...]:
        """Returns the option for the address by which other machines reach a child: the port plus `number`. Port 0 is a free one."""
        if self.control_listen is None:
            return ()
        host, port = process_tls.split(self.control_listen)
        return ("--control-listen", process_tls.joined(host, port and port + number))


@dataclass
class Part:
    """A child process that is kept running."""

    name: str
    start: Callable[[], Child]
    reloads: bool = False  # whether it handles SIGHUP
    child: Child | None = None
    ends: int = 0  # how often it has ended
    early_ends: int = 0  # consecutive ends within STEADY_S of the start
    started_at: float = 0.0
    ended_at: float = 0.0
    due: float = 0.0
    awaited: bool = False  # whether it has ended and not announced itself since


def _is_ready(part: Part) -> bool:
    """Returns whether a child runs and has announced itself since it last ended."""
    return part.child is not None and not part.awaited


class Supervisor:
    """The parent of all processes, used as a context manager: it starts them on entry and stops them on exit."""

    def __init__(self, plan: Plan, say: Say) -> None:
        self.plan = plan
        self._say = say
        self._stop = threading.Event()
        self.started = False
        self._parts: list[Part] = []
        self._claim: Claim | None = None
        self._endpoint: Endpoint | None = None
        self.kafka = plan.kafka
        self.registry = plan.registry
        self.connect = plan.connect

    @property
    def ready_line(self) -> str:
        """Returns the line that announces the addresses to users and scripts."""
        words = [f"ready postgresql=postgresql://{self.plan.listen}/tailgate"]
        if self.kafka:
            words.append(f"kafka={self.kafka}")
        if self.plan.presto is not None:
            words.append(f"presto=http://127.0.0.1:{self.plan.presto}")
        if self.plan.ksqldb is not None:
            words.append(f"ksqldb={'https' if '--tls-cert' in self.plan.ksqldb_options else 'http'}://{self.plan.ksqldb}")
        if self.registry:
            words.append(f"schema-registry={self.registry}")
        if self.plan.connect == "embedded":
            words.append(f"connect={self.connect}")
        return " ".join(words)

    def __enter__(self) -> Supervisor:
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        self.started = True
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def pid(self, name: str) -> int:
        part = next(p for p in self._parts if p.name == name)
        assert part.child is not None
        return part.child.pid

    def ready(self, name: str) -> bool:
        """Returns whether a child runs and has announced itself since it last ended."""
        return _is_ready(next(p for p in self._parts if p.name == name))

    @property
    def ends(self) -> dict[str, int]:
        """Returns how often each child has ended since the supervisor started."""
        return {part.name: part.ends for part in self._parts}

    def stop(self) -> None:
        """Ends `wait`. May be called from a signal handler."""
        self._stop.set()

    def pass_on(self, number: int) -> None:
        """Sends a signal to the children that handle it and are ready. It would end others, such as a JVM."""
        for part in self._parts:
            child = part.child
            if part.reloads and child is not None and child.announced() and child.running():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child.pid, number)

    def wait(self) -> None:
        """Keeps the children running until `stop` is called."""
        while not self._stop.wait(WATCH_S):
            self.watch()

    def watch(self) -> None:
        """Checks each child once and restarts those that are due."""
        tend()
        for part in self._parts:
            if part.child is None:
                if time.monotonic() >= part.due:
                    self._start_again(part)
            elif not part.child.running():
                self._ended(part, f"ended with {part.child.returncode()}; see {part.child.log}")
            elif part.awaited and part.child.announced():
                part.awaited = False
                self._say(f"{part.name} is ready again after {time.monotonic() - part.ended_at:.1f} s")

    def _start_again(self, part: Part) -> None:
        part.started_at = time.monotonic()
        try:
            part.child = part.start()
        except (OSError, ChildFailed) as error:  # for example no memory for a process, or a port in use
            self._ended(part, f"did not start: {error}")

    def _ended(self, part: Part, what: str) -> None:
        part.ended_at = time.monotonic()
        part.ends += 1
        part.early_ends = part.early_ends + 1 if part.ended_at - part.started_at < STEADY_S else 0
        wait = min(RESTART_FIRST_S * 2 ** min(part.early_ends, 10), RESTART_LAST_S)
        self._say(f"{part.name} {what}; it is started again in {wait:g} s")
        part.child, part.due, part.awaited = None, part.ended_at + wait, True

    def _start(self) -> None:
        """Starts all children in order, and waits until they are ready."""
        folder, lake = self.plan.folder, self.plan.lake
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._claim = Claim(folder)
        marked = self._claim.environment
        self._check_ports()
        self._endpoint = opened(self.plan.metrics, UP)
        if self._endpoint is not None:
            self._endpoint.metrics.read("tailgate_up_process_ready", lambda: labeled({p.name: int(_is_ready(p)) for p in self._parts}))
            self._endpoint.metrics.read("tailgate_up_process_ends_total", lambda: labeled(self.ends))
        worker = self._start_embedded(marked)
        self._say("starting the engine: a JVM with Spark, some seconds")
        parallelism = ("--parallelism", str(self.plan.parallelism))
        endpoints = ["--kafka", self.kafka] if self.kafka else []
        endpoints += ["--schema-registry", self.registry] if self.registry else []
        endpoints += ["--connect", self.connect] if self.connect else []
        endpoints += ["--processing-log"] if self.plan.processing_log else []
        of_engine = ("engine", *lake, *parallelism, *endpoints, *self.plan.secrets, *self.plan.engine)
        of_first = (*self.plan.operations(ENGINE_METRICS), *self.plan.control(0))
        engine = self._part("engine", *of_engine, *of_first)
        self._add(engine, ENGINE_READY)
        if worker is not None:
            worker.wait_ready(worker.announced, connect.READY_TIMEOUT)
        of_sinks = ("sinks", *lake, *self.plan.secrets)
        sinks_part = self._part("sinks", *of_sinks, *self.plan.operations(SINKS_METRICS))
        sinks = self._launch(sinks_part)  # starts in parallel with the gateways
        for i in range(self.plan.gateways):
            listening = ("--listen", self.plan.listen, *self.plan.listening, *self.plan.control(1 + i))
            self._add(self._part(f"gateway{i or ''}", "gateway", *lake, *listening, *self.plan.operations(GATEWAY_METRICS + i)), READY)
        if self.plan.stand_by:  # from now on each of the two engines stands by when it is started
            waiting = (*of_engine, "--stand-by")
            engine.start = self._part("engine", *waiting, *of_first).start
            of_second = (*self.plan.operations(GATEWAY_METRICS + self.plan.gateways + 1), *self.plan.control(1 + self.plan.gateways))
            second = self._part("stand-by", *waiting, *of_second)
            self._add(second, ENGINE_READY)
        host, _, port = self.plan.listen.rpartition(":")
        reached = f"{'127.0.0.1' if host in EVERY_ADDRESS else host}:{port}"
        if self.plan.presto is not None:
            self._add(self._part("presto", "presto", "--port", str(self.plan.presto), "--gateway", reached), READY)
        if self.plan.ksqldb is not None:
            arguments = ("--listen", self.plan.ksqldb, "--gateway", reached, *self.plan.ksqldb_options)
            self._add(self._part("ksqldb", "ksqldb", *arguments), READY)
        sinks.wait_ready(sinks.announced, READY)
        if self.plan.stand_by:
            waiting = (*of_sinks, "--stand-by")
            sinks_part.start = self._part("sinks", *waiting, *self.plan.operations(SINKS_METRICS)).start
            second = self._part("sinks-stand-by", *waiting, *self.plan.operations(GATEWAY_METRICS + self.plan.gateways + 2))
            self._add(second, READY)
        of_watch = (*self.plan.secrets, *self.plan.watch, *self.plan.operations(GATEWAY_METRICS + self.plan.gateways))
        watch = self._launch(self._part("watch", "watch", *lake, *of_watch))
        watch.wait_ready(watch.announced, READY)
        if self._endpoint is not None:
            self._endpoint.health.started(self._unready)

    def _start_embedded(self, marked: Mapping[str, str]) -> Child | None:
        """Starts the embedded Kafka, registry and Kafka Connect. Returns the last one, which starts in parallel with the engine.

        `marked`: variables for their environment.
        """
        folder = self.plan.folder
        if self.kafka == "embedded":
            self._say("starting Kafka")
            broker = Kafka(folder / "kafka", environment=marked)
            self._add(Part("kafka", broker.launch), kafka.READY_TIMEOUT)
            self.kafka = broker.address
        if self.registry == "embedded":
            self._say("starting the schema registry")
            schemas = Registry(folder / "schema-registry", environment=marked)
            self._add(Part("registry", schemas.launch), registry.READY_TIMEOUT)
            self.registry = schemas.url
        if self.connect != "embedded":
            return None
        self._say("starting Kafka Connect")
        server = Connect(folder / "connect", self.kafka or "", self.registry or "", self.plan.connect_options, marked)
        self.connect = server.url
        return self._launch(Part("connect", server.launch))

    def _unready(self) -> str | None:
        """Returns which processes are not ready, or None."""
        names = [part.name for part in self._parts if not _is_ready(part)]
        return f"not ready: {', '.join(names)}" if names else None

    def _check_ports(self) -> None:
        """Waits until the ports are free, before any child starts. A separate gateway of the same lake may share its port."""
        address = process_tls.split(self.plan.listen)
        shared = Lake.exists(self.plan.data) and any(address in p.listens for p in peers.of_this_machine(Lake(self.plan.data)))
        addresses = [] if shared else [address]
        if self.plan.presto is not None:
            addresses.append(("127.0.0.1", self.plan.presto))
        if self.plan.ksqldb is not None:
            addresses.append(process_tls.split(self.plan.ksqldb))
        for at in addresses:
            await_free(*at)

    def _part(self, name: str, *arguments: str) -> Part:
        log = self.plan.folder / "logs" / f"{name}.log"
        command = [sys.executable, "-m", "tailgate", *arguments]
        assert self._claim is not None
        marked = self._claim.environment
        return Part(name, lambda: Child(name, command, log=log, environment=marked, announces="ready "), arguments[0] in PROCESSES)

    def _launch(self, part: Part) -> Child:
        part.started_at = time.monotonic()
        child = part.child = part.start()
        self._parts.append(part)
        return child

    def _add(self, part: Part, ready: timedelta) -> None:
        """Starts a child, and waits until it has announced itself, at most `ready`."""
        child = self._launch(part)
        child.wait_ready(child.announced, ready)

    def _end(self) -> None:
        """Stops all children. No process of this folder remains, whatever fails."""
        if self._claim is None:
            return
        try:
            for part in reversed(self._parts):
                if part.child is not None:
                    part.child.stop()
        finally:
            if self._endpoint is not None:
                self._endpoint.stop()
            end_leftovers(self.plan.folder.resolve())
            self._claim.release()
