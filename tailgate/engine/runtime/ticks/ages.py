"""The ages of the records and writes that ticks read, from which gateways compute freshness lag.

    oldest record of each channel, and when it arrived ──┐
    acknowledged writes of each table                  ──┴─► the ticks that have read them; those that no tick has read

Times are in milliseconds since the epoch, by the wall clock, as Kafka's record times are.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile

from tailgate.lake.writer.inbox import TABLE

TICKS_KEPT = 2_000  # as many as the log entries that a gateway caches: some minutes
WRITES_KEPT = 100_000  # acknowledged writes that no tick has read; further ones count from the newest of them
ANSWERS_S = 0.2  # between two answers to a client while ticks run; each costs the engine about 1 ms
SLOW_S = 0.03  # of a tick, after which a client is answered at once: it shows the records later than the client expects
# Of a tick, at whose end a client is answered at once. Until then, and while a tick that failed is not repeated, a client is answered
# whenever this time has passed: records that arrive meanwhile start no tick, so nothing announces them.
LONG_S = 0.08

Oldest = Mapping[str, tuple[int, int]]  # by channel: the oldest record's time, and when it arrived


@dataclass(frozen=True, slots=True)
class TickAge:
    """A committed tick: when it began, when its result was computed, and when its entry `n` was durable."""

    n: int
    began: int
    computed: int
    committed: int
    oldest: Oldest


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Ages:
    """The ages of the newest ticks and of writes that wait. Safe from many threads.

    Each change has a higher version: a tick is due, because a record or a write arrived; it was committed; a write was acknowledged; the
    engine ends.
    """

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._version = now_ms()  # higher than those of an earlier engine
        self._due: tuple[int, float] | None = None  # of the tick that is due or runs: the version, and since when by the monotonic clock
        self._urgent = self._version  # the newest version of which clients are informed at once
        self._ticks: deque[TickAge] = deque(maxlen=TICKS_KEPT)
        self._writes: deque[tuple[int, str, int]] = deque(maxlen=WRITES_KEPT)  # inbox entry, channel, time

    def acknowledge(self, number: int, tables: Iterable[int]) -> None:
        """Records that a write to these tables is durable now, as an entry of the inbox."""
        now = now_ms()
        with self._lock:
            self._writes.extend((number, f"{TABLE}{table}", now) for table in tables)
            self._change()

    def due(self) -> None:
        """Records that a tick is due: there may be records that no tick has read. One that failed is due until it is committed."""
        with self._lock:
            self._change()
            self._due = self._due or (self._version, time.monotonic())

    def committed(self, n: int, times: tuple[int, int], inbox: int, oldest: Oldest) -> TickAge:
        """Records a tick that is durable now, and returns it.

        `times`: when it began and was computed. `inbox`: the last write that it has read.
        """
        began, computed = times
        with self._lock:
            writes: dict[str, tuple[int, int]] = {}
            while self._writes and self._writes[0][0] <= inbox:
                _, channel, at = self._writes.popleft()
                writes.setdefault(channel, (at, at))
            tick = TickAge(n, began, computed, now_ms(), {**oldest, **writes})
            self._ticks.append(tick)
            is_long = self._due is not None and time.monotonic() - self._due[1] > LONG_S
            self._due = None
            self._change(is_urgent=is_long)
            return tick

    def end(self) -> None:
        """Records that the engine ends: it no longer looks for new records."""
        with self._lock:
            self._change(is_urgent=True)

    def changed(self, version: int, timeout_s: float) -> int:
        """Waits for an answer to a client that knows `version`. Returns the present version.

        Waits for a change, at most `timeout_s`, and at least ANSWERS_S, unless a tick that the client does not know is slow. Waits for
        LONG_S while one that it knows is due. Does not wait if the client has no answer of this engine, after a long tick and when the
        engine ends.
        """
        start = time.monotonic()
        with self._lock:
            while (left := start + self._wait_s(version, start, timeout_s) - time.monotonic()) > 0:
                self._lock.wait(left)
            return self._version

    def _wait_s(self, version: int, start: float, timeout_s: float) -> float:
        if version < self._urgent:
            return 0
        if self._due is None:
            return timeout_s if version == self._version else min(ANSWERS_S, timeout_s)
        if version >= self._due[0]:
            return min(LONG_S, timeout_s)
        return min(ANSWERS_S, timeout_s, self._due[1] + SLOW_S - start)

    def _change(self, *, is_urgent: bool = False) -> None:
        self._version += 1
        if is_urgent:
            self._urgent = self._version
        self._lock.notify_all()

    def after(self, n: int) -> list[TickAge]:
        """Returns the ticks later than entry `n` that are kept, in order."""
        with self._lock:
            return list(takewhile(lambda tick: tick.n > n, reversed(self._ticks)))[::-1]

    def waiting(self, inbox: int) -> dict[str, list[tuple[int, int]]]:
        """Returns the oldest writes of each table that no tick has read, by channel: up to an entry of the inbox, and after it.

        Each is a time, and the last entry with such a write.
        """
        with self._lock:
            writes: dict[tuple[str, bool], tuple[int, int]] = {}
            for number, channel, at in self._writes:
                key = (channel, number > inbox)
                writes[key] = (writes[key][0] if key in writes else at, number)
        waiting: dict[str, list[tuple[int, int]]] = {}
        for (channel, _), write in sorted(writes.items()):
            waiting.setdefault(channel, []).append(write)
        return waiting
