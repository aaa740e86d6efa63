"""Who is killed when: a random one of those at work, with SIGKILL, after a random while, and started again after a random pause."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from embedded.supervisor import RESTARTS_MAX, RESTARTS_WINDOW_S, Supervisor
from tests.cdc.worker import Worker

GAP_S = (2.0, 12.0)  # between two kills
STARTING = 0.2  # of the kills of an engine that still starts, those that are done: it shall also get on
PAUSE_S = (0.0, 3.0)  # until a worker is started again; the supervisor has waits of its own


@dataclass
class Victim:
    """`kill`: whether it was there to be killed. `again`: starts it, if nobody else does."""

    name: str
    kill: Callable[[], bool]
    again: Callable[[], None] | None = None
    killed_at: deque[float] = field(default_factory=lambda: deque(maxlen=RESTARTS_MAX))

    def spared(self, now: float) -> bool:
        """Whether one more kill would be more than the supervisor puts up with."""
        return len(self.killed_at) == RESTARTS_MAX and now - self.killed_at[0] < RESTARTS_WINDOW_S


class Killer:
    """`step` often: it kills when it is time, and starts what is due."""

    def __init__(self, seed: int, supervisor: Supervisor, workers: list[Worker], say: Callable[[str], None]) -> None:
        self._random = random.Random(f"{seed} kills")
        self._supervisor = supervisor
        self._say = say
        self._due: dict[str, tuple[float, Callable[[], None]]] = {}
        self._next = time.monotonic() + self._random.uniform(*GAP_S)
        self.kills: Counter[str] = Counter()
        self._victims = [
            Victim("the engine", lambda: self._end("engine", group=True)),
            Victim("the engine's JVM", self._end_jvm),
            Victim("the engine's Python", lambda: self._end("engine", group=False)),
            Victim("the sinks", lambda: self._end("sinks", group=True)),
            Victim("the sinks", lambda: self._end("sinks", group=True)),
        ]
        for worker in workers:
            self._victims += 2 * [Victim(f"the worker of {worker.name}", worker.kill, worker.start)]
            self._victims.append(Victim(f"nobody, but restarts the connector of {worker.name}", worker.restart))

    def step(self) -> None:
        now = time.monotonic()
        for name, (due, start) in list(self._due.items()):
            if now >= due:
                start()
                del self._due[name]
        if now >= self._next:
            self._next = now + self._random.uniform(*GAP_S)
            victim = self._random.choice(self._victims)
            if victim.name in self._due or victim.spared(now):
                return
            if "engine" in victim.name and not self._supervisor.ready("engine") and self._random.random() > STARTING:
                return
            if not victim.kill():
                return
            victim.killed_at.append(now)
            self.kills[victim.name] += 1
            self._say(f"kills {victim.name}")
            if victim.again is not None:
                self._due[victim.name] = (now + self._random.uniform(*PAUSE_S), victim.again)

    def end(self) -> None:
        """Whoever is down is started again."""
        for _, start in self._due.values():
            start()
        self._due.clear()

    def _end(self, part: str, *, group: bool) -> bool:
        try:
            (os.killpg if group else os.kill)(self._supervisor.pid(part), signal.SIGKILL)
        except (ProcessLookupError, AssertionError):  # it is down already
            return False
        return True

    def _end_jvm(self) -> bool:
        try:
            jvm = json.loads((self._supervisor.plan.data / "engine.json").read_text())["jvm"]["pid"]
            if os.getpgid(jvm) != self._supervisor.pid("engine"):  # of the life before; the number may be anybody's now
                return False
            os.kill(jvm, signal.SIGKILL)
        except (OSError, ValueError, KeyError, AssertionError):  # it is down already, or only begins
            return False
        return True
