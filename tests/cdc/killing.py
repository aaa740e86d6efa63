"""Who is killed when: a random one of those at work, with SIGKILL, after a random while, and started again after a random pause."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass

from embedded.supervisor import RESTARTS_MAX, RESTARTS_WINDOW_S, Supervisor
from tests.cdc.worker import Worker

GAP_S = (2.0, 12.0)  # between two kills
STARTING = 0.2  # of the kills of an engine that still starts, those that are done: it shall also get on
PAUSE_S = (0.0, 3.0)  # until a worker is started again; the supervisor has waits of its own


@dataclass(frozen=True)
class Victim:
    """`kill`: whether it was there to be killed. `again`: starts it, if nobody else does. `part`: the process that it is of."""

    part: str
    name: str
    kill: Callable[[], bool]
    again: Callable[[], None] | None = None


class Killer:
    """`step` often: it kills when it is time, and starts what is due."""

    def __init__(self, seed: int, supervisor: Supervisor, workers: list[Worker], say: Callable[[str], None]) -> None:
        self._random = random.Random(f"{seed} kills")
        self._supervisor = supervisor
        self._say = say
        self._due: dict[str, tuple[float, Callable[[], None]]] = {}
        self._next = time.monotonic() + self._random.uniform(*GAP_S)
        self._killed_at: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=RESTARTS_MAX))
        self.kills: Counter[str] = Counter()
        self._victims = [
            Victim("engine", "the engine", lambda: self._end("engine", group=True)),
            Victim("engine", "the engine's JVM", self._end_jvm),
            Victim("engine", "the engine's Python", lambda: self._end("engine", group=False)),
            *2 * [Victim("sinks", "the sinks", lambda: self._end("sinks", group=True))],
        ]
        for worker in workers:
            name = worker.name
            self._victims += 2 * [Victim(name, f"the worker of {name}", worker.kill, worker.start)]
            self._victims.append(Victim(name, f"the connector of {name}", worker.restart))
            if worker.forgetful:
                self._victims.append(Victim(name, f"the worker of {name} and its offsets", worker.lose_offsets, worker.start))

    def step(self) -> None:
        now = time.monotonic()
        for part, (due, start) in list(self._due.items()):
            if now >= due:
                start()
                del self._due[part]
        if now < self._next:
            return
        self._next = now + self._random.uniform(*GAP_S)
        victim = self._random.choice(self._victims)
        if self._spared(victim.part, now) or not victim.kill():
            return
        self._killed_at[victim.part].append(now)
        self.kills[victim.name] += 1
        self._say(f"kills {victim.name}")
        if victim.again is not None:
            self._due[victim.part] = (now + self._random.uniform(*PAUSE_S), victim.again)

    def _spared(self, part: str, now: float) -> bool:
        """What is about to be started, what the supervisor would give up, and an engine that still starts, mostly."""
        killed_at = self._killed_at[part]
        if part in self._due or (len(killed_at) == RESTARTS_MAX and now - killed_at[0] < RESTARTS_WINDOW_S):
            return True
        return part == "engine" and not self._supervisor.ready(part) and self._random.random() > STARTING

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
