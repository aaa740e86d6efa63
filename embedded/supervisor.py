"""`tailgate up`: engine, gateways and sinks as children over one data folder, with a Kafka and a registry if wanted.

    Kafka, registry ──ready──► engine ──ready──► gateways, sinks ──► "ready postgresql=… kafka=… schema-registry=…"
    a child that ends is started again after 0.2 s, later after up to 5 s; more than five times in a minute ends it all

Children end in the reverse order; also when this process is killed (embedded.children).
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from embedded.children import Child, ChildFailed
from embedded.kafka import Kafka
from embedded.registry import Registry

RESTART_FIRST_S, RESTART_LAST_S = 0.2, 5.0  # waits before a child is started again
RESTARTS_MAX, RESTARTS_WINDOW_S = 5, 60.0
ENGINE_READY = timedelta(seconds=120)  # 6-10 s measured; a large state takes longer
GATEWAY_READY = timedelta(seconds=60)
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
    ended_at: deque[float] = field(default_factory=lambda: deque(maxlen=RESTARTS_MAX + 1))
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
        self._kafka: Kafka | None = None
        self._registry: Registry | None = None
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

    def stop(self) -> None:
        self._stop.set()

    def wait(self) -> None:
        """Keeps the children running until `stop`; raises ChildFailed when one cannot be kept."""
        while not self._stop.wait(WATCH_S):
            self.watch()

    def watch(self) -> None:
        """One look at the children."""
        for part in self._parts:
            if part.child is None:
                if time.monotonic() >= part.due:
                    part.child = part.start()
            elif not part.child.running():
                self._ended(part, part.child)
            elif part.awaited and part.child.announced():
                part.awaited = False
                self._say(f"{part.name} is ready again after {time.monotonic() - part.ended_at[-1]:.1f} s")

    def _ended(self, part: Part, child: Child) -> None:
        part.ended_at.append(time.monotonic())
        if len(part.ended_at) > RESTARTS_MAX and part.ended_at[-1] - part.ended_at[0] < RESTARTS_WINDOW_S:
            raise ChildFailed(
                f"{part.name} ended {len(part.ended_at)} times within {RESTARTS_WINDOW_S:.0f} s; see {child.log}\n{child.last_lines()}"
            )
        wait = min(RESTART_FIRST_S * 2 ** (len(part.ended_at) - 1), RESTART_LAST_S)
        self._say(f"{part.name} ended with {child.returncode()}; it is started again in {wait:g} s (its words: {child.log})")
        part.child, part.due, part.awaited = None, time.monotonic() + wait, True

    def _start(self) -> None:
        data = self.plan.data
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.kafka == "embedded":
            self._say("starting Kafka")
            self._kafka = Kafka(data / "kafka")
            self._kafka.start()
            self.kafka = self._kafka.address
        if self.registry == "embedded":
            self._say("starting the schema registry")
            self._registry = Registry(data / "schema-registry")
            self._registry.start()
            self.registry = self._registry.url
        self._say("starting the engine: a JVM with Spark, some seconds")
        parallelism = ("--parallelism", str(self.plan.parallelism))
        self._add("engine", "engine", "--data", str(data), *parallelism, *self.plan.secrets, *self.plan.engine, ready=ENGINE_READY)
        for i in range(self.plan.gateways):
            listening = ("--listen", self.plan.listen, *self.plan.listening)
            self._add(f"gateway{i or ''}", "gateway", "--data", str(data), *listening, ready=GATEWAY_READY)
        if self.plan.presto is not None:
            host, _, port = self.plan.listen.rpartition(":")
            reached = f"{'127.0.0.1' if host in EVERYWHERE else host}:{port}"
            self._add("presto", "presto", "--port", str(self.plan.presto), "--gateway", reached, ready=GATEWAY_READY)
        self._add("sinks", "sinks", "--data", str(data), *self.plan.secrets)

    def _add(self, name: str, *arguments: str, ready: timedelta | None = None) -> None:
        log = self.plan.data / "logs" / f"{name}.log"
        part = Part(name, lambda: Child(name, [sys.executable, "-m", "cli", *arguments], log=log, announces="ready "))
        child = part.child = part.start()
        self._parts.append(part)
        if ready is not None:
            child.wait_ready(child.announced, ready)

    def _end(self) -> None:
        for part in reversed(self._parts):
            if part.child is not None:
                part.child.stop()
        if self._registry is not None:
            self._registry.stop()
        if self._kafka is not None:
            self._kafka.stop()
