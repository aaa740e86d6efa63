"""`tailgate up`: engine, gateways and sinks as children over one data folder, with a Kafka and a registry if wanted.

    claim ──► Kafka, registry ──ready──► engine ──ready──► gateways, sinks ──► "ready postgresql=… kafka=… schema-registry=…"
    a child that ends is started again after 0.2 s, and after up to 5 s as long as it ends within a minute of its start

A child that ends before everything was ready ends it all. From then on each is started again for ever, whatever ended it: a full
disk is emptied, a missing address comes back, and the others serve meanwhile.

Children end in the reverse order; also when this process is killed (embedded.children), and if that fails at the next start
(embedded.claim).
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from embedded import kafka, registry
from embedded.children import Child, ChildFailed, await_free, tend
from embedded.claim import Claim, end_leftovers
from embedded.kafka import Kafka
from embedded.registry import Registry
from lake import Lake, peers

RESTART_FIRST_S, RESTART_LAST_S = 0.2, 5.0  # waits before a child is started again
STEADY_S = 60.0  # a child that has run for so long is started again after the first wait
ENGINE_READY = timedelta(seconds=120)  # 6-10 s measured; a large state takes longer
READY = timedelta(seconds=60)  # of the others: 0.5 to 3 s measured
EVERYWHERE = ("", "0.0.0.0", "::", "[::]")  # hosts that are no address to connect to
WATCH_S = 0.5  # how often the children are looked at; an idle machine is not to be woken often

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run. `kafka` and `registry`: an address, "embedded", or None. `listening`: words for the gateways' command lines, `secrets`
    for those of the engine and the sinks."""

    data: Path
    listen: str = "127.0.0.1:6875"
    kafka: str | None = None
    registry: str | None = None
    gateways: int = 1
    parallelism: int = 1
    listening: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    presto: int | None = None  # the port of Presto's HTTP
    engine: tuple[str, ...] = ()  # more words for the engine's command line


@dataclass
class Part:
    """A child to keep running."""

    name: str
    start: Callable[[], Child]
    child: Child | None = None
    ends: int = 0  # all of them
    early_ends: int = 0  # in a row, each within STEADY_S of its start
    started_at: float = 0.0
    ended_at: float = 0.0
    due: float = 0.0
    awaited: bool = False  # whether it ended and has not announced itself since


class Supervisor:
    """Use as a context: started on entry, ended on exit."""

    def __init__(self, plan: Plan, say: Say) -> None:
        self.plan = plan
        self._say = say
        self._stop = threading.Event()
        self.started = False
        self._parts: list[Part] = []
        self._claim: Claim | None = None
        self.kafka = plan.kafka
        self.registry = plan.registry

    @property
    def ready_line(self) -> str:
        words = [f"ready postgresql=postgresql://{self.plan.listen}/tailgate"]
        if self.kafka:
            words.append(f"kafka={self.kafka}")
        if self.plan.presto is not None:
            words.append(f"presto=http://127.0.0.1:{self.plan.presto}")
        if self.registry:
            words.append(f"schema-registry={self.registry}")
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
        """Whether it has announced itself since it last ended."""
        part = next(p for p in self._parts if p.name == name)
        return part.child is not None and not part.awaited

    @property
    def ends(self) -> dict[str, int]:
        """How often each child has ended since the start."""
        return {part.name: part.ends for part in self._parts}

    def stop(self) -> None:
        self._stop.set()

    def wait(self) -> None:
        """Keeps the children running until `stop`."""
        while not self._stop.wait(WATCH_S):
            self.watch()

    def watch(self) -> None:
        """One look at the children."""
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
        except (OSError, ChildFailed) as error:  # no memory for a process, a port that is taken
            self._ended(part, f"did not start: {error}")

    def _ended(self, part: Part, what: str) -> None:
        part.ended_at = time.monotonic()
        part.ends += 1
        part.early_ends = part.early_ends + 1 if part.ended_at - part.started_at < STEADY_S else 0
        wait = min(RESTART_FIRST_S * 2 ** min(part.early_ends, 10), RESTART_LAST_S)
        self._say(f"{part.name} {what}; it is started again in {wait:g} s")
        part.child, part.due, part.awaited = None, part.ended_at + wait, True

    def _start(self) -> None:
        data = self.plan.data
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._claim = Claim(data)
        marked = self._claim.environment
        self._check_ports()
        if self.kafka == "embedded":
            self._say("starting Kafka")
            broker = Kafka(data / "kafka", environment=marked)
            self._add(Part("kafka", broker.launch), kafka.READY_TIMEOUT)
            self.kafka = broker.address
        if self.registry == "embedded":
            self._say("starting the schema registry")
            schemas = Registry(data / "schema-registry", environment=marked)
            self._add(Part("registry", schemas.launch), registry.READY_TIMEOUT)
            self.registry = schemas.url
        self._say("starting the engine: a JVM with Spark, some seconds")
        parallelism = ("--parallelism", str(self.plan.parallelism))
        engine = self._part("engine", "engine", "--data", str(data), *parallelism, *self.plan.secrets, *self.plan.engine)
        self._add(engine, ENGINE_READY)
        sinks = self._launch(self._part("sinks", "sinks", "--data", str(data), *self.plan.secrets))  # beside the gateways
        for i in range(self.plan.gateways):
            listening = ("--listen", self.plan.listen, *self.plan.listening)
            self._add(self._part(f"gateway{i or ''}", "gateway", "--data", str(data), *listening), READY)
        if self.plan.presto is not None:
            host, _, port = self.plan.listen.rpartition(":")
            reached = f"{'127.0.0.1' if host in EVERYWHERE else host}:{port}"
            self._add(self._part("presto", "presto", "--port", str(self.plan.presto), "--gateway", reached), READY)
        sinks.wait_ready(sinks.announced, READY)

    def _check_ports(self) -> None:
        """Before anything is started. A gateway of this lake that runs by itself may have the port: it is shared with it."""
        host, _, port = self.plan.listen.rpartition(":")
        address = host.strip("[]"), int(port)
        shared = (self.plan.data / "lake.json").exists() and any(address in p.listens for p in peers.announced(Lake(self.plan.data)))
        taken = [] if shared else [address]
        if self.plan.presto is not None:
            taken.append(("127.0.0.1", self.plan.presto))
        for at in taken:
            await_free(*at)

    def _part(self, name: str, *arguments: str) -> Part:
        log = self.plan.data / "logs" / f"{name}.log"
        command = [sys.executable, "-m", "cli", *arguments]
        assert self._claim is not None
        marked = self._claim.environment
        return Part(name, lambda: Child(name, command, log=log, environment=marked, announces="ready "))

    def _launch(self, part: Part) -> Child:
        part.started_at = time.monotonic()
        child = part.child = part.start()
        self._parts.append(part)
        return child

    def _add(self, part: Part, ready: timedelta) -> None:
        """Starts it, and waits so long at most until it has announced itself."""
        child = self._launch(part)
        child.wait_ready(child.announced, ready)

    def _end(self) -> None:
        """Whatever fails on the way, no process of this folder is left."""
        if self._claim is None:
            return
        try:
            for part in reversed(self._parts):
                if part.child is not None:
                    part.child.stop()
        finally:
            end_leftovers(self.plan.data.resolve())
            self._claim.release()
