"""Random faults in a running Tailgate: processes are killed or paused, and continue after a while.

step() ──► [time for the next?] ──► a random fault whose process runs ──► strike ──► after a while: heal
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tailgate.embedded import children
from tailgate.embedded.supervisor import Supervisor

STARTING = 0.2  # share of the faults that also hit an engine during its start, so that it can make progress
PAUSE_S = (0.5, 8.0)  # between SIGSTOP and SIGCONT
SETTLED_S = 5.0  # without faults after a part was hit or healed, so that its restart can finish


@dataclass(frozen=True)
class Fault:
    """A kind of fault.

    `part` names the process or connection that it hits; a part is not hit again before it is healed. `strike` returns whether
    it found a process. `heal` is called after a random time in the range `lasts`, in seconds. A
    `fatal` fault ends the process.
    """

    part: str
    name: str
    strike: Callable[[], bool]
    heal: Callable[[], None] | None = None
    lasts: tuple[float, float] = (0.0, 0.0)
    fatal: bool = True


class Faults:
    """A generator of faults; the caller calls `step` often.

    `gap` is the range of seconds between two faults. `busy` returns whether a part should mostly be
    spared.
    """

    def __init__(
        self,
        seed: int,
        faults: Sequence[Fault],
        gap: tuple[float, float],
        say: Callable[[str], None],
        busy: Callable[[str], bool] = lambda part: False,
    ) -> None:
        self._random = random.Random(f"{seed} faults")
        self._faults = faults
        self._gap = gap
        self._say = say
        self._busy = busy
        self._healing: dict[str, tuple[float, Callable[[], None]]] = {}
        self._struck_at: dict[str, float] = {}
        self._next = time.monotonic() + self._random.uniform(*gap)
        self.counts: Counter[str] = Counter()
        self.fatal: Counter[str] = Counter()  # by part

    def step(self) -> None:
        now = time.monotonic()
        self._heal(now)
        if now < self._next:
            return
        for fault in self._random.sample(self._faults, len(self._faults)):
            if not self._spared(fault.part, now) and fault.strike():
                self._next = now + self._random.uniform(*self._gap)
                self._struck(fault, now)
                return

    def end(self) -> None:
        """Heals all faults."""
        self._heal(float("inf"))

    def _struck(self, fault: Fault, now: float) -> None:
        self.counts[fault.name] += 1
        self.fatal[fault.part] += fault.fatal
        self._struck_at[fault.part] = now
        lasts = self._random.uniform(*fault.lasts)
        self._say(f"{fault.name}{f', for {lasts:.1f} s' if fault.heal is not None else ''}")
        if fault.heal is not None:
            self._healing[fault.part] = (now + lasts, fault.heal)

    def _heal(self, now: float) -> None:
        for part, (due, heal) in list(self._healing.items()):
            if now >= due:
                heal()
                del self._healing[part]
                self._struck_at[part] = time.monotonic()

    def _spared(self, part: str, now: float) -> bool:
        if part in self._healing or now - self._struck_at.get(part, 0.0) < SETTLED_S:
            return True
        return self._busy(part) and self._random.random() > STARTING


# ---- faults for the processes of `tailgate up` -------------------------------------------------


def starting(supervisor: Supervisor) -> Callable[[str], bool]:
    """Returns a function for `Faults.busy`, which is true for an engine that starts or has just started."""
    seen_ready_at: list[float] = []

    def busy(part: str) -> bool:
        if part != "engine":
            return False
        if not supervisor.ready(part):
            seen_ready_at.clear()
        elif not seen_ready_at:
            seen_ready_at.append(time.monotonic())
        return not seen_ready_at or time.monotonic() - seen_ready_at[0] < SETTLED_S

    return busy


def engine_kills(supervisor: Supervisor) -> list[Fault]:
    return [
        kill(supervisor, "engine", "the engine"),
        Fault("engine", "kill the engine's JVM", lambda: _signal(_jvm(supervisor), signal.SIGKILL)),
        Fault("engine", "kill the engine's Python", lambda: _signal(_pid(supervisor, "engine"), signal.SIGKILL)),
    ]


def engine_pauses(supervisor: Supervisor) -> list[Fault]:
    """Returns faults that pause the engine as a whole, or one of its two processes."""
    return [
        pause(supervisor, "engine", "the engine"),
        _pause("engine", "the engine's JVM", lambda: _jvm(supervisor)),
        _pause("engine", "the engine's Python", lambda: _pid(supervisor, "engine")),
    ]


def kill(supervisor: Supervisor, part: str, name: str) -> Fault:
    return Fault(part, f"kill {name}", lambda: _signal(_group(supervisor, part), signal.SIGKILL))


def pause(supervisor: Supervisor, part: str, name: str) -> Fault:
    return _pause(part, name, lambda: _group(supervisor, part))


def kill_watcher() -> Fault:
    return Fault("watcher", "kill the watcher of process groups", lambda: _signal(children.watcher(), signal.SIGKILL))


def _pause(part: str, name: str, target: Callable[[], int | None]) -> Fault:
    stopped: list[int] = []

    def strike() -> bool:
        pid = target()
        if not _signal(pid, signal.SIGSTOP):
            return False
        assert pid is not None
        stopped.append(pid)
        return True

    def heal() -> None:
        while stopped:
            _signal(stopped.pop(), signal.SIGCONT)

    return Fault(part, f"pause {name}", strike, heal, PAUSE_S, fatal=False)


def _signal(target: int | None, number: signal.Signals) -> bool:
    """Sends a signal to a process or, if negative, a process group. Returns whether it exists."""
    if target is None:
        return False
    try:
        os.kill(target, number)
    except ProcessLookupError:
        return False
    return True


def _pid(supervisor: Supervisor, part: str) -> int | None:
    try:
        return supervisor.pid(part)
    except AssertionError:
        return None  # not running


def _group(supervisor: Supervisor, part: str) -> int | None:
    pid = _pid(supervisor, part)
    return None if pid is None else -pid


def _jvm(supervisor: Supervisor) -> int | None:
    try:
        jvm = int(json.loads((supervisor.plan.data / "engine.json").read_text())["jvm"]["pid"])
        if os.getpgid(jvm) != supervisor.pid("engine"):  # a JVM of an earlier engine, whose process id may have been reused
            return None
    except (OSError, ValueError, KeyError, TypeError, AssertionError):
        return None  # not running, or starting
    return jvm
